/**
 * Returns what an error says. OpenSSL's own messages hold the reason among numbers and places in its sources; Node gives the reason apart,
 * and the library that it comes from. Node's own error about the name in a certificate has a reason too, which is half a sentence.
 */
export function saidBy(error: Error): string {
  const { reason, library } = error as { reason?: unknown; library?: unknown };
  return typeof reason === 'string' && library !== undefined ? reason : error.message;
}
