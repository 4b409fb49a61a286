import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { clock } from '../common/clock.ts';
import type { Turns } from '../common/turns.ts';
import type { Drain } from '../graphql/plugins/drain.ts';
import { addressKey } from '../operation/caller-keys.ts';
import { noteRefusedStream } from '../operation/streams.ts';
import { answerOn } from './connections.ts';
import type { OpenStreams, StreamSeat } from './sockets/open-streams.ts';

/** What an upgrade is answered while the server stops. Another process may answer at once; the pause is that of an event stream (`graphql/plugins/sse.ts`). */
const STOPPING = ['503 Service Unavailable', 'Retry-After: 1\r\n'] as const;
/** Where a proxy has changed `Host`, the page and this answer are all that its owner has to find it by. */
const FOREIGN_ORIGIN =
  'The Origin of this WebSocket is neither that of its Host nor in CORS_ORIGINS. Have the proxy on the way pass Host on as it came, with its port (in nginx proxy_set_header Host $http_host).';
/** How long a refused peer may take to read the reason and to close its side, in milliseconds. */
const REFUSED_MS = 1_000;

export interface UpgradeOptions {
  readonly path: string;
  /** True if pages of this origin may connect. Clients that send no `Origin` are not pages. */
  allowsOrigin(origin: string, host: string | undefined): boolean;
  /** Called with each origin that is refused. */
  onForeignOrigin(origin: string, host: string | undefined): void;
  /** Takes a seat for a socket. Returns the seat, or why there is none. */
  openStream(request: IncomingMessage): ReturnType<OpenStreams['enter']>;
  /** The network address that a request came from; undefined where it is not known. */
  addressOf(request: IncomingMessage): string | undefined;
  readonly turns: Pick<Turns, 'turn'>;
  /** While the process drains, each upgrade is refused with 503, also one that has waited for its turn. */
  readonly drain: Pick<Drain, 'isDraining'>;
}

/** An upgrade that is accepted. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly seat: StreamSeat;
  readonly address: string | undefined;
}

/**
 * Shared by all listeners: a function made in one would hold all that its socket's upgrade knew, the bytes of the request
 * among it.
 */
const ignore = (): void => undefined;

/**
 * Accepts, in turns, the upgrades that may become sockets, and refuses all others. Of one that comes before a request of its connection
 * is answered, it ends the connection. Node hands over the connection of an upgrade without any of its time-outs.
 */
export function acceptUpgrades(
  server: Server,
  { path, allowsOrigin, onForeignOrigin, openStream, addressOf, turns, drain }: UpgradeOptions,
  letIn: (upgrade: Upgrade) => void,
): void {
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const { origin, host } = request.headers;
    // Node no longer listens to it. Without a listener a connection that breaks off would end the process.
    socket.on('error', ignore);
    // The client of a request before it that has no whole answer yet would take what is written here for that answer: a payment that is
    // being made would be told as refused. `socket` may be a wrapper of the connection, where the upgrade has a body.
    if (answerOn(request.socket) !== undefined) {
      socket.destroy();
      return;
    }
    if ((request.url ?? '').split('?', 1)[0] !== path) {
      refuse(socket, '404 Not Found');
      return;
    }
    if (origin !== undefined && !allowsOrigin(origin, host)) {
      onForeignOrigin(origin, host);
      refuse(socket, '403 Forbidden', '', FOREIGN_ORIGIN);
      return;
    }
    if (drain.isDraining) {
      refuse(socket, ...STOPPING);
      return;
    }
    const seat = openStream(request);
    if (typeof seat === 'string') {
      noteRefusedStream(seat);
      const status = seat === 'full' ? '503 Service Unavailable' : '429 Too Many Requests';
      refuse(socket, status, 'Retry-After: 10\r\n');
      return;
    }
    leaveWith(socket, seat);
    const address = addressOf(request);
    const enter = (): void => {
      if (drain.isDraining) refuse(socket, ...STOPPING);
      else letIn({ request, socket, head, seat, address });
    };
    const turn = turns.turn('arrivals', addressKey(address));
    if (turn === undefined) enter();
    else void turn.then(enter);
  };
  // It stays to the end: without a listener Node would end the connection, and the client would not learn that it may come again.
  server.on('upgrade', onUpgrade);
}

/** Gives the seat back when the connection ends. A function of its own, so that it holds nothing of the upgrade's request. */
function leaveWith(socket: Duplex, seat: StreamSeat): void {
  socket.once('close', () => seat.leave());
}

/**
 * Sends the reason, and ends the connection. `end` alone closes one half of it: a peer that never closes the other, or never
 * reads, would keep the connection for good. Data that the peer still sends is discarded: if nobody read it, the operating
 * system would reset the connection, and the peer would not see the reason.
 *
 * @param headers lines, each with its line break.
 */
function refuse(socket: Duplex, status: string, headers = '', reason = ''): void {
  const body = reason === '' ? '' : JSON.stringify({ error: reason });
  const type = body === '' ? '' : 'Content-Type: application/json\r\n';
  const length = `Content-Length: ${Buffer.byteLength(body)}\r\n`;
  socket.resume();
  socket.end(`HTTP/1.1 ${status}\r\n${headers}Connection: close\r\n${type}${length}\r\n${body}`);
  const timer = clock.setTimeout(() => socket.destroy(), REFUSED_MS);
  socket.once('close', () => clock.clearTimeout(timer));
}
