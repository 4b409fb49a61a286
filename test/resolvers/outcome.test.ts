import { describe, expect, it } from 'vitest';
import { OutcomeUnknown, RefusedError, ValidationError } from '../../src/resolvers/errors.ts';
import { successOf } from '../../src/resolvers/outcome.ts';
import { UpstreamError } from '../../src/upstream/call/errors.ts';
import type { Attempt } from '../../src/upstream/call/http.ts';
import { serviceError } from '../money/upstream.ts';

const answered = (status: number, body: unknown = undefined): Attempt => ({
  kind: 'answered',
  status,
  body,
  text: JSON.stringify(body) ?? '',
  retryAfterMs: undefined,
});
const failed = (dispatched: boolean): Attempt => ({
  kind: 'failed',
  error: new UpstreamError('UPSTREAM_UNAVAILABLE', 'It broke.', { dispatched }),
});
const read = (body: unknown) => (typeof body === 'number' ? body : undefined);
const members = [ValidationError, RefusedError];

function thrown(attempt: Attempt, unclear: 'data' | 'error'): unknown {
  try {
    successOf(attempt, read, { members, unclear });
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe('a request sent once', () => {
  it.each([200, 201, 202])('has succeeded with %i and a readable body', (status) => {
    expect(successOf(answered(status, 7), read, { members, unclear: 'data' })).toBe(7);
  });

  it.each([
    ['an unreadable 2xx', answered(200, 'garbage')],
    ['a 2xx without a body', answered(204)],
    ['a 500', answered(500)],
    ['a 503', answered(503)],
    ['a redirect', answered(302)],
    ['a 408', answered(408)],
    ['a 425', answered(425)],
    ['a connection that broke after dispatch', failed(true)],
  ])('has an unknown outcome after %s, and must not be repeated', (_what, attempt) => {
    const error = thrown(attempt, 'data');
    expect(error).toBeInstanceOf(OutcomeUnknown);
    expect(error).toMatchObject({ safeToRetry: false, retryUntil: null, original: null });
  });

  it.each([
    ['an unreadable 2xx', answered(200, 'garbage'), 'UPSTREAM_INVALID'],
    ['a 502', answered(502), 'UPSTREAM_UNAVAILABLE'],
    ['a 408', answered(408), 'UPSTREAM_UNAVAILABLE'],
    ['a connection that broke', failed(true), 'UPSTREAM_UNAVAILABLE'],
  ])('that does no harm twice is a top-level error after %s', (_what, attempt, code) => {
    const error = thrown(attempt, 'error');
    expect(error).toBeInstanceOf(UpstreamError);
    expect(error).toMatchObject({ code });
  });

  it('has an unknown outcome where reading a 2xx throws the error of an answer that cannot be read', () => {
    const error = new UpstreamError('UPSTREAM_INVALID', 'The service sent an account without an id.');
    const readOf = (unclear: 'data' | 'error') => () =>
      successOf(
        answered(201, { id: '' }),
        () => {
          throw error;
        },
        { members, unclear },
      );
    expect(readOf('data')).toThrow(OutcomeUnknown);
    expect(readOf('error')).toThrow(error);
  });

  it('has not happened when it was never dispatched: a top-level error, also where the union has OutcomeUnknown', () => {
    expect(thrown(failed(false), 'data')).toMatchObject({ code: 'UPSTREAM_UNAVAILABLE', dispatched: false });
  });

  it.each([
    [401, 'UNAUTHENTICATED'],
    [403, 'FORBIDDEN'],
    [429, 'UPSTREAM_RATE_LIMITED'],
  ])('refused with %i for who asks is a top-level error', (status, code) => {
    const service = answered(status, JSON.parse(serviceError(status)));
    expect(thrown(service, 'data')).toMatchObject({ code });
    expect(thrown(answered(status), 'error')).toMatchObject({ code });
    // Somebody on the way does not know what became of it.
    expect(thrown(answered(status), 'data')).toBeInstanceOf(OutcomeUnknown);
  });

  it('refused for what it says is data', () => {
    expect(thrown(answered(400), 'data')).toBeInstanceOf(RefusedError);
  });
});
