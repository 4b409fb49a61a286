import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ClientAddress } from '../common/client-address.ts';
import { clock } from '../common/clock.ts';
import { EVENT_STREAM, takesStreamsAlone } from '../common/event-stream.ts';
import { noteRefusal } from '../common/refusals.ts';
import { PROBE_PATH } from '../common/request-line.ts';

// An import would read each export of the module. For one of them, `WebSocket`, Node loads a second undici: a twentieth of a
// start.
const http = process.getBuiltinModule('node:http');

/**
 * After this time without a byte the socket's own timer looks whether the client has read, in milliseconds. It lets the first
 * part of an answer pass as progress, so that a client which reads nothing loses its connection after up to twice as long.
 */
export const STALL_MS = 20_000;

const answers = new WeakMap<Socket, ServerResponse>();

/** The answer that a connection carries at this moment, begun or not; undefined between two requests. */
export const answerOn = (socket: Socket): ServerResponse | undefined => answers.get(socket);

/** An answer whose connection is watched also while its body is streamed: `@whatwg-node/server` ends the socket's timer for that. */
export class WatchedResponse extends http.ServerResponse {
  override assignSocket(socket: Socket): void {
    super.assignSocket(socket);
    answers.set(socket, this);
  }

  override detachSocket(socket: Socket): void {
    super.detachSocket(socket);
    answers.delete(socket);
  }

  override write(...written: readonly unknown[]): boolean {
    // Of a request that was sent behind others, the response has no socket until those are answered.
    const { socket } = this.req;
    if (socket.timeout === 0) socket.setTimeout(STALL_MS);
    // The overloads of Node.
    return super.write(...(written as Parameters<ServerResponse['write']>));
  }
}

/**
 * Ends connections: each with the answer that it carries, once the server is stopping, and any whose client does not read its
 * answer.
 */
export interface Connections {
  /** Called with each answer before anything is written of it. */
  watch(response: ServerResponse): void;
  /** Makes every later answer the last of its connection, and those under way whose head is not written yet. */
  end(): void;
}

/** Prefixes of the paths that are counted by name. */
const PATHS = ['/graphql', '/webhooks/', '/readyz', '/healthz', '/metrics'];

/**
 * Returns the label under which an answer is counted: one of few paths, `other` for the doctor's probe. Event streams have a label of their own, because they
 * end when their readers leave.
 */
export function pathOf(response: Counted): string {
  const { url = '' } = response.req;
  const path = url.startsWith(PROBE_PATH) ? 'other' : (PATHS.find((name) => url.startsWith(name)) ?? 'other');
  return path === '/graphql' && isStream(response) ? 'stream' : path;
}

/** What an answer is counted by. */
type Counted = Pick<ServerResponse, 'headersSent' | 'getHeader'> & {
  readonly req: Pick<IncomingMessage, 'url' | 'headers'>;
};

/** Whether it is an event stream; of one that has not begun, whether its client takes nothing else. */
function isStream(response: Counted): boolean {
  const { accept = '' } = response.req.headers;
  return response.headersSent
    ? String(response.getHeader('content-type')).startsWith(EVENT_STREAM)
    : takesStreamsAlone(accept);
}

/**
 * Makes what ends connections. Without {@link Connections.end} a connection stays open after its answer, for the client's next request, and
 * a server that ends waits for it.
 *
 * @param onClosed called with each answer that is sent, or whose client has gone, and after how many milliseconds.
 */
export function createConnections(
  onClosed: (response: ServerResponse, milliseconds: number) => void,
): Connections {
  // V8 gives a set a new table after some additions and deletions, and each old table leads to the next. Once one of them is
  // in the old generation, all later ones stay until the next full collection, with everything that they hold. So the set
  // holds an entry that can be emptied, and not the answer itself with its request and socket.
  const underWay = new Set<{ response: ServerResponse | undefined }>();
  let ending = false;
  const makeLast = (response: ServerResponse): void => {
    if (!response.headersSent) response.setHeader('connection', 'close');
  };
  /** Node calls it when nothing has moved for {@link STALL_MS}, neither in nor out. */
  const onTimeout = (socket: Socket): void => {
    if (socket.writableLength > 0) socket.destroy();
    // The answer is being made, which may take longer, so the socket's own timer is set again.
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
 * Ends a new connection at once, before anything is read of it, if its address has too many others. Connections of proxies
 * carry requests of many clients, and are not counted.
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
      noteRefusal('connections_of_address');
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

/**
 * How many requests may come behind one that is not answered yet, on one connection: as many as a socket may have operations beside another.
 * What each is answered is kept in memory until those before it are answered, and read.
 */
const MOST_BEHIND = 20;

/**
 * Makes the function that is called with each answer before anything is written of it, and says whether its request may be served: one that
 * is too many behind others of its connection may not, nor may any that comes after it.
 */
export function boundRequests(): (response: ServerResponse) => boolean {
  const behind = new WeakMap<Socket, number>();
  return (response) => {
    const { socket } = response.req;
    const count = behind.get(socket) ?? 0;
    // One that has the connection's socket waits for nobody.
    if (response.socket !== null) return count !== Number.POSITIVE_INFINITY;
    const isTaken = count < MOST_BEHIND;
    behind.set(socket, isTaken ? count + 1 : Number.POSITIVE_INFINITY);
    // Node forgets these answers when a CONNECT or an upgrade comes behind them: it closes none of them when the connection ends, and they
    // would keep what they hold for good.
    const leave = (): void => void response.destroy();
    socket.setMaxListeners(0).once('close', leave);
    response.once('close', () => {
      socket.off('close', leave);
      behind.set(socket, (behind.get(socket) ?? 0) - 1);
    });
    return isTaken;
  };
}
