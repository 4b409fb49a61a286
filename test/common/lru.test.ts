import { expect, it } from 'vitest';
import { Lru } from '../../src/common/lru.ts';

const MEBIBYTE = 1_048_576;

it('takes memory as entries come, not for all that it may keep', () => {
  const before = process.memoryUsage();
  const kept = Array.from({ length: 20 }, () => new Lru<number>(1_000_000, { ttl: 1_000 }));
  const after = process.memoryUsage();
  // At once they would take 20 × 1,000,000 × 24 bytes and more.
  const taken = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  expect(taken).toBeLessThan(32 * MEBIBYTE);
  expect(kept.map(({ size }) => size)).toEqual(Array(20).fill(0));
});

it('keeps as many entries as it may, and forgets the one that was used least recently', () => {
  const kept = new Lru<number>(3);
  for (const [key, value] of Object.entries({ a: 1, b: 2, c: 3 })) kept.set(key, value);
  expect(kept.get('a')).toBe(1);
  kept.set('d', 4);
  expect([...kept.keys()].sort()).toEqual(['a', 'c', 'd']);
  kept.delete('c');
  kept.set('e', 5);
  for (let round = 0; round < 1_000; round += 1) kept.set(`${round}`, round);
  expect(kept.size).toBe(3);
});
