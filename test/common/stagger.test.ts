import { expect, it } from 'vitest';
import { intervalOf, stagger } from '../../src/common/stagger.ts';

it('acts on one after another, and lets others run in between', async () => {
  const items = Array.from({ length: 200 }, (_, index) => index);
  const order: number[] = [];
  const turns: number[] = [];
  let turn = 0;
  const counting = setInterval(() => {
    turn += 1;
  }, 1);
  await stagger(
    items,
    (item) => {
      order.push(item);
      turns.push(turn);
    },
    1_000,
  );
  clearInterval(counting);
  expect(order).toEqual(items);
  expect(turns.at(-1)).toBeGreaterThan(turns[0] ?? 0);
});

it('is done once the last one is, and at once where there is nobody', async () => {
  const done: string[] = [];
  await stagger(
    ['slow', 'quick'],
    async (item) => {
      if (item === 'slow') await new Promise((resolve) => setTimeout(resolve, 50));
      done.push(item);
    },
    1_000,
  );
  expect(done).toEqual(['quick', 'slow']);
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
