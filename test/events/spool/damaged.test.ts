import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
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
