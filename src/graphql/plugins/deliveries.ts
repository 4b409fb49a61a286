import type { ExecutionResult } from 'graphql';
import { originOf } from '../executor/graphql-js.ts';

export interface DeliveryMetrics {
  /** An event was sent to so many subscribers. */
  delivered(type: string, readers: number): void;
  /** How long after its webhook had arrived an event was sent. Not told of what had arrived before its subscribers. */
  lag(milliseconds: number): void;
}

/**
 * Counts a result that is sent to subscribers, where it was made from an event.
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
  const origin = originOf(result);
  if (origin === undefined || readers === 0) return;
  metrics.delivered(origin.type, readers);
  const arrived = Date.parse(origin.receivedAt);
  if (arrived >= since) metrics.lag(Date.now() - arrived);
}
