import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import { OtherHistoryError, StoreUnavailableError, UnreplicatedError } from '../../../src/events/errors.ts';
import type { Appended, NewEvent } from '../../../src/events/log.ts';
import { type EventMetrics, silentMetrics } from '../../../src/events/metrics.ts';
import { Quarantine } from '../../../src/events/quarantine.ts';
import type { RemoteLog } from '../../../src/events/spool/remote-log.ts';
import type { Spool } from '../../../src/events/spool/spool.ts';
import { openSpool } from '../../../src/events/spool/spool-files.ts';
import { SpooledLog } from '../../../src/events/spool/spooled-log.ts';
import { SqliteLog } from '../../../src/events/sqlite/sqlite-log.ts';
import { countingMetrics, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { until } from '../../helpers/until.ts';

const CLIENT = randomUUID();

/** A log that is away when the test says so, and that takes what waited as slowly as the test wants. */
class Remote extends SqliteLog implements RemoteLog {
  isAway = false;
  /** Clients whose part of it is away, as when one node of a Cluster is. */
  readonly awayFor = new Set<string>();
  /** How many steps of draining have begun. */
  steps = 0;
  /** The client of each of them. */
  readonly asked: string[] = [];
  gate: Promise<void> | undefined;
  /** Names the history of its data; the replicas of that, if it has some, lack everything. */
  unreplicated: string | undefined;
  /** Clients whose part of it has all its replicas. */
  readonly replicatedFor = new Set<string>();
  /** Called when it has taken a step. */
  afterStep: ((clientId: string) => Promise<unknown>) | undefined;
  /** The events of each step that it took. */
  readonly sent: string[][] = [];

  override async append(clientId: string, event: NewEvent): Promise<Appended> {
    if (this.isAway || this.awayFor.has(clientId)) throw new StoreUnavailableError('It is away.');
    return super.append(clientId, event);
  }

  async appendAll(
    clientId: string,
    events: readonly NewEvent[],
    history?: string,
  ): Promise<readonly Appended[]> {
    this.steps += 1;
    this.asked.push(clientId);
    await this.gate;
    if (history !== undefined && history !== this.unreplicated)
      throw new OtherHistoryError('It has another history.');
    const appended = await Promise.all(events.map((event) => this.append(clientId, event)));
    this.sent.push(events.map(({ id }) => id));
    await this.afterStep?.(clientId);
    if (this.unreplicated === undefined || this.replicatedFor.has(clientId)) return appended;
    throw new UnreplicatedError('Replicas lack it.', this.unreplicated);
  }

  /** The test ends it. */
  override async stop(): Promise<void> {}

  end(): Promise<void> {
    return super.stop();
  }
}

let root: string;
let remote: Remote;
let logger: ReturnType<typeof recordingLogger>;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-spool-'));
  const folder = await mkdtemp(join(root, 'log-'));
  remote = new Remote({ dataDir: folder, retention: 1_000, metrics: silentMetrics, now: Date.now });
  logger = recordingLogger();
});
afterEach(async () => {
  vi.useRealTimers();
  await remote.end();
  await rm(root, { recursive: true, force: true });
});

const newFolder = (): Promise<string> => mkdtemp(join(root, 'data-'));

function open(dataDir: string, metrics: EventMetrics = silentMetrics): SpooledLog {
  const quarantine = new Quarantine({ dataDir, logger, metrics });
  return new SpooledLog({
    log: remote,
    dataDir,
    quarantine,
    logger,
    metrics,
    names: () => [],
  });
}

/** What a process that ended has left in a spool that is not the first of its folder. Returns its path. */
async function leave(dataDir: string, event: NewEvent): Promise<string> {
  const [first, second] = [openSpool(dataDir), openSpool(dataDir)];
  await second.add(CLIENT, event);
  first.close();
  second.close();
  return second.path;
}

it('a log that stops while it drains ends once what it has sent is out of the spool', async () => {
  const dataDir = await newFolder();
  const log = open(dataDir);
  remote.isAway = true;
  await log.append(CLIENT, moneyIn());
  const opened = Promise.withResolvers<void>();
  remote.gate = opened.promise;
  const { steps } = remote;
  remote.isAway = false;
  await until(() => remote.steps > steps);
  const stopped = log.stop();
  opened.resolve();
  await stopped;
  const spool = openSpool(dataDir);
  expect(spool.size).toBe(0);
  spool.close();
  expect(JSON.stringify(logger.lines)).not.toContain('cannot be shortened');
});

