import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, open as openFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import type { Appended, NewEvent } from '../../../src/events/log.ts';
import { silentMetrics } from '../../../src/events/metrics.ts';
import { Quarantine } from '../../../src/events/quarantine.ts';
import type { RemoteLog } from '../../../src/events/spool/remote-log.ts';
import { openSpool } from '../../../src/events/spool/spool-files.ts';
import { SpooledLog } from '../../../src/events/spool/spooled-log.ts';
import { SqliteLog } from '../../../src/events/sqlite/sqlite-log.ts';
import { moneyIn, recordingLogger } from '../../helpers/events.ts';
import { until } from '../../helpers/until.ts';

const [CLIENT, OTHER] = [randomUUID(), randomUUID()];
const NAME = 'spooled-0.sqlite';
const KEPT = { answer: { status: 201 }, duplicate: false, conflict: false, cursor: null };
const FOUND = { answer: { status: 201 }, duplicate: true, conflict: false, cursor: null };

/** A log that is away when the test says so. */
class Remote extends SqliteLog implements RemoteLog {
  isAway = false;
  /** Ids of the events that were sent to it from a spool. */
  readonly sent: string[] = [];

  override async append(clientId: string, event: NewEvent): Promise<Appended> {
    if (this.isAway) throw new StoreUnavailableError('It is away.');
    return super.append(clientId, event);
  }

  appendAll(clientId: string, events: readonly NewEvent[]): Promise<readonly Appended[]> {
    this.sent.push(...events.map(({ id }) => id));
    return Promise.all(events.map((event) => this.append(clientId, event)));
  }

  override async health(): ReturnType<SqliteLog['health']> {
    return { ...(await super.health()), writable: !this.isAway };
  }

  /** The test ends it. */
  override async stop(): Promise<void> {}

  end(): Promise<void> {
    return super.stop();
  }
}

let root: string;
let dataDir: string;
let remote: Remote;
let log: SpooledLog | undefined;
let logger: ReturnType<typeof recordingLogger>;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  root = await mkdtemp(join(tmpdir(), 'pasarela-damaged-'));
  dataDir = await mkdtemp(join(root, 'data-'));
  const folder = await mkdtemp(join(root, 'log-'));
  remote = new Remote({ dataDir: folder, retention: 1_000, metrics: silentMetrics, now: Date.now });
  logger = recordingLogger();
});
afterEach(async () => {
  vi.useRealTimers();
  await log?.stop();
  log = undefined;
  await remote.end();
  await rm(root, { recursive: true, force: true });
});

function open(): SpooledLog {
  const metrics = silentMetrics;
  const quarantine = new Quarantine({ dataDir, logger, metrics });
  log = new SpooledLog({ log: remote, dataDir, quarantine, logger, metrics, names: () => [] });
  return log;
}

/** Makes a spool in which events of CLIENT wait. Returns its path. */
async function leave(...events: readonly NewEvent[]): Promise<string> {
  const spool = openSpool(dataDir);
  for (const event of events) await spool.add(CLIENT, event);
  spool.close();
  return spool.path;
}

/** Overwrites an event, whose row stays. */
function damageEvent(path: string, event: NewEvent): void {
  using database = new DatabaseSync(path);
  database.prepare(`UPDATE spool SET event = 'damaged' WHERE identity = ?`).run(event.identity);
}

/** Overwrites the index by which a message is recognised. */
async function damageIndex(path: string): Promise<void> {
  const database = new DatabaseSync(path);
  const index = database
    .prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_spool_1'`)
    .get();
  const size = Number(database.prepare('PRAGMA page_size').get()?.['page_size']);
  database.close();
  await using file = await openFile(path, 'r+');
  await file.write(Buffer.alloc(size, 0x5a), 0, size, (Number(index?.['rootpage']) - 1) * size);
}

const isNamed = async (log: SpooledLog): Promise<boolean> =>
  (await log.health()).unreadableSpools?.includes(NAME) === true;
const lines = (message: string) => logger.lines.filter((line) => line.message === message);

