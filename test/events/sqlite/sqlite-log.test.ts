import { chmod, cp, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeCursor } from '../../../src/events/cursor.ts';
import { encodeEvent } from '../../../src/events/entry.ts';
import { EventsGapError, StoreUnavailableError } from '../../../src/events/errors.ts';
import type { NewEvent } from '../../../src/events/log.ts';
import { silentMetrics } from '../../../src/events/metrics.ts';
import { digestOf, type EventNames } from '../../../src/events/search.ts';
import { SqliteBatch } from '../../../src/events/sqlite/batch.ts';
import { SqliteSource } from '../../../src/events/sqlite/source.ts';
import { SqliteLog } from '../../../src/events/sqlite/sqlite-log.ts';
import { ids, moneyIn } from '../../helpers/events.ts';
import { withRoom } from '../../helpers/small-disk.ts';
import { until } from '../../helpers/until.ts';
import { describeEventLog } from '../log.contract.ts';
import { describeSearch } from '../search.contract.ts';
import { openEarlierLog } from './earlier-version.ts';

const DAY_MS = 24 * 3_600_000;

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-events-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const newFolder = (): Promise<string> => mkdtemp(join(root, 'log-'));

describeEventLog('the embedded log', async ({ retention, metrics }) => {
  return new SqliteLog({ dataDir: await newFolder(), retention, metrics, now: Date.now });
});

describeSearch('the embedded log', async (options) => {
  return new SqliteLog({ dataDir: await newFolder(), metrics: silentMetrics, ...options });
});

describe('the file of the embedded log', () => {
  const open = (dataDir: string, now = Date.now, monotonic?: () => number): SqliteLog =>
    new SqliteLog({ dataDir, retention: 10, metrics: silentMetrics, now, monotonic });

  it.each(['events.sqlite', 'events.sqlite-wal'])(
    'takes no event once %s has gone, says why, and takes them again where it is put back',
    async (name) => {
      const dataDir = await newFolder();
      const log = open(dataDir);
      const file = join(dataDir, name);
      await log.append('client', moneyIn());
      await rename(file, `${file}.away`);
      await expect(log.append('client', moneyIn())).rejects.toThrow(StoreUnavailableError);
      const reasons = [expect.stringContaining(`${name} was deleted, moved or replaced`)];
      expect(await log.health()).toMatchObject({ writable: false, reasons });
      await cp(`${file}.away`, file);
      await expect(log.append('client', moneyIn())).rejects.toThrow(StoreUnavailableError);
      await rename(`${file}.away`, file);
      await log.append('client', moneyIn());
      await log.stop();
    },
  );

  it('keeps events, answers and cursors from one start to the next', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    const event = moneyIn({ decision: 'REJECTED', refundReason: 'why' });
    const before = await first.head('client');
    await first.append('client', event);
    const key = await first.sealKey('client');
    await first.stop();
    const second = open(dataDir);
    expect(await second.sealKey('client')).toEqual(key);
    expect(ids((await second.readAfter('client', before, 5)).events)).toEqual([event.id]);
    expect(await second.append('client', { ...event, decision: 'ACCEPTED' })).toMatchObject({
      answer: { status: 422, refundReason: 'why' },
      duplicate: true,
    });
    await second.stop();
  });

  it('knows a message that is just being stored', async () => {
    const log = open(await newFolder());
    const event = moneyIn();
    const storing = log.append('client', event);
    expect(await log.recall('client', event)).toMatchObject({ duplicate: true, answer: { status: 201 } });
    expect(await storing).toMatchObject({ duplicate: false });
    await log.stop();
  });

  it('holds what is just being stored as it is closed', async () => {
    const dataDir = await newFolder();
    const log = open(dataDir);
    const event = moneyIn();
    const storing = log.append('client', event);
    await Promise.all([log.stop(), log.stop()]);
    const { cursor } = await storing;
    const again = open(dataDir);
    expect(await again.recall('client', event)).toMatchObject({ duplicate: true, cursor });
    await again.stop();
  });

  it('belongs to one process at a time', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    expect(() => open(dataDir)).toThrow(/in use by another process/);
    await first.stop();
    await open(dataDir).stop();
  });

  it('is read by nobody but its user', async () => {
    const dataDir = await newFolder();
    const log = open(dataDir);
    await log.append('client', moneyIn());
    const names = await readdir(dataDir);
    expect(names).toContain('events.sqlite-wal');
    for (const name of names) expect((await stat(join(dataDir, name))).mode & 0o077).toBe(0);
    await log.stop();
    await chmod(join(dataDir, 'events.sqlite'), 0o644);
    const again = open(dataDir);
    await again.append('client', moneyIn());
    for (const name of names) expect((await stat(join(dataDir, name))).mode & 0o077).toBe(0);
    await again.stop();
  });

  it('remembers a message for seven days of its own clock, wherever the clock of the machine leaps', async () => {
    const start = Date.now();
    let [now, monotonic] = [start, 0];
    const dataDir = await newFolder();
    const openHere = () =>
      open(
        dataDir,
        () => now,
        () => monotonic,
      );
    const event = moneyIn();
    let log = openHere();
    await log.append('client', event);
    for (const leap of [-365, 365]) {
      now = start + leap * DAY_MS;
      await log.append('client', moneyIn());
      expect((await log.append('client', event)).duplicate).toBe(true);
      await log.stop();
      monotonic = 0;
      log = openHere();
      expect((await log.append('client', event)).duplicate).toBe(true);
    }
    // Each delivery, and each question about it, prolongs the memory.
    monotonic = 7 * DAY_MS - 1;
    expect((await log.append('client', event)).duplicate).toBe(true);
    monotonic += 7 * DAY_MS - 1;
    expect(await log.recall('client', event)).toMatchObject({ duplicate: true });
    monotonic += 7 * DAY_MS - 1;
    expect((await log.append('client', event)).duplicate).toBe(true);
    monotonic += 7 * DAY_MS;
    expect((await log.append('client', event)).duplicate).toBe(false);
    await log.stop();
  });

  it('goes on from a file that was made before positions named their run', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    const event = moneyIn();
    await first.append('client', event);
    const epoch =
      Buffer.from(await first.head('client'), 'base64url')
        .toString()
        .split('|')[1] ?? '';
    await first.stop();
    const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
    database.exec(`ALTER TABLE events DROP COLUMN run; ALTER TABLE events DROP COLUMN prev_run;
      DROP TABLE clock; DROP TABLE probes;`);
    database.close();
    const second = open(dataDir);
    const old = encodeCursor('client', { epoch, position: '1' });
    expect(await second.append('client', event)).toMatchObject({ duplicate: true, cursor: old });
    const later = moneyIn();
    await second.append('client', later);
    expect(ids((await second.readAfter('client', old, 5)).events)).toEqual([later.id]);
    expect(ids((await second.readAfter('client', null, 5)).events)).toEqual([event.id, later.id]);
    await second.stop();
  });
});