it('a damaged spool is told of once, and without what it holds, though it is tried again and again', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const dataDir = await newFolder();
  await leave(dataDir, moneyIn());
  const database = new DatabaseSync(join(dataDir, 'spooled-1.sqlite'));
  database.exec(`UPDATE spool SET event = '{"payload":"paid by","payer":Ana Torres}'`);
  database.close();
  const unreadable: number[] = [];
  const log = open(dataDir, { ...silentMetrics, unreadableSpools: (count) => unreadable.push(count) });
  const told = () => logger.lines.filter(({ message }) => message.startsWith('a spool cannot be read'));
  const isTold = async () => (await log.health()).unreadableSpools?.includes('spooled-1.sqlite');
  await until(isTold);
  const looks = unreadable.length;
  for (let again = 0; again < 3; again += 1) {
    vi.advanceTimersByTime(10_000);
    await until(isTold);
  }
  await log.stop();
  expect(told()).toHaveLength(1);
  expect(unreadable.slice(looks)).not.toContain(0);
  expect(JSON.stringify(logger.lines)).not.toContain('Ana');
});

/** A spool of an earlier process in which the event of one client cannot be read, and those of another can. */
async function damagedSpool(
  dataDir: string,
  waiting: {
    readonly lost: string;
    readonly unreadable: NewEvent;
    readonly other: string;
    readonly events: readonly NewEvent[];
  },
): Promise<Pick<Spool, 'name'>> {
  const { lost, unreadable, other, events } = waiting;
  const spool = openSpool(dataDir);
  await spool.add(lost, unreadable);
  await Promise.all(events.map((event) => spool.add(other, event)));
  spool.close();
  const database = new DatabaseSync(spool.path);
  database.prepare('UPDATE spool SET event = ? WHERE client = ?').run('damaged', lost);
  database.close();
  return spool;
}

it('events of others leave a damaged spool, many steps of them, and nothing is added to it meanwhile', async () => {
  const dataDir = await newFolder();
  const [lost, other] = ['00000000-0000-4000-8000-000000000000', 'ffffffff-ffff-4fff-8fff-ffffffffffff'];
  const [unreadable, events] = [moneyIn(), Array.from({ length: 200 }, () => moneyIn())];
  const spool = await damagedSpool(dataDir, { lost, unreadable, other, events });
  const opened = Promise.withResolvers<void>();
  remote.gate = opened.promise;
  const log = open(dataDir);
  await until(() => remote.asked.includes(other));
  remote.isAway = true;
  const later = moneyIn();
  await log.append(lost, later);
  remote.isAway = false;
  opened.resolve();
  await until(() => remote.sent.flat().includes(later.id));
  expect(new Set(remote.sent.flat())).toEqual(new Set([...events, later].map(({ id }) => id)));
  await until(async () => (await log.health()).unreadableSpools?.includes(spool.name));
  expect((await log.health()).spooled).toBe(0);
  await log.stop();
  // What cannot be read waits for somebody who repairs the file.
  const left = openSpool(dataDir);
  expect([left.name, left.clients, left.size]).toEqual([spool.name, [lost], 1]);
  left.close();
});

it('a message of a client whose events cannot be read is asked for while those of others leave the same spool', async () => {
  const dataDir = await newFolder();
  const [lost, other] = ['00000000-0000-4000-8000-000000000000', 'ffffffff-ffff-4fff-8fff-ffffffffffff'];
  const unreadable = moneyIn();
  await damagedSpool(dataDir, { lost, unreadable, other, events: [moneyIn()] });
  const opened = Promise.withResolvers<void>();
  remote.gate = opened.promise;
  const log = open(dataDir);
  await until(() => remote.asked.includes(other));
  expect(await log.recall(lost, moneyIn())).toBeUndefined();
  expect(await log.recall(lost, unreadable)).toMatchObject({ duplicate: true, cursor: null });
  // What this one waits for may still come.
  await expect(log.recall(other, moneyIn())).rejects.toBeInstanceOf(StoreUnavailableError);
  opened.resolve();
  await log.stop();
});

it('a log that has stopped looks for no spools any more', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const log = open(await newFolder());
  expect(vi.getTimerCount()).toBe(1);
  await log.stop();
  expect(vi.getTimerCount()).toBe(0);
});

