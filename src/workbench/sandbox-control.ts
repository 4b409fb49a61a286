import type { IncomingMessage, ServerResponse } from 'node:http';
import { clock } from '../common/clock.ts';
import { type IsOwnHost, isOwnPage } from './same-origin.ts';

/** What the page may ask of the sandbox's control, and nothing else of it. An id is a UUID. */
const ALLOWED: ReadonlySet<string> = new Set([
  'GET /sandbox',
  'GET /sandbox/transactions/{id}',
  'POST /sandbox/deliveries/{id}/send',
  'POST /sandbox/spei-credits',
  'POST /sandbox/refunds',
  'GET /sandbox/faults',
  'POST /sandbox/faults',
  'DELETE /sandbox/faults',
  'GET /sandbox/clock',
  'POST /sandbox/clock',
]);

const UUID = /(?<=\/)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=\/|$)/i;

const MAX_BODY_BYTES = 16 * 1024;
/** Stepping the clock waits for everything that falls due on the way, webhooks included. */
const TIMEOUT_MS = 60_000;

/** The sandbox beside this gateway. */
export interface EmbeddedSandbox {
  /** Its origin. */
  readonly sandboxUrl: string;
  readonly isOwnHost: IsOwnHost;
}

/**
 * Passes a request of the page on to the control of the embedded sandbox. The sandbox answers no page of another origin, and
 * that stays so: the page asks its own, which asks from this machine. A page of another site can use neither way.
 *
 * @param path such as `/sandbox/clock`
 */
export async function controlSandbox(
  { sandboxUrl, isOwnHost }: EmbeddedSandbox,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = '' } = request;
  if (!isOwnPage(request, isOwnHost)) {
    return refuse(
      response,
      403,
      'The sandbox is for this machine: open the page at a loopback address, or name the host in SANDBOX_HOSTS.',
    );
  }
  if (!ALLOWED.has(`${method} ${path.replace(UUID, '{id}')}`))
    return refuse(response, 404, 'The page does not use this.');
  if (method === 'POST' && !/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    return refuse(response, 415, 'The body must be application/json.');
  }
  const body = await readBody(request);
  if (body === undefined) return refuse(response, 413, `The body is longer than ${MAX_BODY_BYTES} bytes.`);
  try {
    const answer = await fetch(`${sandboxUrl}${path}`, {
      method,
      signal: clock.timeoutSignal(TIMEOUT_MS),
      ...(method === 'POST' ? { body, headers: { 'content-type': 'application/json' } } : {}),
    });
    const text = await answer.text();
    response
      .writeHead(answer.status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      .end(text);
  } catch {
    refuse(response, 502, 'The sandbox does not answer.');
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ message }));
}

/** Undefined when it is too long, or its sender is gone. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request) {
      length += chunk.length;
      if (length > MAX_BODY_BYTES) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString();
}
