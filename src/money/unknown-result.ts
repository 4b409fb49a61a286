import { RETRY_WINDOW_MS } from './backoff.ts';
import type { Call, UnknownResult } from './call.ts';
import { isRepeatable } from './intent.ts';

/** A request that is sent, or was. */
export interface Dispatch {
  readonly body: string;
  /** When it was first sent, in ms since the epoch by this process's clock. In doubt, too early rather than too late. */
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

/** Returns the result for an order that was sent and whose outcome is unknown. `seen` is what this call has found out. */
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

/** Returns the result without permission to send the request again. */
export function withoutRetry(report: UnknownResult): UnknownResult {
  return { ...report, safeToRetry: false, retryUntil: undefined };
}