it('a log that has stopped leaves nothing for an earlier version to find', async () => {
  const dataDir = await newFolder();
  await writeFile(join(dataDir, 'spool-0.sqlite'), '');
  const baits = async () => (await readdir(dataDir)).filter((name) => /^spool-9\d{8}\.sqlite$/.test(name));
  const log = open(dataDir);
  expect(await baits()).toHaveLength(1);
  await log.stop();
  expect(await baits()).toEqual([]);
});

it('a log that has stopped opens no spool any more, though it could not when it began', async () => {
  const dataDir = join(await newFolder(), 'later');
  await writeFile(dataDir, '');
  const log = open(dataDir);
  await log.stop();
  await rm(dataDir);
  await mkdir(dataDir);
  remote.isAway = true;
  await expect(log.append(CLIENT, moneyIn())).rejects.toBeInstanceOf(StoreUnavailableError);
  expect(await readdir(dataDir)).toEqual([]);
});

it('how many events wait is told as they come and as they go', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const told: number[] = [];
  const log = open(await newFolder(), { ...silentMetrics, waiting: (count) => void told.push(count) });
  const others = randomUUID();
  remote.awayFor.add(CLIENT).add(others);
  for (const client of [CLIENT, CLIENT, others]) await log.append(client, moneyIn());
  remote.awayFor.delete(CLIENT);
  await until(async () => (await log.health()).spooled === 1);
  remote.awayFor.delete(others);
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
  expect(told).toEqual([0, 1, 2, 3, 1, 0]);
});

it('events that come at the same moment all wait, and all reach the log once it is back', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  const events = Array.from({ length: 5 }, () => moneyIn());
  await Promise.all(events.map((event) => log.append(CLIENT, event)));
  expect((await log.health()).spooled).toBe(events.length);
  remote.isAway = false;
  await until(async () => (await log.health()).spooled === 0);
  const { events: kept } = await remote.readAfter(CLIENT, null, 10);
  expect(kept.map(({ id }) => id)).toEqual(events.map(({ id }) => id));
  await log.stop();
});

it('a short event does not go before a long one for which a step has no room: what goes takes all before it along', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  const long = JSON.stringify({ filler: 'x'.repeat(600_000) });
  const events = [moneyIn({ payload: long }), moneyIn({ payload: long }), moneyIn()];
  for (const event of events) await log.append(CLIENT, event);
  remote.isAway = false;
  await until(() => remote.sent.length > 0);
  expect(remote.sent[0]).toEqual([events[0]?.id]);
  await until(async () => (await log.health()).spooled === 0);
  expect(remote.sent).toEqual([[events[0]?.id], [events[1]?.id, events[2]?.id]]);
  await log.stop();
});

it('how long events have waited is logged once the log has them', async () => {
  const now = Date.now();
  const restore = useClock({ ...clock, now: () => now });
  onTestFinished(restore);
  const log = open(await newFolder());
  const others = randomUUID();
  remote.isAway = true;
  await log.append(CLIENT, moneyIn({ receivedAt: new Date(now - 420_000).toISOString() }));
  for (const client of [CLIENT, others]) await log.append(client, moneyIn());
  remote.isAway = false;
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
  expect(logger.lines.filter(({ level }) => level === 'info')).toEqual([
    { level: 'info', fields: { events: 3, seconds: 420 }, message: expect.any(String) },
  ]);
});

it('how long events have waited is logged of each outage alone, and not of one that was short', async () => {
  const now = Date.now();
  const restore = useClock({ ...clock, now: () => now });
  onTestFinished(restore);
  const log = open(await newFolder());
  const told = () => logger.lines.filter(({ level }) => level === 'info').map(({ fields }) => fields);
  const outage = async (waitedMs: number) => {
    remote.isAway = true;
    await log.append(CLIENT, moneyIn({ receivedAt: new Date(now - waitedMs).toISOString() }));
    remote.isAway = false;
    await until(async () => (await log.health()).spooled === 0);
  };
  await outage(420_000);
  await until(() => told().length === 1);
  await outage(60_000);
  await until(() => told().length === 2);
  await outage(400);
  await log.stop();
  expect(told()).toEqual([
    { events: 1, seconds: 420 },
    { events: 1, seconds: 60 },
  ]);
});

