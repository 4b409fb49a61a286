import { expect, test } from 'vitest';
import { Pending } from '../../packages/sandbox/src/pending.ts';

test('what else is pending of a transaction is still to be ended once a part of it has ended', async () => {
  const pending = new Pending(() => {});
  const ended: string[] = [];
  const ends = (name: string) => ({ done: () => void ended.push(name), failed: () => void ended.push(name) });
  const end = pending.add('one', ends('first'));
  pending.add('one', ends('second'));
  pending.add('other', ends('of another'));
  await end('done');
  await end('failed');
  expect(ended).toEqual(['first']);
  expect(await pending.complete('one', 'failed', () => {})).toBe(true);
  expect(ended).toEqual(['first', 'second']);
  expect(await pending.complete('one', 'done', () => {})).toBe(false);
});