describe('a file of the embedded log that the version before goes on with', () => {
  const open = (dataDir: string, more: { retention?: number; retentionBytes?: number } = {}): SqliteLog =>
    new SqliteLog({
      dataDir,
      retention: 10,
      metrics: silentMetrics,
      names: ({ id }) => [id],
      now: Date.now,
      ...more,
    });

  it('holds everything when this one comes back, without gap or repeat, however often', async () => {
    const dataDir = await newFolder();
    const sent: NewEvent[] = [];
    let cursor: string | null = null;
    for (const time of [1, 2]) {
      const log = open(dataDir);
      for (const event of sent) expect((await log.append('client', event)).duplicate).toBe(true);
      for (let count = 0; count < 2; count += 1) {
        const event = moneyIn();
        ({ cursor } = await log.append('client', event));
        sent.push(event);
      }
      expect(ids((await log.readAfter('client', null, 20)).events)).toEqual(sent.map(({ id }) => id));
      await log.stop();

      {
        using earlier = openEarlierLog(dataDir, 10);
        for (const event of sent) expect(earlier.append('client', event)).toBe(true);
        for (let count = 0; count < 2; count += 1) {
          const event = moneyIn();
          expect(earlier.append('client', event)).toBe(false);
          sent.push(event);
        }
        expect(earlier.read('client')).toHaveLength(4 * time);
      }

      const again = open(dataDir);
      const since = await again.readAfter('client', cursor, 20);
      expect(ids(since.events)).toEqual(sent.slice(-2).map(({ id }) => id));
      const all = await again.readAfter('client', null, 20);
      expect(ids(all.events)).toEqual(sent.map(({ id }) => id));
      for (const event of all.events) {
        const { events } = await again.readAfter('client', event.cursor, 20);
        expect(ids(events)).toEqual(sent.slice(all.events.indexOf(event) + 1).map(({ id }) => id));
      }
      await again.stop();
    }
  });

  it('never says afterwards that it reaches back before what that version has given up', async () => {
    const dataDir = await newFolder();
    await open(dataDir).stop();
    const start = Date.now();
    // The second and the third have waited in a spool, and come late.
    const received = [200, 100, 110, 300, 400].map((seconds) =>
      new Date(start + 1_000 * seconds).toISOString(),
    );
    const [gone = moneyIn(), ...later] = received.map((receivedAt) => moneyIn({ receivedAt }));
    {
      using earlier = openEarlierLog(dataDir, 3);
      for (const event of [gone, ...later.slice(0, 3)]) earlier.append('client', event);
    }
    const log = open(dataDir, { retention: 3 });
    for (const event of later.slice(3)) await log.append('client', event);
    expect(ids((await log.readAfter('client', null, 20)).events)).toEqual(later.slice(1).map(({ id }) => id));
    expect(await log.wholeSince('client')).toBeGreaterThan(Date.parse(gone.receivedAt));
    await log.stop();
  });

  it('is searched, and bounded in bytes, as if it had never been away', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    const size = encodeEvent(moneyIn()).length;
    for (let count = 0; count < 10; count += 1) await first.append('client', moneyIn());
    await first.readAfter('client', null, 10, { name: 'all that waits is entered' });
    await first.stop();
    const sent = Array.from({ length: 10 }, () => moneyIn());
    {
      // It trims all that the index holds.
      using earlier = openEarlierLog(dataDir, 10);
      for (const event of sent) earlier.append('client', event);
    }
    const second = open(dataDir, { retention: 100, retentionBytes: 15 * size });
    for (const { id } of sent) {
      await until(async () => {
        const { events } = await second.readAfter('client', null, 100, { name: id });
        return events.length === 1 && events[0]?.id === id;
      });
    }
    await second.append('client', moneyIn());
    expect((await second.readAfter('client', null, 100)).events).toHaveLength(11);
    await second.stop();
  });

  it('is taken over from a version that named the run of what it had seen', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    const event = moneyIn();
    const { cursor } = await first.append('client', event);
    await first.stop();
    const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
    database.exec("ALTER TABLE seen ADD COLUMN run TEXT NOT NULL DEFAULT ''");
    database.close();
    const second = open(dataDir);
    expect(await second.append('client', event)).toMatchObject({ duplicate: true, cursor });
    await second.stop();
    using earlier = openEarlierLog(dataDir, 10);
    expect(earlier.append('client', event)).toBe(true);
  });
});

