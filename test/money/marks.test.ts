import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { clock, useClock } from '../../src/common/clock.ts';
import { disk, useDisk } from '../../src/common/disk.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { RedisMarks } from '../../src/money/redis/marks.ts';
import { openRedisRecords } from '../../src/money/redis/redis-record.ts';
import { startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from './orders.ts';

let dir: string;
let path: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'pasarela-marks-'));
  path = join(dir, 'payments.marks.json');
});
afterEach(() => rm(dir, { recursive: true }));

const note = async (marks: RedisMarks, client: string, sent: number, epoch = 0): Promise<void> => {
  marks.note(client, { epoch, sent, at: 1_000 * sent });
  await marks.stop();
};

it('a process that has seen fewer payments of a client leaves what another of its folder has seen', async () => {
  const [first, second] = [new RedisMarks(path), new RedisMarks(path)];
  await note(second, 'one', 1);
  for (const [round, sent] of [5, 9].entries()) {
    await note(first, 'one', sent);
    // It pays for another client alone.
    await note(second, 'two', round + 1);
    const next = new RedisMarks(path);
    expect([next.of('one'), next.of('two')]).toEqual([
      { epoch: 0, sent, at: 1_000 * sent },
      { epoch: 0, sent: round + 1, at: 1_000 * (round + 1) },
    ]);
  }
});

it('what a process has left that was killed as it wrote is removed, and not what another is writing', async () => {
  await note(new RedisMarks(path), 'one', 1);
  const [left, fresh, copy] = [`${path}.${randomUUID()}`, `${path}.${randomUUID()}`, `${path}.before`];
  for (const file of [left, fresh, copy]) await writeFile(file, '{"one":');
  const hourAgo = new Date(Date.now() - 3_600_000);
  for (const file of [left, copy, path]) await utimes(file, hourAgo, hourAgo);
  expect(new RedisMarks(path).of('one')).toMatchObject({ sent: 1 });
  expect((await readdir(dir)).sort()).toEqual([path, fresh, copy].map((file) => basename(file)).sort());
});

it('a count goes on from where it was once payments go on, though it is lower than before', async () => {
  const [first, second] = [new RedisMarks(path), new RedisMarks(path)];
  await note(first, 'one', 9);
  await note(second, 'one', 1, 1);
  await note(first, 'two', 1);
  const next = new RedisMarks(path);
  expect(next.of('one')).toEqual({ epoch: 1, sent: 1, at: 1_000 });
  next.note('one', { epoch: 0, sent: 12, at: 12_000 });
  expect(next.of('one')).toEqual({ epoch: 1, sent: 1, at: 1_000 });
});

it('a count that is noted while an earlier one is written is written as well', async () => {
  const marks = new RedisMarks(path);
  for (const sent of [1, 2, 3]) marks.note('one', { epoch: 0, sent, at: 1_000 * sent });
  await marks.stop();
  expect(new RedisMarks(path).of('one')).toEqual({ epoch: 0, sent: 3, at: 3_000 });
});

async function send(records: MoneyRecords): Promise<void> {
  const key = randomUUID();
  const name = recordName({ clientId: randomUUID(), customerId: undefined, key });
  const hash = inputHash('createMoneyOut', name.hash);
  await records.claim(name, { ...NOBODYS, owner: 'call', inputHash: hash, leaseMs: 0, twin: key });
  await records.markSent(name, 'call', '{"sent":true}', { upstreamKey: null, original: null });
}

it('a process stops once its last count is on the disk', async () => {
  await using redis = await startRedis();
  const records = await openRedisRecords(redis.url, dir, silentLogger);
  const begun = Promise.withResolvers<void>();
  const system = disk;
  using cleanup = new DisposableStack();
  const restore = useDisk({
    ...system,
    async replace(...file) {
      await begun.promise;
      await system.replace(...file);
    },
  });
  cleanup.defer(restore);
  await send(records);
  const ends = [records.stop().then(() => 'stopped'), begun.promise.then(() => 'written')];
  setImmediate(() => begun.resolve());
  expect(await Promise.race(ends)).toBe('written');
  await ends[0];
  expect(new RedisMarks(path).clients).toHaveLength(1);
});

it('payments are held as soon as a process is connected again to a Redis that has lost them', async () => {
  await using redis = await startRedis();
  using cleanup = new DisposableStack();
  // It looks by itself now and then. No look of that kind comes here.
  cleanup.defer(useClock({ ...clock, setInterval: () => setTimeout(() => {}, 0) }));
  const records = await openRedisRecords(redis.url, dir, silentLogger);
  await send(records);
  await redis.kill();
  await rm(join(redis.dir, 'appendonlydir'), { recursive: true });
  await redis.start();
  await until(async () => (await records.held().catch(() => [])).some(({ why }) => why === 'put-back'));
  await records.stop();
});

it('counts that could not be written are tried again though nobody pays, and once more at the end', async () => {
  let isFull = true;
  const timers: (() => void)[] = [];
  const { replace } = disk;
  const undo = [
    useDisk({
      ...disk,
      async replace(...given) {
        if (isFull) throw new Error('no room');
        await replace(...given);
      },
    }),
    useClock({
      ...clock,
      setTimeout(callback, _ms, ...given) {
        timers.push(() => callback(...given));
        return {
          unref() {
            return this;
          },
        };
      },
      clearTimeout() {},
    }),
  ];
  try {
    const marks = new RedisMarks(path);
    marks.note('one', { epoch: 0, sent: 1, at: 1_000 });
    await until(() => timers.length === 1);
    isFull = false;
    timers[0]?.();
    await until(() => new RedisMarks(path).of('one').sent === 1);
    isFull = true;
    marks.note('one', { epoch: 0, sent: 2, at: 2_000 });
    await until(() => timers.length === 2);
    isFull = false;
    await marks.stop();
    expect(new RedisMarks(path).of('one').sent).toBe(2);
  } finally {
    for (const put of undo) put();
  }
});
