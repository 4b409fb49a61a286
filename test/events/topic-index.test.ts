import { expect, it } from 'vitest';
import type { Entry } from '../../src/events/entry.ts';
import { AT_ONCE, QUEUE_LIMIT, Ring } from '../../src/events/live/ring.ts';
import { type FeedSubscriber, TopicIndex } from '../../src/events/live/topic-index.ts';

const subscriber = (...topics: readonly string[]): FeedSubscriber => ({
  topics,
  push: () => {},
  fail: () => {},
});

it('an index knows nobody any more who has left, whether it stood alone in a topic or beside others', () => {
  const index = new TopicIndex();
  const [alone, one, other] = [subscriber('a'), subscriber('b'), subscriber('b')];
  for (const each of [alone, one, other]) index.add(each);
  expect([...index.subscribersTo(['a', 'b'])]).toEqual([alone, one, other]);
  index.delete(alone);
  index.delete(one);
  expect([...index.subscribersTo(['a', 'b'])]).toEqual([other]);
  index.delete(other);
  expect([...index.subscribersTo(['a', 'b'])]).toEqual([]);
  expect(index.size).toBe(0);
});

it('an index knows nobody any more who has left, where it waited for every entry, or for a topic that it learned of since', () => {
  const index = new TopicIndex();
  const topics = ['a'];
  const learning = { ...subscriber(), topics };
  const [whole, other] = [
    { ...subscriber(), topics: undefined },
    { ...subscriber(), topics: undefined },
  ];
  for (const each of [learning, whole, other]) index.add(each);
  topics.push('b');
  index.addTopics(learning, ['b', 'b']);
  expect([...index.subscribersTo(['b'])]).toEqual([whole, other, learning]);
  expect(index.delete(whole)).toBe(true);
  expect(index.delete(learning)).toBe(true);
  expect(index.delete(learning)).toBe(false);
  expect([...index.subscribersTo(['a', 'b'])]).toEqual([other]);
  index.add(learning);
  index.clear();
  expect([...index.subscribersTo(['a', 'b'])]).toEqual([]);
  expect([index.size, index.delete(other)]).toEqual([0, false]);
});

const entry = (number: number, size: number): Entry => ({
  epoch: '0mf3k2x9a0123456789ab',
  position: String(number),
  prev: String(number - 1),
  event: {
    id: String(number),
    type: 'MONEY_IN',
    receivedAt: '2026-03-02T10:00:00.000Z',
    payload: '{}',
    cursor: String(number),
  },
  size,
});

it('a ring holds the last entries that fit, however many have gone through it', () => {
  const ring = new Ring();
  for (let number = 1; number <= 100; number += 1) ring.push(entry(number, QUEUE_LIMIT.size / 4));
  expect(ring.since('96')?.entries.map(({ position }) => position)).toEqual(['97', '98', '99', '100']);
  expect(ring.since('95')).toBeUndefined();
});

it('a ring gives nothing at once that comes after an entry which does not fit, however small that is', () => {
  const ring = new Ring();
  for (const [index, size] of [1, 1, AT_ONCE.size, 1].entries()) ring.push(entry(index + 1, size));
  const missed = ring.since('1', AT_ONCE);
  expect(missed?.entries.map(({ position }) => position)).toEqual(['2']);
  expect(missed?.isComplete).toBe(false);
});
