import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ClientAddress } from '../common/client-address.ts';
import { clock } from '../common/clock.ts';

/** How long a client may leave what it is sent unread, in milliseconds. */
export const STALL_MS = 20_000;

/**
 * Ends each connection with the answer that it carries, once the server is stopping, and one whose client does not read
 * what it is sent.
 */
export interface Connections {
  /** Called with each answer before anything is written of it. */
  watch(response: ServerResponse): void;
  /** From now on answers are the last of their connection; those under way too, whose head is not written yet. */
  end(): void;
}

/** Paths that are counted by name, each the beginning of what it serves. */
const PATHS = ['/graphql', '/webhooks/', '/readyz', '/healthz', '/metrics'];

/** What an answer is counted as: one of few paths, and event streams apart, which end when their readers leave. */
export function pathOf({ url = '', headers }: IncomingMessage): string {
  const path = PATHS.find((name) => url.startsWith(name)) ?? 'other';
  return path === '/graphql' && headers.accept?.includes('text/event-stream') ? 'stream' : path;
}

/**
 * Without it a client's connection would be kept for its next request, and the server's end with it.
 *
 * @param onClosed called with each answer that is out, or whose client has gone, after so many milliseconds.
 */
export function createConnections(
  onClosed: (response: ServerResponse, milliseconds: number) => void,
): Connections {
  // A set that is added to and deleted from all the time gets a new table every few times, and V8 has each table lead to the next.
  // Once one of them has grown old, all that come after it stay until the next full collection, with what they held: the
  // set therefore holds an entry that is emptied, and not the answer itself with its request and socket.
  const underWay = new Set<{ response: ServerResponse | undefined }>();
  let ending = false;
  const makeLast = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  /** Node calls it when nothing has moved for {@link STALL_MS}, neither in nor out. */
  const onTimeout = (socket: Socket): void => {
    if (socket.writableLength > 0) socket.destroy();
    // An answer is being made, which may take longer; the socket's own timer is set again.
    else socket.setTimeout(STALL_MS);
  };
  return {
    watch(response) {
      response.on('timeout', onTimeout);
      if (ending) makeLast(response);
      const entry: { response: ServerResponse | undefined } = { response };
      underWay.add(entry);
      const began = clock.monotonic();
      response.on('close', () => {
        underWay.delete(entry);
        entry.response = undefined;
        onClosed(response, clock.monotonic() - began);
      });
    },
    end() {
      ending = true;
      for (const { response } of underWay) if (response !== undefined) makeLast(response);
    },
  };
}

/**
 * Ends each connection that its address has too many of beside it, before anything is read of it. Connections of proxies carry
 * everybody's requests, and are not counted.
 *
 * @param perAddress how many one address, or one network of IPv6 addresses, may have
 */
export function boundConnections(server: Server, perAddress: number, addressOfClient: ClientAddress): void {
  const counts = new Map<string, number>();
  server.on('connection', (socket) => {
    const address = addressOfClient({ socket, headers: {} });
    if (address === undefined) return;
    const count = counts.get(address) ?? 0;
    if (count >= perAddress) {
      socket.destroy();
      return;
    }
    counts.set(address, count + 1);
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left > 0) counts.set(address, left);
      else counts.delete(address);
    });
  });
}
