import type { ExecutionResult } from 'graphql';
import { clock } from '../common/clock.ts';
import type { DeliveryMetrics } from '../observability/event-metrics.ts';
import { originOf } from './executor/graphql-js.ts';
import { countGap } from './gaps.ts';

/**
 * Counts a result that is sent to subscribers, where it was made from an event, or has an error.
 *
 * @param since when they subscribed, in milliseconds since the epoch: the age of history says nothing of how fast events
 * travel.
 */
export function countDelivery(
  metrics: DeliveryMetrics,
  result: ExecutionResult,
  readers: number,
  since: number,
): void {
  countErrors(metrics, result, readers);
  countGap(metrics, result, readers);
  const origin = originOf(result);
  if (origin === undefined || readers === 0) return;
  metrics.delivered(origin.type, readers);
  const arrived = Date.parse(origin.receivedAt);
  // Another process has received it, whose clock may be ahead: a sum that goes down counts as one that has begun anew.
  if (arrived >= since) metrics.lag(Math.max(0, clock.now() - arrived));
}

/** A stream counts as opened before it has read anything, so that what fails after that is counted here alone. */
function countErrors(metrics: DeliveryMetrics, result: ExecutionResult, readers: number): void {
  const code = result.errors?.[0]?.extensions['code'];
  if (code !== undefined && readers > 0) metrics.failed(String(code), readers);
}
