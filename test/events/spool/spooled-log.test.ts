import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import type { EventLog, EventType, NewEvent, StoredEvent } from '../../../src/events/log.ts';
import { openEventLog } from '../../../src/events/open.ts';
import type { EventNames } from '../../../src/events/search.ts';
import { openAbandoned, openSpool } from '../../../src/events/spool/spool-files.ts';
import { countingMetrics, drained, ids, moneyIn, recordingLogger, take } from '../../helpers/events.ts';
import { fillSpool } from '../../helpers/full-spool.ts';
import { type RedisServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { describeEventLog } from '../log.contract.ts';

let root: string;
let redis: RedisServer;
const opened: EventLog[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-spool-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const newFolder = (): Promise<string> => mkdtemp(join(root, 'data-'));

async function open(
  dataDir: string,
  metrics = countingMetrics(),
  retention = 10_000,
  names?: EventNames,
): Promise<EventLog> {
  const log = await openEventLog({
    redisUrl: redis.url,
    dataDir,
    retention,
    logger: recordingLogger(),
    metrics,
    names,
  });
  opened.push(log);
  return log;
}

/** Overwrites the events of a spool, and leaves its schema and its index as they are. */
async function damage(path: string): Promise<void> {
  const bytes = await readFile(path);
  for (let at = bytes.indexOf('"payload"'); at >= 0; at = bytes.indexOf('"payload"', at + 1)) {
    bytes.write('\u0000broken\u0000', at);
  }
  await writeFile(path, bytes);
}

async function appendMany(log: EventLog, client: string, count: number): Promise<NewEvent[]> {
  const events = Array.from({ length: count }, () => moneyIn());
  for (const event of events) await log.append(client, event);
  return events;
}

describe('a log with a spool', () => {
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  describeEventLog('while Redis is there', async ({ retention, metrics }) => {
    const logger = recordingLogger();
    return openEventLog({ redisUrl: redis.url, dataDir: await newFolder(), retention, logger, metrics });
  });
});

it('a spool that takes no event is told of in the log though Redis is well and nobody asks', async () => {
  await using own = await startRedis();
  const dataDir = await newFolder();
  await fillSpool(dataDir, 'true');
  const logger = recordingLogger();
  const metrics = countingMetrics();
  const log = await openEventLog({ redisUrl: own.url, dataDir, retention: 10, logger, metrics });
  const told = { level: 'error', fields: { error: 'no room' }, message: 'the spool takes no event' };
  await until(() => logger.lines.some(({ message }) => message === told.message));
  expect(logger.lines).toContainEqual(told);
  await log.stop();
});

describe('while Redis is away', () => {
  let client: string;
  let dataDir: string;

  beforeEach(async () => {
    redis = await startRedis();
    client = randomUUID();
    dataDir = await newFolder();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((log) => log.stop()));
    await redis.stop();
  });

  it('what it takes when its replica has just turned away is kept here too, until one follows', async () => {
    await using replica = await startRedis();
    const follow = () => replica.admin.replicaof('127.0.0.1', redis.port);
    const isFollowed = async () => (await redis.admin.info('replication')).includes('state=online');
    await redis.admin.config('SET', 'repl-diskless-sync-delay', '0');
    await follow();
    await until(isFollowed);
    const log = await open(dataDir);
    const events = await log.follow(client);
    const [before, meanwhile, after] = [moneyIn(), moneyIn(), moneyIn()];
    await log.append(client, before);
    // A replica that has just come may acknowledge it too late for this append.
    await drained(log);

    await replica.admin.replicaof('NO', 'ONE');
    await until(async () => !(await isFollowed()));
    expect((await log.append(client, meanwhile)).answer).toEqual({ status: 201 });
    // Redis answers and its events are read, but nothing written there stays: an answer of a decider could not be kept.
    expect(await log.health()).toMatchObject({ writable: true, available: false, spooled: 1 });
    const decided = log.append(randomUUID(), moneyIn({ spoolable: false }));
    await expect(decided).rejects.toThrow(StoreUnavailableError);
    expect(ids(await take(events, 2))).toEqual([before.id, meanwhile.id]);

    await follow();
    await drained(log);
    expect(await log.health()).toMatchObject({ available: true, spooled: 0 });
    await log.append(client, after);
    expect(ids(await take(events, 1))).toEqual([after.id]);
  });

  it('every event is told while its replica is away: of more clients, and more of one, than a step moves', async () => {
    await using replica = await startRedis();
    await redis.admin.config('SET', 'repl-diskless-sync-delay', '0');
    const follow = () => replica.admin.replicaof('127.0.0.1', redis.port);
    const isFollowed = async () => (await redis.admin.info('replication')).includes('state=online');
    await follow();
    await until(isFollowed);
    const metrics = countingMetrics();
    const log = await open(dataDir, metrics);
    const clients = Array.from({ length: 20 }, () => randomUUID());
    const streams = new Map<string, AsyncIterator<StoredEvent, undefined>>();
    for (const each of clients) streams.set(each, await log.follow(each));
    const first = moneyIn();
    await log.append(client, first);
    await drained(log);

    await replica.admin.replicaof('NO', 'ONE');
    await until(async () => !(await isFollowed()));
    const sent = new Map<string, string[]>();
    for (const [index, each] of clients.entries()) {
      const events = await appendMany(log, each, index === 0 ? 150 : 2);
      sent.set(
        each,
        events.map(({ id }) => id),
      );
    }
    for (const [each, stream] of streams)
      expect(ids(await take(stream, sent.get(each)?.length ?? 0))).toEqual(sent.get(each));
    // One that the log has is delivered once more.
    await log.append(client, { ...first, receivedAt: new Date().toISOString() });
    expect(await log.health()).toMatchObject({ available: false, spooled: 189 });

    await follow();
    await drained(log);
    for (const each of clients)
      expect(ids((await log.readAfter(each, null, 200)).events)).toEqual(sent.get(each));
    expect(metrics.counts).toMatchObject({ appended: 189, duplicate: 1 });
  });

  it('events are kept, and come in order once it is back', async () => {
    const metrics = countingMetrics();
    const log = await open(dataDir, metrics);
    const before = await appendMany(log, client, 3);
    const events = await log.follow(client);
    await redis.kill();
    const during = await appendMany(log, client, 200);
    expect(await log.health()).toMatchObject({ writable: true, available: false, spooled: 200 });
    await expect(log.readAfter(client, null, 5)).rejects.toThrow(StoreUnavailableError);
    await redis.start();
    const after = await appendMany(log, client, 50);
    expect(ids(await take(events, 250))).toEqual([...during, ...after].map((event) => event.id));
    await drained(log);
    const { events: all } = await log.readAfter(client, null, 1000);
    expect(ids(all)).toEqual([...before, ...during, ...after].map((event) => event.id));
    expect(metrics.counts['drained']).toBe(metrics.counts['spooled']);
  });

  it('what a later version has spooled is found by its names, although an earlier one drains it', async () => {
    const knownTo =
      (...types: readonly string[]): EventNames =>
      ({ id, type }) =>
        types.includes(type) ? [`name ${id}`] : [];
    // A type that the earlier version does not know.
    const event = moneyIn({ type: 'LATER' as EventType });
    const later = await open(dataDir, undefined, undefined, knownTo('MONEY_IN', 'LATER'));
    await redis.kill();
    await later.append(client, event);
    await later.stop();

    await redis.start();
    const earlier = await open(dataDir, undefined, undefined, knownTo('MONEY_IN'));
    await drained(earlier);
    const found = async (log: EventLog) =>
      ids((await log.readAfter(client, null, 10, { name: `name ${event.id}` })).events);
    expect(await found(earlier)).toEqual([event.id]);
    await earlier.stop();
    expect(await found(await open(dataDir, undefined, undefined, knownTo('MONEY_IN', 'LATER')))).toEqual([
      event.id,
    ]);
  });

  it('a message that waits is recognised, and one that Redis knows makes no second event', async () => {
    const log = await open(dataDir);
    const known = moneyIn();
    await log.append(client, known);
    await redis.kill();
    const waiting = moneyIn();
    expect(await log.append(client, waiting)).toEqual({
      answer: { status: 201 },
      duplicate: false,
      conflict: false,
      cursor: null,
    });
    expect(await log.append(client, waiting)).toMatchObject({ duplicate: true, conflict: false });
    expect(await log.append(client, { ...waiting, contents: 'other' })).toMatchObject({ conflict: true });
    expect(await log.append(client, known)).toMatchObject({ answer: { status: 201 } });
    await redis.start();
    await drained(log);
    const { events } = await log.readAfter(client, null, 10);
    expect(ids(events)).toEqual([known.id, waiting.id]);
  });

  it('a message that turns out to differ from the one in Redis is put aside', async () => {
    const log = await open(dataDir);
    const known = moneyIn();
    await log.append(client, known);
    await redis.kill();
    await log.append(client, moneyIn({ id: known.id, amount: '9999.00' }));
    await redis.start();
    await drained(log);
    const database = new DatabaseSync(join(dataDir, 'quarantine.sqlite'));
    const rows = database.prepare('SELECT reason, CAST(body AS TEXT) AS body FROM quarantine').all();
    database.close();
    expect(rows).toEqual([{ reason: 'conflict', body: expect.stringContaining('9999.00') }]);
    expect((await log.readAfter(client, null, 10)).events).toHaveLength(1);
  });

  it('a message that was accepted here and turns out to be rejected in Redis is put aside', async () => {
    const metrics = countingMetrics();
    const log = await open(dataDir, metrics);
    const credit = moneyIn();
    const rejection = { decision: 'REJECTED', refundReason: 'Cuenta cerrada', spoolable: false } as const;
    expect(await log.append(client, { ...credit, ...rejection })).toMatchObject({ answer: { status: 422 } });
    const accepted = moneyIn();
    await log.append(client, accepted);
    await redis.kill();
    // The decider has been switched off.
    for (const again of [credit, accepted])
      expect(await log.append(client, again)).toMatchObject({ answer: { status: 201 } });
    await redis.start();
    await drained(log);
    const database = new DatabaseSync(join(dataDir, 'quarantine.sqlite'));
    const rows = database.prepare('SELECT reason, CAST(body AS TEXT) AS body FROM quarantine').all();
    database.close();
    expect(rows).toEqual([{ reason: 'conflict', body: credit.payload }]);
    expect(metrics.counts['quarantined']).toBe(1);
    const { events } = await log.readAfter(client, null, 10);
    expect(events.map(({ decision }) => decision)).toEqual(['REJECTED', 'ACCEPTED']);
  });

  it('what somebody decided on is not kept, and nothing is recalled but what waits here', async () => {
    const log = await open(dataDir);
    await redis.kill();
    const waiting = moneyIn();
    await log.append(client, waiting);
    await expect(log.append(client, moneyIn({ spoolable: false }))).rejects.toThrow(StoreUnavailableError);
    expect(await log.recall(client, waiting)).toMatchObject({ answer: { status: 201 }, duplicate: true });
    await expect(log.recall(client, moneyIn())).rejects.toThrow(StoreUnavailableError);
    await expect(log.recall(randomUUID(), moneyIn())).rejects.toThrow(StoreUnavailableError);
    await redis.start();
    await drained(log);
    expect(await log.recall(client, moneyIn())).toBeUndefined();
    expect(await log.recall(client, waiting)).toMatchObject({ duplicate: true, cursor: expect.any(String) });
  });

  it('events outlive the process, which says how many it leaves, and are drained by the next one', async () => {
    const logger = recordingLogger();
    const left = () => logger.lines.filter(({ fields }) => 'spooled' in fields);
    const log = await openEventLog({ redisUrl: redis.url, dataDir, retention: 10_000, logger });
    await redis.kill();
    const spooled = await appendMany(log, client, 5);
    await log.stop();
    expect(left()).toMatchObject([{ level: 'warn', fields: { spooled: 5 } }]);
    await redis.start();
    const next = await openEventLog({ redisUrl: redis.url, dataDir, retention: 10_000, logger });
    await drained(next);
    expect(ids((await next.readAfter(client, null, 10)).events)).toEqual(spooled.map((event) => event.id));
    await next.stop();
    expect(left()).toHaveLength(1);
  });

  it('processes on one folder spool beside each other, and one drains what another left behind', async () => {
    const [one, other] = [await open(dataDir), await open(dataDir)];
    await redis.kill();
    const mine = await appendMany(one, client, 3);
    const theirs = await appendMany(other, client, 3);
    await Promise.all([one.stop(), other.stop()]);
    await redis.start();
    const next = await open(dataDir);
    await drained(next);
    const { events } = await next.readAfter(client, null, 10);
    expect(new Set(ids(events))).toEqual(new Set([...mine, ...theirs].map((event) => event.id)));
    expect(events).toHaveLength(6);
  });

  it('spools that cannot be read are named, and hold up no other', async () => {
    const former = await open(dataDir);
    await redis.kill();
    const spooled = await appendMany(former, client, 5);
    await former.stop();
    // All that is left of the former process, one of them under another name.
    await rename(join(dataDir, 'spooled-0.sqlite'), join(dataDir, 'spooled-3.sqlite'));
    await writeFile(
      join(dataDir, 'spooled-0.sqlite'),
      'garbage, and enough of it to be a file of some kind'.repeat(100),
    );
    await mkdir(join(dataDir, 'spooled-1.sqlite'));
    const metrics = countingMetrics();
    const logger = recordingLogger();
    const next = await openEventLog({ redisUrl: redis.url, dataDir, retention: 10_000, logger, metrics });
    opened.push(next);
    spooled.push(...(await appendMany(next, client, 5)));
    expect(await next.health()).toMatchObject({
      writable: true,
      spooled: 10,
      unreadableSpools: ['spooled-0.sqlite', 'spooled-1.sqlite'],
    });
    expect(metrics.counts['unreadableSpools']).toBe(2);
    const named = logger.lines.filter(({ message }) => message.startsWith('a spool cannot be read'));
    expect(named.map(({ fields }) => fields)).toMatchObject([
      { spool: 'spooled-0.sqlite', error: expect.stringContaining('not a database') },
      { spool: 'spooled-1.sqlite', error: expect.any(String) },
    ]);
    await redis.start();
    await drained(next);
    const { events } = await next.readAfter(client, null, 20);
    expect(ids(events).sort()).toEqual(spooled.map((event) => event.id).sort());
  });

  it('a spool that cannot be opened is let go of, and delivered once it can be', async () => {
    const waiting = openSpool(dataDir);
    const event = moneyIn();
    await waiting.add(client, event);
    waiting.close();
    const rename = (from: string, to: string) => {
      const database = new DatabaseSync(waiting.path);
      database.exec(`ALTER TABLE spool RENAME COLUMN ${from} TO ${to}`);
      database.close();
    };
    rename('event', 'earlier');
    const damaged = [waiting.name];
    const own = openSpool(dataDir);
    expect(own.name).not.toBe(waiting.name);
    const { abandoned, unreadable } = openAbandoned(dataDir, [own.path], []);
    expect([abandoned, unreadable.map(({ name }) => name)]).toEqual([[], damaged]);
    // It is locked as long as anybody has it open.
    rename('earlier', 'event');
    const [found] = openAbandoned(dataDir, [own.path], []).abandoned;
    expect(found?.first(client)).toMatchObject([{ event: { id: event.id } }]);
    found?.close();
    own.close();
  });

  it('a spool that turns out to be damaged holds up no other', async () => {
    const [one, other] = [await open(dataDir), await open(dataDir)];
    const [lost, kept] = [randomUUID(), randomUUID()];
    await redis.kill();
    await appendMany(one, lost, 100);
    const events = await appendMany(other, kept, 5);
    await Promise.all([one.stop(), other.stop()]);
    const path = join(dataDir, 'spooled-0.sqlite');
    await damage(path);
    const next = await open(dataDir);
    await redis.start();
    await until(async () => (await next.health()).unreadableSpools?.includes('spooled-0.sqlite'));
    await until(async () => (await next.health()).available);
    await until(async () => (await next.readAfter(kept, null, 10)).events.length === events.length);
    // What comes from now on is not put behind what cannot be read: neither at once, nor while Redis is away.
    const later = await appendMany(next, lost, 2);
    await redis.kill();
    later.push(...(await appendMany(next, lost, 2)));
    await redis.start();
    const wanted = later.map(({ id }) => id);
    await until(async () => {
      const read = await next.readAfter(lost, null, 200).catch(() => undefined);
      return read !== undefined && wanted.every((id) => ids(read.events).includes(id));
    });
  });

  it('events that were in Redis already when their process ended are not repeated', async () => {
    const log = await open(dataDir);
    const event = moneyIn();
    await log.append(client, event);
    await log.stop();
    // As if it had ended between the append and the removal.
    const spool = openSpool(dataDir);
    await spool.add(client, event);
    spool.close();
    const next = await open(dataDir);
    await drained(next);
    expect(ids((await next.readAfter(client, null, 10)).events)).toEqual([event.id]);
  });

  it('a log opens, keeps events, and delivers them when Redis comes', async () => {
    await redis.kill();
    const log = await open(dataDir);
    const event = moneyIn();
    expect((await log.append(client, event)).answer).toEqual({ status: 201 });
    await expect(log.follow(client)).rejects.toThrow(StoreUnavailableError);
    await redis.start();
    await drained(log);
    expect(ids((await log.readAfter(client, null, 10)).events)).toEqual([event.id]);
  });

  it('nothing is kept, and that is said, where there is no folder for the spool either', async () => {
    const notFolder = join(dataDir, 'file');
    await writeFile(notFolder, '');
    const log = await open(notFolder);
    const event = moneyIn();
    expect((await log.append(client, event)).cursor).toEqual(expect.any(String));
    await redis.kill();
    await expect(log.append(client, moneyIn())).rejects.toThrow(StoreUnavailableError);
    expect(await log.health()).toMatchObject({ writable: false, available: false, spooled: 0 });
    await rm(notFolder);
    await mkdir(notFolder);
    expect((await log.append(client, moneyIn())).cursor).toBeNull();
    expect(await log.health()).toMatchObject({ writable: true, spooled: 1 });
  });
});
