import { describe, expect, it } from 'vitest';
import { type Answered, type Attempt, GivenUpError, type UpstreamAnswer } from '../../src/common/attempt.ts';
import type { MoneyMutation } from '../../src/money/intent.ts';
import { type AnswerReading, outcomeOf } from '../../src/money/outcome.ts';
import { isDocumentedError } from '../../src/upstream/call/documented-error.ts';
import { serviceError } from './upstream.ts';

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

const response = (status: number, text: string): Answered => ({
  kind: 'answered',
  retryAfterMs: undefined,
  status,
  text,
  body: text.startsWith('{') && text.endsWith('}') ? JSON.parse(text) : undefined,
});
const answerOf = ({ status, body, text }: Answered): UpstreamAnswer => ({ status, body, text });
const service = (status: number): Answered => response(status, serviceError(status));
const lost: Attempt = { kind: 'failed', error: new GivenUpError('reset', { dispatched: true }) };
const notDispatched: Attempt = {
  kind: 'failed',
  error: new GivenUpError('connection refused', { dispatched: false }),
};

const reading: AnswerReading = {
  compare: ({ body }) => {
    if (typeof body !== 'object' || body === null || !('id' in body)) return { kind: 'unreadable' };
    return body.id === 't-1' ? { kind: 'same' } : { kind: 'differs', fields: ['id'] };
  },
  isServiceError: isDocumentedError,
};
const outcome = (mutation: MoneyMutation, when: 'first' | 'repeat', happened: Attempt) =>
  outcomeOf(mutation, when === 'first', happened, reading);

/** What others than the service write into a 4xx: pages, errors of gateways in their own forms, nothing. */
const PAGES = [
  '',
  '<html><h1>Blocked</h1></html>',
  '{"message":"API Error"}',
  '{"code":9,"message":"API Error"}',
  '{"code":9,"message":"API Error","details":[]}',
  '{"code":9,"message":"API Error","details":[{"reason":"RATE_LIMIT","domain":"googleapis.com","metadata":{}}]}',
  '{"code":9,"message":"API Err',
  'upstream connect error or disconnect/reset before headers',
];
const OTHER_REFUSALS = [400, 402, 404, 405, 410, 413, 415, 422, 431, 451, 499];