it('what a full disk keeps in the spool although the log has it is deleted once there is room', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const dataDir = await newFolder();
  const [event, other] = [moneyIn(), randomUUID()];
  const before = openSpool(dataDir);
  await before.add(CLIENT, event);
  before.close();
  const file = new DatabaseSync(before.path);
  // There is room for as long as an event of the other client waits.
  file.exec(`CREATE TRIGGER full BEFORE DELETE ON spool
    WHEN NOT EXISTS (SELECT 1 FROM spool WHERE client = '${other}')
    BEGIN SELECT RAISE(ABORT, 'full'); END`);
  file.close();
  const log = open(dataDir);
  await until(() => JSON.stringify(logger.lines).includes('cannot be shortened'));
  // What still lies in the spool has no place in the log that could be told.
  const isInSpool = async () => (await log.recall(CLIENT, event))?.cursor === null;
  expect(await isInSpool()).toBe(true);
  remote.awayFor.add(other);
  await log.append(other, moneyIn());
  vi.advanceTimersByTime(10_000);
  await until(async () => !(await isInSpool()));
  await log.stop();
  const after = openSpool(dataDir);
  expect(after.clients).toEqual([other]);
  after.close();
});

it('what a full disk keeps in a spool that another process has left is sent to the log once', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const dataDir = await newFolder();
  const file = new DatabaseSync(await leave(dataDir, moneyIn()));
  file.exec(`CREATE TRIGGER full BEFORE DELETE ON spool BEGIN SELECT RAISE(ABORT, 'full'); END`);
  file.close();
  const metrics = countingMetrics();
  const log = open(dataDir, metrics);
  await until(() => JSON.stringify(logger.lines).includes('cannot be shortened'));
  // It looks for what other processes have left.
  for (const _time of ['once', 'again']) {
    vi.advanceTimersByTime(10_000);
    expect(metrics.counts['waiting']).toBe(0);
  }
  await log.stop();
  expect(metrics.counts).toMatchObject({ drained: 1, appended: 1 });
});

it('what another process has left empty is free for the next one', async () => {
  const dataDir = await newFolder();
  const left = [openSpool(dataDir), openSpool(dataDir)];
  for (const spool of left) spool.close();
  const log = open(dataDir);
  const next = openSpool(dataDir);
  expect(next.path).toBe(left[1]?.path);
  next.close();
  await log.stop();
});

it('a message that waits in what another process has left is recognised, and counted', async () => {
  const dataDir = await newFolder();
  const event = moneyIn();
  remote.isAway = true;
  await leave(dataDir, event);
  const log = open(dataDir);
  expect((await log.health()).spooled).toBe(1);
  await log.append(randomUUID(), moneyIn());
  expect((await log.health()).spooled).toBe(2);
  expect(await log.recall(CLIENT, event)).toMatchObject({ duplicate: true, conflict: false, cursor: null });
  await expect(log.recall(CLIENT, moneyIn())).rejects.toBeInstanceOf(StoreUnavailableError);
  await log.stop();
});

/** Until the test ends, a recall never tires of waiting for the disk. */
function waitForever(): void {
  const { sleep } = clock;
  const restore = useClock({
    ...clock,
    sleep: (ms, options) => (ms === 1_000 ? new Promise(() => undefined) : sleep(ms, options)),
  });
  onTestFinished(restore);
}

it('a message is asked for once the events of its client are in the log, while those of another client wait on', async () => {
  waitForever();
  const log = open(await newFolder());
  const other = randomUUID();
  remote.isAway = true;
  for (const client of [other, CLIENT]) await log.append(client, moneyIn());
  remote.awayFor.add(other);
  const asked = log.recall(CLIENT, moneyIn());
  remote.isAway = false;
  expect(await asked).toBeUndefined();
  expect((await log.health()).spooled).toBe(1);
  await log.stop();
}, 60_000);

it('a message that is not known here is asked for once what another process has left is in the log', async () => {
  waitForever();
  const dataDir = await newFolder();
  const opened = Promise.withResolvers<void>();
  remote.gate = opened.promise;
  await leave(dataDir, moneyIn());
  const log = open(dataDir);
  await until(() => remote.steps === 1);
  const asked = log.recall(CLIENT, moneyIn());
  opened.resolve();
  expect(await asked).toBeUndefined();
  await log.stop();
});

