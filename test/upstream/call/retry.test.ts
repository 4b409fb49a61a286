import { describe, expect, it } from 'vitest';
import { SuspendedError, UpstreamError } from '../../../src/upstream/call/errors.ts';
import type { Attempt } from '../../../src/upstream/call/http.ts';
import { MOST_PAUSE_MS, retryDelay } from '../../../src/upstream/call/retry.ts';

const answered = (status: number, retryAfterMs?: number): Attempt => ({
  kind: 'answered',
  status,
  body: undefined,
  text: '',
  retryAfterMs,
});
const failed = (error: UpstreamError): Attempt => ({ kind: 'failed', error });

/** The pause before the second try, with all the time there is, in the middle of its random part. */
const pauseAfter = (attempt: Attempt) => retryDelay(attempt, 1, Number.POSITIVE_INFINITY, 0.5);

describe('a GET is tried again', () => {
  it.each([
    ['a 408', answered(408)],
    ['a 425', answered(425)],
    ['a 502', answered(502)],
    ['a 503', answered(503)],
    ['a 504', answered(504)],
    ['a connection that broke off', failed(new UpstreamError('UPSTREAM_UNAVAILABLE', 'broke'))],
  ])('after %s', (_, attempt) => {
    expect(pauseAfter(attempt)).toBe(100);
  });

  it('after a 429 or a 503 that says when, no earlier than that', () => {
    for (const status of [429, 503]) expect(pauseAfter(answered(status, 2_000))).toBe(2_100);
    expect(retryDelay(answered(503, MOST_PAUSE_MS), 1, Number.POSITIVE_INFINITY, 0)).toBe(MOST_PAUSE_MS);
  });

  it('later each time', () => {
    expect(retryDelay(answered(503), 2, Number.POSITIVE_INFINITY, 0.5)).toBe(200);
  });

  it.each([
    ['an answer that is final', answered(404)],
    ['a 500', answered(500)],
    ['a 429 that does not say when', answered(429)],
    ['a time-out', failed(new UpstreamError('UPSTREAM_TIMEOUT', 'late'))],
    ['a call that was refused while the service is suspended', failed(new SuspendedError(2_000))],
    ['a 503 that asks for too long a pause', answered(503, MOST_PAUSE_MS + 1)],
  ])('never after %s', (_, attempt) => {
    expect(pauseAfter(attempt)).toBeUndefined();
  });

  it('three times at most', () => {
    expect(retryDelay(answered(503), 3, Number.POSITIVE_INFINITY, 0.5)).toBeUndefined();
  });

  it('only where the whole pause ends within the time that is left, its random part included', () => {
    expect(retryDelay(answered(503, 1_000), 1, 1_101, 0.5)).toBe(1_100);
    expect(retryDelay(answered(503, 1_000), 1, 1_100, 0.5)).toBeUndefined();
  });
});
