import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { RedisMarks } from '../../src/money/redis/marks.ts';

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