it('events of one client do not wait for those of others whose part of the log stays away, each time', async () => {
  const log = open(await newFolder());
  const away = Array.from({ length: 20 }, () => randomUUID());
  for (const client of away) {
    remote.awayFor.add(client);
    await log.append(client, moneyIn());
  }
  for (const _time of [1, 2]) {
    remote.awayFor.add(CLIENT);
    expect((await log.append(CLIENT, moneyIn())).cursor).toBeNull();
    remote.awayFor.delete(CLIENT);
    await until(async () => (await log.health()).spooled === away.length);
    expect((await log.append(CLIENT, moneyIn())).cursor).not.toBeNull();
  }
  remote.awayFor.clear();
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
});

it('a pass begins with the clients that the one before did not reach, though one that it had reached failed after that', async () => {
  const dataDir = await newFolder();
  const refused = Array.from({ length: 8 }, (_, number) => `b${number}`);
  const before = openSpool(dataDir);
  // Two steps of the first client.
  for (const client of [...Array.from({ length: 65 }, () => 'a'), ...refused, 'c'])
    await before.add(client, moneyIn());
  before.close();
  for (const client of refused) remote.awayFor.add(client);
  remote.afterStep = async (client) => client === 'a' && remote.awayFor.add(client);
  const log = open(dataDir);
  await until(() => remote.asked.includes('c'));
  expect(remote.asked.slice(0, 11)).toEqual(['a', ...refused, 'a', 'c']);
  remote.afterStep = undefined;
  remote.awayFor.clear();
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
});

it('pauses grow while the log refuses, none follows a pass in which nothing failed, and the next one is short again', async () => {
  const pauses: number[] = [];
  const restore = useClock({
    ...clock,
    async sleep(ms, options) {
      pauses.push(ms);
      await clock.immediate();
      options?.signal?.throwIfAborted();
    },
  });
  onTestFinished(restore);
  const log = open(await newFolder());
  remote.isAway = true;
  await log.append(CLIENT, moneyIn());
  await until(() => pauses.length > 5);
  expect(pauses.slice(0, 6)).toEqual([25, 50, 100, 200, 400, 400]);
  // More steps than one pass makes; then the log refuses again.
  let taken = 0;
  let before = 0;
  remote.afterStep = async () => {
    await log.append(CLIENT, moneyIn());
    if (taken === 0) before = pauses.length;
    taken += 1;
    remote.isAway = taken > 200;
  };
  remote.isAway = false;
  await until(() => taken > 200 && pauses.length > before + 2);
  expect(taken).toBe(201);
  expect(pauses.slice(before, before + 3)).toEqual([25, 50, 100]);
  await log.stop();
});

it('events of one client wait behind those of its own, and those of others do not', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  const [first, second] = [moneyIn(), moneyIn()];
  await log.append(CLIENT, first);
  const opened = Promise.withResolvers<void>();
  remote.gate = opened.promise;
  remote.isAway = false;
  expect((await log.append(CLIENT, second)).cursor).toBeNull();
  expect((await log.append(randomUUID(), moneyIn())).cursor).not.toBeNull();
  opened.resolve();
  await until(async () => (await log.health()).spooled === 0);
  const { events } = await log.readAfter(CLIENT, null, 10);
  expect(events.map(({ id }) => id)).toEqual([first.id, second.id]);
  await log.stop();
});

