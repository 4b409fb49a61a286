import { GraphQLError } from 'graphql';
import { expect, it } from 'vitest';
import { DrainingError, SlowConsumerError, StoreUnavailableError } from '../../src/events/errors.ts';
import { toPublicError } from '../../src/graphql/public-errors.ts';
import { errorOfAnswer, SuspendedError } from '../../src/upstream/call/errors.ts';

/** What a caller reads of an error that a field has failed with. */
const shownOf = (originalError: Error) =>
  toPublicError(new GraphQLError('', { originalError, path: ['client'] }))?.extensions;

it.each([
  [429, 'UPSTREAM_RATE_LIMITED'],
  [503, 'UPSTREAM_UNAVAILABLE'],
])('a %i of the service says when to come back, as the service has said it', (status, code) => {
  const answered = (retryAfterMs: number | undefined) =>
    errorOfAnswer({ kind: 'answered', status, body: undefined, text: '', retryAfterMs });
  expect(shownOf(answered(2_000))).toEqual({ code, retryAfterMs: 2_000 });
  expect(shownOf(answered(undefined))).toEqual(status === 429 ? { code, retryAfterMs: 5_000 } : { code });
});

it.each([
  [400, 'BAD_USER_INPUT'],
  [422, 'BAD_USER_INPUT'],
  [404, 'UPSTREAM_INVALID'],
  [409, 'UPSTREAM_INVALID'],
])('a %i to a read is told as %s, a code that docs/graph.md has', (status, code) => {
  const refused = errorOfAnswer({ kind: 'answered', status, body: {}, text: '{}', retryAfterMs: undefined });
  expect(shownOf(refused)).toEqual({ code });
});

it('a call that is suspended says when the next one is tried', () => {
  const code = 'UPSTREAM_UNAVAILABLE';
  expect(shownOf(new SuspendedError(1_234.5))).toEqual({ code, retryAfterMs: 1_235 });
});

it.each([
  ['DRAINING', new DrainingError()],
  ['SLOW_CONSUMER', new SlowConsumerError('0f0e0d0c-0b0a-4908-8706-050403020100')],
  ['STORE_UNAVAILABLE', new StoreUnavailableError('It is away.')],
])('a stream that ends with %s says so, and whether it may be begun again', (code, error) => {
  // What is told to the operator alone stands under symbols.
  expect(JSON.parse(JSON.stringify(shownOf(error)))).toEqual({ code, retryable: error.retryable });
});
