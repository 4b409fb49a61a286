import { expect, it } from 'vitest';
import { intervalOf, stagger } from '../../src/common/stagger.ts';

it('acts on each once, none of them earlier than its turn', async () => {
  const items = Array.from({ length: 200 }, (_, index) => index);
  const after: number[] = [];
  const start = performance.now();
  await stagger(
    items,
    (item) => {
      expect(after[item]).toBeUndefined();
      after[item] = performance.now() - start;
    },
    1_000,
  );
  // A machine that stands still makes all of them late, and none early. A timer counts whole milliseconds.
  expect(items.filter((item) => Number(after[item]) < 5 * item - 2)).toEqual([]);
});

it('is done once the last one is, and at once where there is nobody', async () => {
  const done: string[] = [];
  const quick = Promise.withResolvers<void>();
  await stagger(
    ['slow', 'quick'],
    async (item) => {
      if (item === 'slow') await quick.promise;
      else quick.resolve();
      done.push(item);
    },
    1_000,
  );
  expect(done.toSorted()).toEqual(['quick', 'slow']);
  await stagger([], () => expect.unreachable(), 1_000);
});

it('passes on what goes wrong', async () => {
  const failing = stagger(['one'], () => Promise.reject(new Error('cannot be ended')), 1_000);
  await expect(failing).rejects.toThrow('cannot be ended');
});

it('takes longer for more, up to what it may take', () => {
  expect(intervalOf(100, 24_000)).toBe(10);
  expect(intervalOf(2_000, 24_000)).toBe(10);
  expect(intervalOf(4_000, 24_000)).toBe(6);
  expect(intervalOf(4_000, 0)).toBe(0);
});