describe('a queue of many steps', () => {
  let log: SpooledLog;

  beforeEach(async () => {
    log = await open(await newFolder());
    remote.isAway = true;
  });
  afterEach(() => log.stop());

  async function appendTo(client: string, count: number): Promise<string[]> {
    const events = Array.from({ length: count }, () => moneyIn());
    for (const event of events) await log.append(client, event);
    return events.map(({ id }) => id);
  }
  const allDrained = () => until(async () => (await log.health()).spooled === 0);

  it('keeps the event of another client waiting for one step, not for all of them', async () => {
    const dataDir = await newFolder();
    const before = openSpool(dataDir);
    const other = moneyIn();
    for (let count = 0; count < 300; count += 1) await before.add(CLIENT, moneyIn());
    await before.add(randomUUID(), other);
    before.close();
    remote.isAway = false;
    const next = open(dataDir);
    await until(async () => (await next.health()).spooled === 0);
    await next.stop();
    expect(remote.sent).toHaveLength(6);
    // Which client comes first, their names decide.
    expect(remote.sent.slice(0, 2)).toContainEqual([other.id]);
  });

  it('goes in turns with others, and each in its order', async () => {
    const clients = [CLIENT, randomUUID(), randomUUID()];
    const ids = new Map<string, string[]>();
    for (const client of clients) ids.set(client, await appendTo(client, 200));
    remote.isAway = false;
    await allDrained();
    const whose = (step: readonly string[]) =>
      clients.find((client) => ids.get(client)?.includes(step[0] ?? ''));
    for (let at = 0; at < 9; at += 3)
      expect(new Set(remote.sent.slice(at, at + 3).map(whose))).toEqual(new Set(clients));
    for (const client of clients)
      expect((await log.readAfter(client, null, 300)).events.map(({ id }) => id)).toEqual(ids.get(client));
  });

  it('is not slowed down by clients whose part of the log stays away', async () => {
    const away = Array.from({ length: 8 }, () => randomUUID());
    for (const client of away) remote.awayFor.add(client);
    await appendTo(CLIENT, 640);
    for (const client of away) await appendTo(client, 1);
    const { steps } = remote;
    remote.isAway = false;
    await until(async () => (await log.health()).spooled === away.length);
    // Each of them was asked in three passes at most: one that had begun, one that ended before its turn, and that which took it all.
    expect(remote.steps - steps).toBeLessThanOrEqual(10 + 3 * away.length);
    remote.awayFor.clear();
    await allDrained();
  });

  it('goes on although the replicas of others lack what those wrote', async () => {
    const others = Array.from({ length: 8 }, () => randomUUID());
    await appendTo(CLIENT, 640);
    for (const client of others) await appendTo(client, 1);
    remote.replicatedFor.add(CLIENT);
    remote.unreplicated = 'one';
    const { steps } = remote;
    remote.isAway = false;
    await until(async () => (await log.health()).spooled === others.length);
    // As above; the second pass publishes one step of it.
    expect(remote.steps - steps).toBeLessThanOrEqual(11 + 3 * others.length);
    remote.unreplicated = undefined;
    await allDrained();
  });

  it('that never ends keeps those that were refused waiting for one pass', async () => {
    const other = randomUUID();
    await appendTo(CLIENT, 1);
    const [refused = ''] = await appendTo(other, 1);
    remote.awayFor.add(other);
    remote.afterStep = async (client) => {
      if (client !== CLIENT) return;
      await log.append(CLIENT, moneyIn());
      remote.awayFor.delete(other);
    };
    remote.isAway = false;
    await until(() => remote.sent.flat().includes(refused));
    remote.afterStep = undefined;
    await allDrained();
  });
});

it('what a log of another history is sent begins with the first event that no replica has', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  const events = Array.from({ length: 150 }, () => moneyIn());
  const sentTo = async (history: string) => {
    remote.sent.length = 0;
    remote.unreplicated = history;
    await until(() => remote.sent.flat().includes(events.at(-1)?.id ?? ''));
    const firstTold = new Set(remote.sent.flat());
    expect([...firstTold]).toEqual(events.map(({ id }) => id));
  };
  for (const event of events) await log.append(CLIENT, event);
  remote.isAway = false;
  await sentTo('one');
  // Only what tells whether its replicas are back is sent again.
  remote.sent.length = 0;
  await until(() => remote.sent.length > 2);
  expect(new Set(remote.sent.map((step) => step.length))).toEqual(new Set([64]));
  events.push(moneyIn());
  await log.append(CLIENT, events.at(-1) as NewEvent);
  await sentTo('another');
  expect((await log.health()).spooled).toBe(151);
  remote.unreplicated = undefined;
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
});

it('a log that has another history by the second step of a queue is sent the first one before it', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  const events = Array.from({ length: 150 }, () => moneyIn());
  for (const event of events) await log.append(CLIENT, event);
  const opened = Promise.withResolvers<void>();
  let taken: number | undefined;
  remote.afterStep = async () => {
    taken ??= remote.steps;
    // The next step is sent, and waits on its way.
    remote.gate = opened.promise;
  };
  remote.unreplicated = 'one';
  remote.isAway = false;
  await until(() => taken !== undefined && remote.steps > taken);
  remote.afterStep = undefined;
  remote.sent.length = 0;
  remote.unreplicated = 'another';
  opened.resolve();
  await until(() => remote.sent.flat().includes(events.at(-1)?.id ?? ''));
  // The first step comes again, as it tells whether replicas are back.
  expect([...new Set(remote.sent.flat())]).toEqual(events.map(({ id }) => id));
  remote.unreplicated = undefined;
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
});

