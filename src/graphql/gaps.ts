import type { ExecutionResult } from 'graphql';
import type { Gap } from '../events/errors.ts';
import type { DeliveryMetrics } from '../observability/event-metrics.ts';

/** What an operator is told of a gap, beside what its reader is: a symbol is no part of the JSON that is sent. */
const GAP: unique symbol = Symbol('gap');

type Extensions = Readonly<Record<string, unknown>>;

/** The extensions of an error that tells a reader of a gap. */
export const withGap = (extensions: Extensions, gap: Gap): Extensions => ({ ...extensions, [GAP]: gap });

/** Counts a result that tells so many readers of a gap. */
export function countGap(
  metrics: Pick<DeliveryMetrics, 'gap'>,
  { errors }: ExecutionResult,
  readers: number,
): void {
  // Nearly every delivery.
  if (errors === undefined) return;
  const gaps = errors.map(({ extensions }): Gap | undefined => Reflect.get(extensions, GAP));
  const gap = gaps.find((told) => told !== undefined);
  if (gap !== undefined && readers > 0) metrics.gap(gap, readers);
}
