import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the tests' deliveries are signed with. */
export const SECRET = 'the receiver of the tests knows this one too';

/** What of an event the tests look at. */
interface Delivered {
  readonly id: string;
  readonly cursor: string;
  readonly transactionId: string;
  readonly amount: { readonly amount: string };
}

/**
 * A receiver that checks each signature with WebCrypto, and answers what `answer` says.
 *
 * @param headers of each answer
 * @param text of each answer
 */
export async function startReceiver(
  answer: (event: Delivered) => number | Promise<number>,
  headers: Readonly<Record<string, string>> = {},
  text = '',
) {
  const key = await crypto.subtle.importKey(
    'raw',
    new TextEncoder().encode(SECRET),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  );
  const isSigned = async (header: string, body: string): Promise<boolean> => {
    const [, time = '', signature = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header) ?? [];
    const signed = new TextEncoder().encode(`${time}.${body}`);
    const isFresh = Math.abs(Date.now() / 1000 - Number(time)) < 300;
    return isFresh && crypto.subtle.verify('HMAC', key, Buffer.from(signature, 'hex'), signed);
  };
  const taken: Delivered[] = [];
  const bodies: string[] = [];
  const unsigned: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    if (!(await isSigned(String(request.headers['pasarela-signature']), body))) unsigned.push(body);
    bodies.push(body);
    const event: Delivered = JSON.parse(body);
    const status = await answer(event);
    if (status < 300) taken.push(event);
    response.writeHead(status, headers).end(text);
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/hook`,
    taken,
    /** Of all deliveries, as they came. */
    bodies,
    unsigned,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