it('events that a log takes reach it although those of many clients are sent again and again', async () => {
  const log = open(await newFolder());
  remote.unreplicated = 'one';
  const waiting = Array.from({ length: 100 }, () => randomUUID());
  remote.isAway = true;
  for (const client of waiting) await log.append(client, moneyIn());
  remote.isAway = false;
  await until(() => new Set(remote.sent.flat()).size === waiting.length);
  const last = moneyIn();
  await log.append(waiting.at(-1) ?? '', last);
  const before = remote.sent.length;
  await until(() => remote.sent.flat().includes(last.id));
  // The next pass has it: what eight clients have sent already goes first, and tells whether replicas are back.
  const steps = remote.sent.findIndex((step) => step.includes(last.id)) - before;
  expect(steps).toBeLessThanOrEqual(2 * 8);
  remote.unreplicated = undefined;
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
});

it('events of others are taken although those of one client come as fast as they are', async () => {
  const log = open(await newFolder());
  const other = moneyIn();
  remote.isAway = true;
  await log.append(CLIENT, moneyIn());
  await log.append(randomUUID(), other);
  remote.unreplicated = 'one';
  remote.afterStep = async (clientId) => clientId === CLIENT && log.append(CLIENT, moneyIn());
  remote.isAway = false;
  await until(() => remote.sent.flat().includes(other.id));
  await log.stop();
});

it('a log that stops ends although events come as fast as they are taken', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  await log.append(CLIENT, moneyIn());
  remote.unreplicated = 'one';
  let stopped: Promise<void> | undefined;
  let steps = 0;
  remote.afterStep = async () => {
    steps += 1;
    await log.append(CLIENT, moneyIn());
    stopped ??= log.stop();
  };
  remote.isAway = false;
  await until(() => stopped !== undefined);
  await stopped;
  expect(steps).toBe(1);
});

it('events that a log has taken are not sent again because it refused some since', async () => {
  const log = open(await newFolder());
  remote.isAway = true;
  const events = Array.from({ length: 150 }, () => moneyIn());
  for (const event of events) await log.append(CLIENT, event);
  remote.unreplicated = 'one';
  remote.isAway = false;
  await until(() => remote.sent.flat().includes(events.at(-1)?.id ?? ''));
  remote.isAway = true;
  const { steps } = remote;
  await until(() => remote.steps > steps + 1);
  const last = moneyIn();
  await log.append(CLIENT, last);
  remote.sent.length = 0;
  remote.isAway = false;
  await until(() => remote.sent.flat().includes(last.id));
  const head = events.slice(0, 64).map(({ id }) => id);
  expect(new Set(remote.sent.flat())).toEqual(new Set([...head, last.id]));
  await log.stop();
});

it('that the log has taken all of a queue is known without a look into the file', async () => {
  const spool = openSpool(await newFolder());
  await spool.add(CLIENT, moneyIn());
  await spool.add(CLIENT, moneyIn());
  const waiting = spool.unpublished(CLIENT);
  expect(waiting).toHaveLength(2);
  spool.published(CLIENT, waiting.slice(0, 1), 'one');
  expect(spool.unpublished(CLIENT)).toEqual(waiting.slice(1));
  spool.published(CLIENT, waiting, 'one');
  spool.close();
  expect(spool.unpublished(CLIENT)).toEqual([]);
});

it('a spool is kept where something else than its file fails', async () => {
  let failures = 2;
  const fail = () => {
    failures -= 1;
    if (failures >= 0) throw new Error('no count today');
  };
  const { error } = logger;
  logger.error = (fields, message) => {
    error(fields, message);
    if (failures === 1) fail();
  };
  const log = open(await newFolder(), { ...silentMetrics, drained: fail });
  remote.isAway = true;
  const event = moneyIn();
  await log.append(CLIENT, event);
  remote.isAway = false;
  await until(async () => failures < 0 || (await log.health()).unreadableSpools !== undefined);
  expect((await log.health()).unreadableSpools).toBeUndefined();
  await until(async () => (await log.health()).spooled === 0);
  await log.stop();
});
