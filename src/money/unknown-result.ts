import { RETRY_WINDOW_MS } from './backoff.ts';
import type { Call, UnknownResult } from './call.ts';
import { isRepeatable } from './intent.ts';

/** What leaves, or has left. */
export interface Dispatch {
  readonly body: string;
  /** When it left first, in ms since the epoch by this process's clock; rather too early than too late. */
  readonly sentAt: number;
}

export const NOTHING_MORE: UnknownResult = {
  kind: 'unknown',
  reason: 'NO_ANSWER',
  safeToRetry: false,
  retryUntil: undefined,
  last: undefined,
  sameAnswerAgain: false,
  original: undefined,
};

/** What is told of an order that was sent, and of which no more is known than what was seen. */
export function unknown(
  { order, ambient }: Call,
  { sentAt }: Dispatch,
  seen: Partial<UnknownResult>,
): UnknownResult {
  const retryUntil = sentAt + RETRY_WINDOW_MS;
  const safe = isRepeatable(order.mutation) && ambient.now() < retryUntil;
  if (safe) return { ...NOTHING_MORE, ...seen, safeToRetry: true, retryUntil };
  const isTooLate = isRepeatable(order.mutation) && seen.reason === undefined;
  return { ...NOTHING_MORE, ...seen, ...(isTooLate && { reason: 'TOO_LATE_TO_ASK' }) };
}

/** Nothing may be sent any more. */
export function withoutRetry(report: UnknownResult): UnknownResult {
  return { ...report, safeToRetry: false, retryUntil: undefined };
}