it('a credit that a damaged spool has answered stays answered, though an event before it cannot be read', async () => {
  const [unreadable, credit] = [moneyIn(), moneyIn()];
  damageEvent(await leave(unreadable, credit), unreadable);
  const log = open();
  await until(() => isNamed(log));
  for (const _time of ['once', 'again']) {
    for (const event of [unreadable, credit]) expect(await log.recall(CLIENT, event)).toEqual(FOUND);
    expect(await log.recall(CLIENT, { ...credit, contents: 'other' })).toMatchObject({ conflict: true });
    // Nobody waits for what cannot be read.
    expect(await log.recall(CLIENT, moneyIn())).toBeUndefined();
    vi.advanceTimersByTime(10_000);
  }
  expect(remote.sent).toEqual([]);
});

it('a recovered copy takes the place of a damaged spool while the gateway runs', async () => {
  const [unreadable, credit] = [moneyIn(), moneyIn()];
  const path = await leave(unreadable, credit);
  const copy = join(root, 'recovered.sqlite');
  await cp(path, copy);
  damageEvent(path, unreadable);
  const log = open();
  await until(() => isNamed(log));
  for (const suffix of ['', '-wal']) await rename(path + suffix, join(root, `damaged.sqlite${suffix}`));
  await rename(copy, path);
  await until(async () => {
    vi.advanceTimersByTime(10_000);
    return !(await isNamed(log));
  });
  expect(remote.sent).toEqual([unreadable.id, credit.id]);
  expect(await log.recall(CLIENT, credit)).toMatchObject({ duplicate: true, cursor: expect.any(String) });
});

it('an empty spool whose index is damaged keeps no credit from the log, nor a webhook from the next spool', async () => {
  await damageIndex(await leave());
  const log = open();
  expect(await log.recall(CLIENT, moneyIn())).toBeUndefined();
  remote.isAway = true;
  const events = [moneyIn(), moneyIn()];
  const kept = await Promise.all(events.map((event) => log.append(CLIENT, event)));
  expect(kept).toEqual([KEPT, KEPT]);
  expect(await log.health()).toMatchObject({ writable: true, spooled: 2, unreadableSpools: [NAME] });
  remote.isAway = false;
  await until(async () => (await log.health()).spooled === 0);
  expect(new Set(remote.sent)).toEqual(new Set(events.map(({ id }) => id)));
});

it('a spool whose index is damaged is noticed while nobody needs it, and stays named', async () => {
  await damageIndex(await leave());
  const log = open();
  for (const _time of ['once', 'again']) {
    await until(() => isNamed(log));
    vi.advanceTimersByTime(10_000);
  }
  expect(await log.health()).toMatchObject({ writable: true, spooled: 0 });
  expect([lines('the spool takes no event'), lines('the spool takes events again')]).toEqual([[], []]);
  const named = logger.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields);
  expect(named).toEqual([{ spool: NAME, error: expect.stringContaining('malformed') }]);
});

it('nobody is asked about a credit of a client whose events wait where they cannot be found', async () => {
  const unreadable = moneyIn();
  const path = await leave(unreadable);
  damageEvent(path, unreadable);
  await damageIndex(path);
  const log = open();
  await until(() => isNamed(log));
  await expect(log.recall(CLIENT, moneyIn())).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(await log.recall(OTHER, moneyIn())).toBeUndefined();
});

it('a spool is named from which nothing can be deleted, and what the log has is sent to it once', async () => {
  const events = [moneyIn(), moneyIn(), moneyIn()];
  await damageIndex(await leave(...events));
  const log = open();
  for (const _time of ['once', 'again']) {
    await until(() => isNamed(log));
    vi.advanceTimersByTime(10_000);
  }
  await until(async () => (await log.health()).spooled === 0);
  expect(remote.sent).toEqual(events.map(({ id }) => id));
  for (const event of events)
    expect(await log.recall(CLIENT, event)).toMatchObject({ duplicate: true, cursor: expect.any(String) });
  expect(lines('the spool cannot be shortened')).toEqual([]);
});

it('a start on a spool with an unreadable event says nothing of the disk', async () => {
  const event = moneyIn();
  damageEvent(await leave(event), event);
  const log = open();
  await until(() => isNamed(log));
  // It has looked again before it says how it is.
  remote.isAway = true;
  expect((await log.health()).writable).toBe(true);
  expect([lines('the spool takes no event'), lines('the spool takes events again')]).toEqual([[], []]);
});