describe('a file of the embedded log without an index of some events', () => {
  const open = (dataDir: string, more: { retention?: number; retentionBytes?: number } = {}): SqliteLog =>
    new SqliteLog({
      dataDir,
      retention: 1000,
      metrics: silentMetrics,
      names: ({ id }) => [id],
      now: Date.now,
      ...more,
    });

  it.each([
    [
      'all',
      'DROP TABLE names; DROP TABLE blocks; DROP TABLE entered; UPDATE events SET received = NULL, digests = NULL',
    ],
    [
      'the newest, which an earlier version has appended since',
      `DELETE FROM names WHERE position > 150; UPDATE entered SET position = 150;
       UPDATE events SET received = NULL, digests = NULL WHERE position > 150`,
    ],
    ['the newest, which the last run left for a later step', 'UPDATE entered SET position = 150'],
  ])('finds them at once, and by the index in the end: %s', async (_which, sql) => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    const sent = Array.from({ length: 300 }, () => moneyIn());
    await Promise.all(sent.map((event) => first.append('client', event)));
    await first.stop();
    const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
    database.exec(sql);
    database.close();

    const second = open(dataDir);
    const wanted = sent[1] ?? moneyIn();
    const found: string[] = [];
    let cursor: string | null = null;
    for (let hasMore = true; hasMore; ) {
      const page = await second.readAfter('client', cursor, 40, { name: wanted.id });
      found.push(...ids(page.events));
      cursor = page.events.at(-1)?.cursor ?? cursor;
      ({ hasMore } = page);
    }
    expect(found).toContain(wanted.id);
    for (const { id } of [wanted, sent[299] ?? wanted]) {
      await until(async () => {
        const { events } = await second.readAfter('client', null, 1000, { name: id });
        return events.length === 1 && events[0]?.id === id;
      });
    }
    const since = { receivedFrom: Date.now() + 1 };
    expect((await second.readAfter('client', null, 1000, since)).events).toEqual([]);
    await second.stop();
  });

  it('has the names told once more that an earlier version has not told, each time that it was there', async () => {
    const dataDir = await newFolder();
    const names: EventNames = ({ id }) => [id, `late ${id}`];
    const openMore = (): SqliteLog =>
      new SqliteLog({ dataDir, retention: 1000, metrics: silentMetrics, names, now: Date.now });
    const sent: string[] = [];
    for (let time = 0; time < 2; time += 1) {
      const log = openMore();
      const some = Array.from({ length: 100 }, () => moneyIn());
      await Promise.all(some.map((event) => log.append('client', event)));
      sent.push(...some.map(({ id }) => id));
      await log.stop();
      // The version that told fewer names appended the newest, and entered them into its index with the mark as a name.
      const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
      const rows = database.prepare('SELECT position, event FROM events WHERE position % 3 = 0').all();
      for (const { position, event } of rows) {
        const digest = digestOf('client', JSON.parse(String(event)).id);
        database.prepare('DELETE FROM names WHERE position = ?').run(Number(position));
        database
          .prepare('INSERT INTO names VALUES (?, ?), (?, ?)')
          .run(digest, Number(position), '+', Number(position));
        database.prepare('UPDATE events SET digests = ? WHERE position = ?').run(digest, Number(position));
      }
      database.exec('UPDATE entered SET position = (SELECT max(position) FROM events)');
      database.close();

      const second = openMore();
      for (const id of [sent[2], sent[3], sent.at(-1), sent.at(-2)]) {
        await until(async () => {
          const { events } = await second.readAfter('client', null, 1000, { name: `late ${id}` });
          expect(ids(events)).toContain(id);
          return events.length === 1;
        });
        const { events } = await second.readAfter('client', null, 1000, { name: id ?? '' });
        expect(ids(events)).toEqual([id]);
      }
      await second.stop();
    }
  });

  it('is bounded in bytes without being searched', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    await Promise.all(Array.from({ length: 300 }, () => first.append('client', moneyIn())));
    await first.stop();
    const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
    database.exec(
      'DROP TABLE names; DROP TABLE blocks; DROP TABLE entered; UPDATE events SET received = NULL, digests = NULL',
    );
    database.close();

    const second = open(dataDir, { retention: 100_000, retentionBytes: 2_000 });
    await until(async () => {
      await second.append('client', moneyIn());
      return (await second.readAfter('client', null, 1000)).events.length < 10;
    });
    await second.stop();
  });

  it('comes down to bounds that were lowered', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    await Promise.all(Array.from({ length: 300 }, () => first.append('client', moneyIn())));
    await first.stop();
    const fewer = open(dataDir, { retention: 20 });
    for (let added = 0; added < 20; added += 1) await fewer.append('client', moneyIn());
    expect((await fewer.readAfter('client', null, 1000)).events).toHaveLength(20);
    await fewer.stop();
    const smaller = open(dataDir, { retentionBytes: 2_000 });
    const last = moneyIn();
    await smaller.append('client', last);
    const { events } = await smaller.readAfter('client', null, 1000);
    expect(ids(events).at(-1)).toBe(last.id);
    expect(events.length).toBeLessThan(10);
    await smaller.stop();
  });
});

