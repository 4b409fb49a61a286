import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeEvent } from '../../src/events/entry.ts';
import type { EventLog } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { RedisLog } from '../../src/events/redis/redis-log.ts';
import { SqliteLog } from '../../src/events/sqlite/sqlite-log.ts';
import { moneyIn, recordingLogger } from '../helpers/events.ts';
import { PatientLog } from '../helpers/patient-log.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';

interface Bounds {
  readonly retention: number;
  readonly retentionBytes?: number;
}

const common = { metrics: silentMetrics, names: ({ id }: { id: string }) => [id], now: Date.now };
const SIZE = encodeEvent(moneyIn()).length;
const MANY = 200;

let redis: RedisServer;
let dataDir: string;
beforeAll(async () => {
  redis = await startRedis();
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-lowered-'));
});
afterAll(async () => {
  await redis.stop();
  await rm(dataDir, { recursive: true });
});

const STORES: [string, Bounds, (bounds: Bounds) => Promise<EventLog>][] = [
  ['in SQLite, by number', { retention: 10 }, openSqlite],
  ['in SQLite, by bytes', { retention: 1_000, retentionBytes: 10 * SIZE }, openSqlite],
  ['in Redis, by bytes', { retention: 1_000, retentionBytes: 10 * SIZE }, openRedis],
];

async function openSqlite(bounds: Bounds): Promise<EventLog> {
  return new SqliteLog({ dataDir, ...common, ...bounds });
}

async function openRedis(bounds: Bounds): Promise<EventLog> {
  const log = new RedisLog({ redisUrl: redis.url, logger: recordingLogger(), ...common, ...bounds });
  await log.settled();
  return new PatientLog(log);
}

async function held(log: EventLog, client: string): Promise<number> {
  return (await log.readAfter(client, null, 1_000)).events.length;
}

describe.each(STORES)('a bound that was lowered, %s', (_which, lowered, open) => {
  it('has each append trim a few events, so that many at once keep nobody waiting', async () => {
    const client = randomUUID();
    const before = await open({ retention: 1_000 });
    for (let number = 0; number < MANY; number += 1) await before.append(client, moneyIn());
    // All that waits for the index is entered, as it is before any trim by bytes.
    await before.readAfter(client, null, 1, { name: 'none' });
    await before.stop();
    const log = await open(lowered);
    await log.append(client, moneyIn());
    expect(await held(log, client)).toBe(MANY + 1 - 16);
    await Promise.all(Array.from({ length: 3 }, () => log.append(client, moneyIn())));
    expect(await held(log, client)).toBe(MANY + 4 - 4 * 16);
    // A long one makes more room than it takes.
    const long = moneyIn();
    await log.append(client, {
      ...long,
      payload: long.payload.replace('}', `, "x": "${'x'.repeat(30 * SIZE)}"}`),
    });
    expect(await held(log, client)).toBeLessThanOrEqual(MANY + 5 - 4 * 16 - 60);
    for (let number = 0; number < 20; number += 1) await log.append(client, moneyIn());
    expect(await held(log, client)).toBeLessThanOrEqual(10);
    await log.stop();
  });
});

it('messages of one moment are forgotten a few with each append, and recognised no longer than seven days', async () => {
  let monotonic = 0;
  const folder = await mkdtemp(join(dataDir, 'seen-'));
  const log = new SqliteLog({ dataDir: folder, ...common, retention: 1_000, monotonic: () => monotonic });
  const remembered = (): number => {
    using database = new DatabaseSync(join(folder, 'copy.sqlite'));
    database.exec(`ATTACH '${join(folder, 'events.sqlite')}' AS log`);
    return Number(database.prepare('SELECT count(*) AS count FROM log.seen').get()?.['count']);
  };
  const sent = Array.from({ length: MANY }, () => moneyIn());
  for (const event of sent) await log.append('client', event);
  monotonic = 7 * 24 * 3_600_000 - 1;
  expect(await log.append('client', sent[MANY - 1] ?? moneyIn())).toMatchObject({ duplicate: true });
  monotonic += 1;
  expect(await log.append('client', sent[MANY - 2] ?? moneyIn())).toMatchObject({ duplicate: false });
  await log.stop();
  // The lock of the file has ended with the log.
  expect(remembered()).toBeGreaterThanOrEqual(MANY - 16);
  expect(remembered()).toBeLessThan(MANY);
});
