import type { IncomingMessage } from 'node:http';
import { Bodies, type Body } from '../common/bodies.ts';
import { clock } from '../common/clock.ts';

/** The longest delivery, in bytes. */
const MAX_BYTES = 64 * 1024;
/** How long a sender may take over its body, in milliseconds. */
const DEADLINE_MS = 5000;
/** Bytes that the bodies of deliveries under way may take. Their senders have shown a signature, so none is a stranger. */
const LIMITS = { total: 64 * 1024 * 1024, strangers: 0, perKey: 32 * 1024 * 1024 };

/**
 * Makes the function that reads the bodies of deliveries: 64 KiB each, within 5 s, and bounded for each client, apart from
 * all other bodies.
 */
export function createDeliveryBodies(): (request: IncomingMessage, clientId: string) => Promise<Body> {
  const bodies = new Bodies(LIMITS);
  return (request, clientId) =>
    bodies.read(request, { key: clientId, isKnown: true, maxBytes: MAX_BYTES, deadlineMs: DEADLINE_MS });
}

/** Discards the rest of a body, and cuts off a sender that takes too long over it. */
export function discard(request: IncomingMessage): void {
  if (request.complete) return;
  request.resume();
  const timer = clock.setTimeout(() => request.socket.destroy(), DEADLINE_MS);
  request.once('close', () => clock.clearTimeout(timer));
}