describe('a disk that fails beneath the embedded log', () => {
  /** The reads of a log with 300 events, of which its index has none. */
  const read = async () => {
    const dataDir = await newFolder();
    const log = new SqliteLog({ dataDir, retention: 1000, metrics: silentMetrics, now: Date.now });
    await Promise.all(Array.from({ length: 300 }, () => log.append('client', moneyIn())));
    await log.stop();
    const database = new DatabaseSync(join(dataDir, 'events.sqlite'));
    database.exec('DELETE FROM names; DELETE FROM blocks; DELETE FROM entered');
    const source = new SqliteSource(database, new SqliteBatch(database), () => [], Date.now());
    const find = () =>
      source.find('client', { position: null, direction: 'on', limit: 5 }, { receivedFrom: 0 });
    return { database, source, find };
  };

  it('is read without the index where the index cannot be written', async () => {
    const { database, source, find } = await read();
    database.exec('PRAGMA query_only = ON');
    expect(await find()).toBeUndefined();
    await expect(source.catchUp('client')).rejects.toBeInstanceOf(StoreUnavailableError);
    expect((await source.read('client', null, 5)).entries).toHaveLength(5);
    database.exec('PRAGMA query_only = OFF');
    while (!(await source.catchUp('client')));
    expect((await find())?.entries).toHaveLength(5);
    database.close();
  });

  it('takes an event that it has room for, also beside a look at the disk in the same turn', async () => {
    const dataDir = await newFolder();
    const options = { dataDir, retention: 1000, metrics: silentMetrics, now: Date.now };
    const log = withRoom(12, () => new SqliteLog(options));
    const [health, appended, again] = await Promise.all([
      log.health(),
      log.append('client', moneyIn()),
      log.append('client', moneyIn()),
    ]);
    expect(health).toMatchObject({ writable: false, reasons: [expect.stringContaining('full')] });
    expect([appended, again]).toMatchObject([{ duplicate: false }, { duplicate: false }]);
    expect((await log.readAfter('client', null, 10)).events).toHaveLength(2);
    await log.stop();
  });

  it('is away where it cannot be read', async () => {
    const { database, source, find } = await read();
    database.exec('DROP TABLE events');
    for (const failing of [
      () => source.read('client', null, 5),
      () => source.readBack('client', null, 5),
      () => source.head('client'),
      () => source.bounds('client'),
      () => source.reach('client'),
      () => source.catchUp('client'),
      find,
    ])
      await expect(failing()).rejects.toBeInstanceOf(StoreUnavailableError);
    database.close();
  });
});

