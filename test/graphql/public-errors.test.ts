import { GraphQLError } from 'graphql';
import { expect, it } from 'vitest';
import { DrainingError, SlowConsumerError, StoreUnavailableError } from '../../src/events/errors.ts';
import { toPublicError } from '../../src/graphql/public-errors.ts';
import { type Refusal, UpstreamError } from '../../src/upstream/call/errors.ts';

/** What a caller reads of an error that a field has failed with. */
const shownOf = (originalError: Error) =>
  toPublicError(new GraphQLError('', { originalError, path: ['client'] }))?.extensions;

it.each([429, 503])(
  'a %i of the service says when to come back, where the service has said it',
  (httpStatus) => {
    const code = httpStatus === 429 ? 'UPSTREAM_RATE_LIMITED' : 'UPSTREAM_UNAVAILABLE';
    // Nothing else of it is asked for.
    const refusal = { httpStatus } as Refusal;
    const failed = (when: object) => new UpstreamError(code, 'Later.', { refusal, ...when });
    expect(shownOf(failed({ retryAfterMs: 2_000 }))).toEqual({ code, retryAfterMs: 2_000 });
    expect(shownOf(failed({}))).toEqual({ code });
  },
);

it.each([
  ['DRAINING', new DrainingError()],
  ['SLOW_CONSUMER', new SlowConsumerError('0f0e0d0c-0b0a-4908-8706-050403020100')],
  ['STORE_UNAVAILABLE', new StoreUnavailableError('It is away.')],
])('a stream that ends with %s says so, and whether it may be begun again', (code, error) => {
  // What is told to the operator alone stands under symbols.
  expect(JSON.parse(JSON.stringify(shownOf(error)))).toEqual({ code, retryable: error.retryable });
});