describe.each(ALL)('the outcome of %s', (mutation) => {
  const unknown = { kind: 'unknown', reason: 'NO_ANSWER', next: NEXT[mutation] };

  it.each([200, 201, 202, 299])('is done on a %i with the transaction that was ordered', (status) => {
    const happened = response(status, '{"id":"t-1"}');
    expect(outcome(mutation, 'first', happened)).toEqual({ kind: 'done', answer: answerOf(happened) });
    expect(outcome(mutation, 'repeat', happened).kind).toBe('done');
  });

  it('is unknown on a 2xx with another transaction', () => {
    const other = response(200, '{"id":"t-2"}');
    const next = mutation === 'createMoneyOut' ? 'repeat-briefly' : NEXT[mutation];
    expect(outcome(mutation, 'first', other)).toMatchObject({
      kind: 'unknown',
      reason: 'ANSWER_DOES_NOT_MATCH',
      next,
    });
  });

  it.each(OTHER_REFUSALS)("is refused on a %i with the service's documented error", (status) => {
    const happened = service(status);
    expect(outcome(mutation, 'first', happened)).toEqual({ kind: 'refused', answer: answerOf(happened) });
    expect(outcome(mutation, 'repeat', happened).kind).toBe('refused');
  });

  it.each(OTHER_REFUSALS)('is unknown on a %i of anybody else, first or not', (status) => {
    for (const page of PAGES) {
      const unread = response(status, page);
      expect(outcome(mutation, 'first', unread)).toEqual({ ...unknown, unread });
      expect(outcome(mutation, 'repeat', unread)).toEqual({ ...unknown, unread });
    }
  });

  it('is refused on documented identifiers, wherever they stand', () => {
    for (const text of ['{"x":[{"reason":"ID"}]}', '<p>ID</p>']) {
      const conflict = response(409, text.replace('ID', 'external_transfer_not_allowed'));
      expect(outcome(mutation, 'first', conflict).kind).toBe('refused');
      const missing = response(404, text.replace('ID', 'destination_not_found'));
      expect(outcome(mutation, 'first', missing).kind).toBe('refused');
    }
  });

  it.each([401, 403, 429])('is that nothing moved on a first %i of the service', (status) => {
    expect(outcome(mutation, 'first', service(status))).toEqual({ kind: 'nothing-moved' });
  });

  it.each([401, 403, 429])('is unknown on a %i of anybody else, and on a repeat', (status) => {
    for (const page of PAGES) {
      const unread = response(status, page);
      expect(outcome(mutation, 'first', unread)).toEqual({ ...unknown, unread });
    }
    const repeated = outcome(mutation, 'repeat', service(status));
    expect(repeated).toMatchObject({ kind: 'unknown' });
    expect(repeated).not.toHaveProperty('unread');
  });

  it('is that nothing moved when the first request was not dispatched', () => {
    expect(outcome(mutation, 'first', notDispatched)).toEqual({ kind: 'nothing-moved' });
    expect(outcome(mutation, 'repeat', notDispatched)).toEqual(unknown);
  });

  it.each([
    ['a 2xx that is no transaction', response(200, '{"ok":true}')],
    ['a 2xx that cannot be read', response(200, '<html>')],
    ['an empty 2xx', response(204, '')],
    ['a redirect', response(302, '')],
    ['an informational status', response(103, '')],
  ])('is unknown after %s, which an operator has to see, first or not', (_what, unread) => {
    expect(outcome(mutation, 'first', unread)).toEqual({ ...unknown, unread });
    expect(outcome(mutation, 'repeat', unread)).toEqual({ ...unknown, unread });
  });

  it.each([
    ['a reset or timeout', lost],
    ...[408, 425, 500, 501, 502, 503, 504, 520, 599].map((s): [string, Attempt] => [`a ${s}`, service(s)]),
    ['a 5xx with a transaction in it', response(500, '{"id":"t-1"}')],
  ])('is unknown after %s, first or not', (_what, happened) => {
    expect(outcome(mutation, 'first', happened)).toEqual(unknown);
    expect(outcome(mutation, 'repeat', happened)).toEqual(unknown);
  });

  it('is refused where the gateway itself has answered and sent nothing', () => {
    const synthesized: Attempt = { ...response(404, '{}'), synthesized: true };
    expect(outcome(mutation, 'first', synthesized).kind).toBe('refused');
  });
});

describe.each(['createInternalTransaction', 'createPennyValidation', 'refundTransaction'] as const)(
  'the outcome of %s',
  (mutation) => {
    it('is refused on any other 409 of the service', () => {
      expect(outcome(mutation, 'first', service(409)).kind).toBe('refused');
      expect(outcome(mutation, 'first', response(409, '<html>')).kind).toBe('unknown');
    });
  },
);

describe('the outcome of createMoneyOut', () => {
  it('is unknown on a first 409, to be repeated briefly within this call and never after it', () => {
    const happened = service(409);
    expect(outcome('createMoneyOut', 'first', happened)).toEqual({
      kind: 'unknown',
      reason: 'STILL_PROCESSING',
      next: 'repeat-briefly',
      close: answerOf(happened),
    });
  });

  it.each(['{"message":"in progress"}', '{}', '<html>', 'external_transfer_not_allowed', serviceError(409)])(
    'is in progress on the 409 of a repeat, whatever its body: %s',
    (text) => {
      const expected = { kind: 'unknown', reason: 'STILL_PROCESSING', next: 'repeat' };
      expect(outcome('createMoneyOut', 'repeat', response(409, text))).toEqual(expected);
    },
  );

  it.each([401, 403])('is not worth another repeat after the %i of the service', (status) => {
    expect(outcome('createMoneyOut', 'repeat', service(status))).toMatchObject({ next: 'report' });
  });

  it('is worth another after its 429', () => {
    expect(outcome('createMoneyOut', 'repeat', service(429))).toMatchObject({ next: 'repeat' });
  });
});
