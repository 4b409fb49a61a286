import { CloseCode, type WebSocket as ProtocolSocket } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { Watched } from './expiry-watch.ts';
import type { Outlet } from './fan-out.ts';
import type { StreamPlace } from './open-streams.ts';

/** Close code for a reader that fell behind (IANA, WebSocket close codes); clients connect again after it. */
export const TRY_AGAIN_LATER = 1013;

/** What all sockets share. */
export interface PeerOptions {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Called with a caller's credential before it is told of an event. */
  onTold(credential: string): void;
}

/** How much may wait for a peer to read it when it is to be sent more, in bytes. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** A socket as the protocol needs it. Thousands of them wait for events: each holds as little as may be. */
export class Peer implements ProtocolSocket, Watched {
  readonly protocol: string;
  /** What its caller presents: the header of the upgrade request, until the socket is initialised. */
  authorization: string | undefined;
  expiresAt: number | undefined;
  readonly place: StreamPlace;
  readonly #socket: WebSocket;
  readonly #options: PeerOptions;

  /** @param authorization the header of the upgrade request. */
  constructor(
    socket: WebSocket,
    authorization: string | undefined,
    place: StreamPlace,
    options: PeerOptions,
  ) {
    this.place = place;
    this.#socket = socket;
    this.protocol = socket.protocol;
    this.authorization = authorization;
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(data: string): Promise<void> {
    if (!this.isOpen) return Promise.resolve();
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) {
      this.#socket.terminate();
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      this.#socket.send(data, (error) => (error ? reject(error) : resolve()));
    });
  }

  close(code?: number, reason?: string): void {
    this.#socket.close(code, reason);
  }

  onMessage(take: (data: string) => Promise<void>): void {
    this.#socket.on('message', (data) => {
      take(String(data)).catch(() => this.close(CloseCode.InternalServerError, 'Internal server error'));
    });
  }

  lapsed(): void {
    this.close(CloseCode.Forbidden, 'Forbidden');
  }

  /** Whether its credential has not ended by now, whatever a timer has still to say. */
  holds(): boolean {
    if (this.expiresAt === undefined || this.expiresAt > this.#options.now()) return true;
    this.lapsed();
    return false;
  }

  tells(): void {
    this.#options.onTold(this.authorization ?? '');
  }

  /** Resolves once the socket is closed. */
  closed(): Promise<void> {
    return new Promise((resolve) => this.#socket.once('close', () => resolve()));
  }

  /** Where one of its operations sends results to, beside the protocol's own way. */
  outlet(operationId: string): Outlet {
    return new SocketOutlet(this, this.#socket, operationId);
  }
}

class SocketOutlet implements Outlet {
  readonly #peer: Peer;
  readonly #socket: WebSocket;
  /** A `next` message up to its payload (graphql-transport-ws). */
  readonly #head: string;

  constructor(peer: Peer, socket: WebSocket, operationId: string) {
    this.#peer = peer;
    this.#socket = socket;
    this.#head = `{"id":${JSON.stringify(operationId)},"type":"next","payload":`;
  }

  holds(): boolean {
    return this.#peer.holds();
  }

  tells(): void {
    this.#peer.tells();
  }

  send(payload: string, sent: () => void): void {
    this.#socket.send(`${this.#head}${payload}}`, sent);
  }

  close(): void {
    this.#socket.close(TRY_AGAIN_LATER, 'Read too slowly');
  }
}
