import type { IncomingMessage } from 'node:http';

/** The longest delivery, in bytes. */
const MAX_BYTES = 64 * 1024;
/** How long a sender may take over its body, in milliseconds. */
const DEADLINE_MS = 5000;

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'too-slow' }
  /** The sender went away. */
  | { readonly kind: 'gone' };

/** Reads a body as far as it may go: 64 KiB, counted on what arrives, within 5 s. */
export function readBody(request: IncomingMessage): Promise<Body> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (body: Body): void => {
      clearTimeout(timer);
      request.removeAllListeners('data');
      resolve(body);
    };
    const timer = setTimeout(() => settle({ kind: 'too-slow' }), DEADLINE_MS);
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_BYTES) settle({ kind: 'too-large' });
      else chunks.push(chunk);
    });
    request.once('end', () => settle({ kind: 'whole', bytes: Buffer.concat(chunks) }));
    request.once('error', () => settle({ kind: 'gone' }));
    request.once('close', () => settle({ kind: 'gone' }));
  });
}

/** What is left of a body that was not wanted is thrown away, and a sender that takes too long over it is cut off. */
export function discard(request: IncomingMessage): void {
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), DEADLINE_MS);
  request.once('close', () => clearTimeout(timer));
}
