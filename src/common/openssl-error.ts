/**
 * Returns what an error says. OpenSSL's own messages hold the reason among numbers and places in its sources; Node gives the reason apart,
 * and the library that it comes from. Node's own error about the name in a certificate has a reason too, which is half a sentence. Where a
 * name has several addresses and none takes a connection, Node's error says nothing, and holds one for each.
 */
export function saidBy(error: Error): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return saidBy(error.errors[0]);
  const { reason, library } = error as { reason?: unknown; library?: unknown };
  return typeof reason === 'string' && library !== undefined ? reason : error.message;
}
