import { expect, it } from 'vitest';
import { Pace } from '../../../src/transport/sockets/pace.ts';

it('a thousand that come at once are let through in their order, and other work has its turns in between', async () => {
  const pace = new Pace();
  const begun: number[] = [];
  const perTurn: number[] = [];
  const all = Array.from({ length: 1_000 }, async (_, index) => {
    await pace.turn();
    begun.push(index);
  });
  while (begun.length < all.length) {
    const before = begun.length;
    await new Promise((resolve) => setImmediate(resolve));
    perTurn.push(begun.length - before);
  }
  await Promise.all(all);
  expect(begun).toEqual(Array.from({ length: 1_000 }, (_, index) => index));
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(8);
});

it('one that comes alone waits for nothing', async () => {
  const pace = new Pace();
  expect(pace.turn()).toBeUndefined();
  await new Promise((resolve) => setImmediate(resolve));
  expect(pace.turn()).toBeUndefined();
});
