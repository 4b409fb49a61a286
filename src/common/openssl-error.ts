/**
 * Returns what an error says. OpenSSL's own messages hold the reason among numbers and places in its sources; Node gives the reason apart.
 */
export function saidBy(error: Error): string {
  const { reason } = error as { reason?: unknown };
  return typeof reason === 'string' ? reason : error.message;
}
