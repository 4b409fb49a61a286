import type { ExecutionResult } from 'graphql';
import type { SlowReaderMetrics } from '../observability/event-metrics.ts';

/** Whose events they are, for the operator: a symbol is no part of the JSON that is sent. */
const CLIENT: unique symbol = Symbol('client of a slow reader');

type Extensions = Readonly<Record<string, unknown>>;

/** The extensions of an error that ends a stream for which too many events waited. */
export const withSlowReader = (extensions: Extensions, clientId: string): Extensions => ({
  ...extensions,
  [CLIENT]: clientId,
});

/** Counts so many readers, where a result ends them because too many events waited. */
export function countSlowReaders(
  metrics: SlowReaderMetrics,
  { errors = [] }: ExecutionResult,
  readers: number,
): void {
  const clients = errors.map(({ extensions }): string | undefined => Reflect.get(extensions, CLIENT));
  const clientId = clients.find((told) => told !== undefined);
  if (clientId !== undefined && readers > 0) metrics.slow(clientId, readers);
}