describe('a file of the embedded log that was put back to an earlier copy', () => {
  const open = (dataDir: string): SqliteLog =>
    new SqliteLog({ dataDir, retention: 1000, metrics: silentMetrics, now: Date.now });
  const append = async (log: SqliteLog, count: number): Promise<string[]> => {
    const events = Array.from({ length: count }, () => moneyIn());
    for (const event of events) await log.append('client', event);
    return events.map(({ id }) => id);
  };

  /** The cursors of a reader at the moment of the copy, and of one that was ahead of it by 20 events. */
  async function putBack(dataDir: string): Promise<{ copied: string; ahead: string; kept: string[] }> {
    const log = open(dataDir);
    const kept = await append(log, 30);
    const copied = await log.head('client');
    await log.stop();
    const copy = await newFolder();
    await cp(dataDir, copy, { recursive: true });
    const lost = open(dataDir);
    await append(lost, 20);
    const ahead = await lost.head('client');
    await lost.stop();
    await rm(dataDir, { recursive: true });
    await rename(copy, dataDir);
    return { copied, ahead, kept };
  }

  it.each([0, 10, 20, 70])('tells a reader that was ahead, %i events later', async (count) => {
    const dataDir = await newFolder();
    const { copied, ahead, kept } = await putBack(dataDir);
    const log = open(dataDir);
    const added = await append(log, count);
    const gaps = await Promise.all([
      log.readAfter('client', ahead, 5).catch((error: unknown) => error),
      log.readBefore('client', ahead, 5).catch((error: unknown) => error),
      log.readAfter('client', ahead, 5, { receivedFrom: 0 }).catch((error: unknown) => error),
      log.readBefore('client', ahead, 5, { receivedFrom: 0 }).catch((error: unknown) => error),
      log.follow('client', { after: ahead }).catch((error: unknown) => error),
    ]);
    for (const gap of gaps) {
      if (!(gap instanceof EventsGapError)) throw new Error('wanted a gap', { cause: gap });
      expect(gap.head).toBe(await log.head('client'));
      expect(ids((await log.readAfter('client', gap.oldest, 1000)).events)).toEqual([...kept, ...added]);
      expect((await log.readAfter('client', gap.head, 5)).events).toEqual([]);
    }
    expect(ids((await log.readAfter('client', copied, 1000)).events)).toEqual(added);
    await log.stop();
  });
});
