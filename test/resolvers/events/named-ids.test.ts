import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { namedIds } from '../../../src/resolvers/events/named-ids.ts';
import { createEventTopics, idTopic, typeTopic } from '../../../src/resolvers/events/topics.ts';

const ID = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const uuids = (count: number) =>
  Array.from({ length: count }, (_, index) => `3f2b1c9e-8d4a-4f6b-9a57-${String(index).padStart(12, '0')}`);
function nested(depth: number, value: unknown): unknown {
  let message = value;
  for (let level = 0; level < depth; level += 1) message = { inner: message };
  return message;
}

/** Hides an id somewhere in a message, and returns the message. */
const hidden = fc
  .tuple(
    fc.uuid(),
    fc.array(
      fc.constantFrom<(inner: unknown) => unknown>(
        (inner) => ({ body: inner, n: 1 }),
        (inner) => [null, inner, true],
        (inner) => ({ a: { b: 0.5 }, data: [inner] }),
      ),
      { maxLength: 12 },
    ),
    fc.constantFrom<(id: string) => unknown>(
      (id) => id,
      (id) => id.toUpperCase(),
      (id) => ({ [id]: 'LIQUIDATED' }),
      (id) => `/v1/transactions/${id}?a=1`,
      (id) => `transaction:${id}`,
    ),
  )
  .map(([id, wraps, write]) => ({ id, message: wraps.reduce((inner, wrap) => wrap(inner), write(id)) }));

describe('the ids that a message names', () => {
  it('are found wherever they stand, in lower case', () => {
    fc.assert(
      fc.property(hidden, ({ id, message }) => {
        expect(namedIds(message)).toEqual([id]);
      }),
    );
  });

  it('are looked for in any JSON value, and are what looks like one alone', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value).toLowerCase();
        for (const id of namedIds(value)) expect(text).toContain(id);
      }),
    );
  });

  it.each([
    ['nothing', null],
    ['a longer run of digits', `a${ID}`],
    ['an id that is cut off', ID.slice(0, -1)],
    ['an id without its dashes', ID.replaceAll('-', '')],
    ['a number', 42],
  ])('are none in %s', (_what, value) => {
    expect(namedIds({ value })).toEqual([]);
  });

  it('are each told once', () => {
    expect(namedIds([ID, { id: ID.toUpperCase() }, `${ID} ${ID}`])).toEqual([ID]);
  });

  it('are the outermost ones of a message that names very many', () => {
    const named = namedIds({ data: { all: uuids(1_600) }, id: ID });
    expect(named).toHaveLength(256);
    expect(named[0]).toBe(ID);
  });

  it('are not looked for in the depths of a message that has no end', () => {
    expect(namedIds({ deep: nested(100_000, ID), id: ID })).toEqual([ID]);
    expect(namedIds(nested(100, ID))).toEqual([]);
  });

  it('are the topics of a status update, of which nothing else is known', () => {
    const { of } = createEventTopics(() => Promise.reject(new Error('is not asked')));
    const event = {
      cursor: 'c1',
      id: 'm1',
      type: 'STATUS_UPDATE',
      receivedAt: '2026-11-20T15:30:00Z',
      payload: { event: 'transaction.liquidated', data: { id: ID.toUpperCase(), status: 'LIQUIDATED' } },
    } as const;
    expect(of(event)).toEqual([typeTopic('STATUS_UPDATE'), idTopic('STATUS_UPDATE', ID)]);
  });
});
