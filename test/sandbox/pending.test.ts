import { expect, test } from 'vitest';
import { Pending } from '../../packages/sandbox/src/pending.ts';

test('a part that cannot fail is left where another can, and so is one that is not meant', async () => {
  const pending = new Pending(() => {});
  const ended: string[] = [];
  const fail = () => pending.complete('one', 'failed', () => {});
  pending.add('one', { isReturn: true, done: () => void ended.push('return') });
  await expect(fail()).rejects.toThrow('It cannot fail.');
  pending.add('one', { done: () => {}, failed: () => void ended.push('receipt') });
  expect(await fail()).toBe(true);
  expect(ended).toEqual(['receipt']);
  expect(
    await pending.complete(
      'one',
      'done',
      () => {},
      ({ isReturn }) => isReturn !== true,
    ),
  ).toBe(false);
  expect(ended).toEqual(['receipt']);
});

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
