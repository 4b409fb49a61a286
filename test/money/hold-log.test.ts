import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import { logHolds } from '../../src/money/hold-log.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { openMoney } from '../../src/money/open-money.ts';
import type { Hold } from '../../src/money/record.ts';
import { openRedisRecords } from '../../src/money/redis/redis-record.ts';
import { recordingLogger } from '../helpers/events.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';

const PUT_BACK =
  'the record of payments has been put back to an earlier state: payments are held until `pasarela payments resume --put-back`';
const STOPPED = 'payments have been stopped: they are held until `pasarela payments resume`';
const GO_ON = [
  'payments are no longer stopped',
  'payments are no longer held for a record that was put back',
];

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pasarela-hold-log-'));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(dir, { recursive: true });
});

/** Leaves the mark of one sent payment in the folder. */
async function sendOne(url: string): Promise<void> {
  const records = await openRedisRecords(url, dir, silentLogger);
  const name = recordName({ clientId: randomUUID(), customerId: undefined, key: 'key' });
  const hash = inputHash('createMoneyOut', name.hash);
  await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: 'key' });
  await records.markSent(name, 'call', '{}', { upstreamKey: null, original: null });
  await records.stop();
}

it('a process that runs logs once that payments are held, for each reason, and once that they no longer are', async () => {
  await using redis = await startRedis();
  await sendOne(redis.url);
  // Timers go by the test's word.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const logger = recordingLogger();
  const money = await openMoney({ redisUrl: redis.url, dataDir: dir, logger });
  const operator = await openRedisRecords(redis.url, '/dev/null/nowhere', silentLogger);
  const told = () => logger.lines.map(({ level, message }) => `${level}: ${message}`);
  const look = () => vi.advanceTimersByTime(10_000);
  const lookUntil = (count: number) =>
    until(async () => {
      look();
      return told().length >= count;
    });
  expect(told()).toEqual([]);

  await redis.admin.flushall();
  await lookUntil(1);
  await operator.holdPayments();
  await lookUntil(2);
  expect(told()).toEqual([`error: ${PUT_BACK}`, `warn: ${STOPPED}`]);
  expect(logger.lines[0]?.fields).toEqual({ missing: 1 });

  await operator.resume(true);
  await lookUntil(4);
  expect(told().slice(2)).toEqual(expect.arrayContaining(GO_ON.map((line) => `info: ${line}`)));
  for (let looks = 0; looks < 3; looks += 1) {
    look();
    expect(await money.held()).toEqual([]);
  }
  expect(told()).toHaveLength(4);
  await operator.stop();
  await money.stop();
});

it('while the record cannot be reached, nobody is told that payments go on', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const logger = recordingLogger();
  const stopped: Hold = { why: 'stopped', since: 0, missing: 0, copied: undefined };
  const answers: (() => Promise<readonly Hold[]>)[] = [
    async () => [stopped],
    () => Promise.reject(new Error('away')),
    async () => [stopped],
    async () => [],
  ];
  const end = await logHolds({ held: () => (answers.shift() ?? (async () => []))() }, logger);
  while (answers.length > 0) {
    const left = answers.length;
    vi.advanceTimersByTime(10_000);
    await until(() => answers.length < left);
  }
  await until(() => logger.lines.length > 1);
  expect(logger.lines.map(({ message }) => message)).toEqual([STOPPED, GO_ON[0]]);
  end();
});

it('a look that ends after a later one says nothing of what has been told since', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const logger = recordingLogger();
  const stopped: Hold = { why: 'stopped', since: 0, missing: 0, copied: undefined };
  const slow = Promise.withResolvers<readonly Hold[]>();
  const answers: (readonly Hold[] | Promise<readonly Hold[]>)[] = [[], slow.promise, [stopped]];
  const end = await logHolds({ held: async () => answers.shift() ?? [stopped] }, logger);
  vi.advanceTimersByTime(20_000);
  await until(() => logger.lines.length > 0);
  slow.resolve([]);
  await slow.promise;
  // What follows on it has been logged by then.
  await new Promise(setImmediate);
  vi.advanceTimersByTime(10_000);
  await new Promise(setImmediate);
  expect(logger.lines.map(({ message }) => message)).toEqual([STOPPED]);
  end();
});

it('a process that has ended looks no more', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const money = await openMoney({ redisUrl: undefined, dataDir: dir, logger: silentLogger });
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  await money.stop();
  expect(vi.getTimerCount()).toBe(0);
});
