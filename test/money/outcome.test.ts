import { describe, expect, it } from 'vitest';
import { type Answered, type Attempt, GivenUpError, type UpstreamAnswer } from '../../src/common/attempt.ts';
import type { MoneyMutation } from '../../src/money/intent.ts';
import { outcomeOf } from '../../src/money/outcome.ts';

const ALL: MoneyMutation[] = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
];
const NEXT = {
  createMoneyOut: 'repeat',
  createInternalTransaction: 'report',
  createPennyValidation: 'report',
  refundTransaction: 'read-original',
} as const;

const response = (status: number, text = '{"message":"API Error"}'): Answered => ({
  kind: 'answered',
  retryAfterMs: undefined,
  status,
  text,
  body: text.startsWith('{') ? JSON.parse(text) : undefined,
});
const answered = (...args: Parameters<typeof response>): [UpstreamAnswer, Attempt] => {
  const happened = response(...args);
  const { kind: _kind, retryAfterMs: _retryAfterMs, ...answer } = happened;
  return [answer, happened];
};
const lost: Attempt = { kind: 'failed', error: new GivenUpError('reset', { dispatched: true }) };
const notDispatched: Attempt = {
  kind: 'failed',
  error: new GivenUpError('connection refused', { dispatched: false }),
};

const FIRST = { first: true, previous: undefined };
const repeatAfter = (previous: Attempt | undefined) => ({ first: false, previous });

const outcome = (
  mutation: MoneyMutation,
  attempt: typeof FIRST | ReturnType<typeof repeatAfter>,
  happened: Attempt,
) =>
  outcomeOf(
    mutation,
    attempt,
    happened,
    ({ body }) => typeof body === 'object' && body !== null && 'id' in body,
  );
const kind = (...args: Parameters<typeof outcome>) => outcome(...args).kind;

describe.each(ALL)('the outcome of %s', (mutation) => {
  const unknown = { kind: 'unknown', next: NEXT[mutation] };

  it.each([200, 201, 202, 299])('is done on a %i with a readable transaction', (status) => {
    const [answer, happened] = answered(status, '{"id":"t-1"}');
    expect(outcome(mutation, FIRST, happened)).toEqual({ kind: 'done', answer });
  });

  it.each([
    [400, '{"message":"API Error"}'],
    [400, ''],
    [402, '<html>'],
    [404, '{"error":"destination_not_found"}'],
    [405, ''],
    [413, '<html>'],
    [422, '{}'],
    [451, ''],
    [499, ''],
  ])('is refused on a first %i, whatever its body: %s', (status, text) => {
    const [answer, happened] = answered(status, text);
    expect(outcome(mutation, FIRST, happened)).toEqual({ kind: 'refused', answer });
  });

  it('is refused on a first 409 with external_transfer_not_allowed, wherever it stands', () => {
    expect(kind(mutation, FIRST, response(409, '{"x":[{"reason":"external_transfer_not_allowed"}]}'))).toBe(
      'refused',
    );
    expect(kind(mutation, FIRST, response(409, '<p>external_transfer_not_allowed</p>'))).toBe('refused');
  });

  it.each([401, 403, 429])('is that nothing moved on a first %i', (status) => {
    expect(outcome(mutation, FIRST, response(status))).toEqual({ kind: 'nothing-moved' });
  });

  it('is that nothing moved when the first request was not dispatched', () => {
    expect(outcome(mutation, FIRST, notDispatched)).toEqual({ kind: 'nothing-moved' });
  });

  it.each([
    ['a reset or timeout', lost],
    ['a 2xx that is no transaction', response(200, '{"ok":true}')],
    ['a 2xx that cannot be read', response(200, '<html>')],
    ['an empty 2xx', response(204, '')],
    ['a redirect', response(302, '')],
    ['an informational status', response(103, '')],
    ...[408, 425, 500, 501, 502, 503, 504, 520, 599].map((s): [string, Attempt] => [`a ${s}`, response(s)]),
    ['a 5xx with a transaction in it', response(500, '{"id":"t-1"}')],
  ])('is unknown after %s, first or not', (_what, happened) => {
    expect(outcome(mutation, FIRST, happened)).toEqual(unknown);
    expect(outcome(mutation, repeatAfter(undefined), happened)).toEqual(unknown);
    expect(outcome(mutation, repeatAfter(happened), happened)).toEqual(unknown);
  });
});

describe.each(['createInternalTransaction', 'createPennyValidation', 'refundTransaction'] as const)(
  'the outcome of %s',
  (mutation) => {
    it('is refused on any other 409', () => {
      expect(kind(mutation, FIRST, response(409))).toBe('refused');
    });
  },
);

describe('the outcome of createMoneyOut', () => {
  it('is unknown on a first 409, to be repeated within this call and never after it', () => {
    const [answer, happened] = answered(409, '{"message":"in progress"}');
    const expected = { kind: 'unknown', next: 'repeat-now-or-never', answer };
    expect(outcome('createMoneyOut', FIRST, happened)).toEqual(expected);
  });

  it.each(['{"message":"in progress"}', '{}', '<html>', 'external_transfer_not_allowed'])(
    'is in progress on the 409 of a repeat, whatever its body: %s',
    (text) => {
      const conflict = response(409, text);
      const expected = { kind: 'unknown', next: 'repeat' };
      expect(outcome('createMoneyOut', repeatAfter(lost), conflict)).toEqual(expected);
      expect(outcome('createMoneyOut', repeatAfter(conflict), conflict)).toEqual(expected);
    },
  );

  it('is done on the 2xx of a repeat', () => {
    expect(kind('createMoneyOut', repeatAfter(lost), response(200, '{"id":"t-1"}'))).toBe('done');
  });

  it('is unknown when a repeat was not dispatched: the request before it may have moved money', () => {
    expect(outcome('createMoneyOut', repeatAfter(lost), notDispatched)).toEqual({
      kind: 'unknown',
      next: 'repeat',
    });
  });

  it.each([401, 403])('is unknown on the %i of a repeat, which is not worth another', (status) => {
    expect(outcome('createMoneyOut', repeatAfter(lost), response(status))).toEqual({
      kind: 'unknown',
      next: 'report',
    });
  });

  it('is unknown on the 429 of a repeat, which is worth another', () => {
    expect(outcome('createMoneyOut', repeatAfter(lost), response(429))).toEqual({
      kind: 'unknown',
      next: 'repeat',
    });
  });

  it('is refused on the 4xx of a repeat once it came twice, as the kept first answer does', () => {
    expect(outcome('createMoneyOut', repeatAfter(lost), response(400))).toEqual({
      kind: 'unknown',
      next: 'repeat',
    });
    expect(outcome('createMoneyOut', repeatAfter(response(404)), response(400)).kind).toBe('unknown');
    expect(outcome('createMoneyOut', repeatAfter(response(400)), response(400)).kind).toBe('refused');
  });
});
