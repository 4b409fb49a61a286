import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Somebody between gateway and upstream, who sees what passes and may answer himself. */
export interface Front extends AsyncDisposable {
  readonly url: string;
  /** The requests so far that changed something, in the order of arrival. */
  readonly changes: readonly Seen[];
}

/** @param answer handles a request and returns true, or leaves it to the upstream, at once or when it resolves. */
export async function startFront(
  upstreamUrl: string,
  answer: (seen: Seen, response: ServerResponse) => boolean | Promise<boolean>,
): Promise<Front> {
  const changes: Seen[] = [];
  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url: path = '', headers } = incoming;
    const seen = { method, path, headers, body: await text(incoming) };
    if (method !== 'GET') changes.push(seen);
    if (await answer(seen, response)) return;
    const { host: _, ...passed } = headers;
    const onwards = send(new URL(path, upstreamUrl), { method, headers: passed });
    onwards.on('error', () => response.destroy());
    onwards.on('response', (received) => {
      response.writeHead(received.statusCode ?? 500, received.headers);
      received.on('error', () => response.destroy());
      received.pipe(response);
    });
    onwards.end(seen.body);
  };
  const server = createServer((incoming, response) => void handle(incoming, response)).listen(0, '127.0.0.1');
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    changes,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
