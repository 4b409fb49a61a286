import { CloseCode, type WebSocket as ProtocolSocket } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { Watched } from './expiry-watch.ts';
import type { Outlet } from './fan-out.ts';
import type { Pace } from './pace.ts';

/** Close code for a reader that fell behind (IANA, WebSocket close codes); clients connect again after it. */
const TRY_AGAIN_LATER = 1013;

/** What all sockets share. */
export interface PeerOptions {
  /** Called with a caller's credential before it is told of an event. */
  onTold(credential: string): void;
  /** When a message is taken, but for the first one of a socket. */
  readonly pace: Pace;
}

/** A socket as the protocol needs it. Thousands of them wait for events: each holds as little as may be. */
export class Peer implements ProtocolSocket, Watched {
  readonly protocol: string;
  /** The header of the upgrade request. */
  readonly authorization: string | undefined;
  expiresAt: number | undefined;
  credential = '';
  readonly #socket: WebSocket;
  readonly #options: PeerOptions;
  #isGreeted = false;

  constructor(socket: WebSocket, authorization: string | undefined, options: PeerOptions) {
    this.#socket = socket;
    this.protocol = socket.protocol;
    this.authorization = authorization;
    this.#options = options;
  }

  send(data: string): Promise<void> {
    if (this.#socket.readyState !== WebSocket.OPEN) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#socket.send(data, (error) => (error ? reject(error) : resolve()));
    });
  }

  close(code?: number, reason?: string): void {
    this.#socket.close(code, reason);
  }

  onMessage(take: (data: string) => Promise<void>): void {
    const failed = () => this.close(CloseCode.InternalServerError, 'Internal server error');
    this.#socket.on('message', (data) => {
      // The first one says who is there, and is waited for no longer than a moment.
      const turn = this.#isGreeted ? this.#options.pace.turn() : undefined;
      this.#isGreeted = true;
      if (turn === undefined) take(String(data)).catch(failed);
      else turn.then(() => take(String(data))).catch(failed);
    });
  }

  lapsed(): void {
    this.close(CloseCode.Forbidden, 'Forbidden');
  }

  /** Whether its credential has not ended by now, whatever a timer has still to say. */
  holds(now: number): boolean {
    if (this.expiresAt === undefined || this.expiresAt > now) return true;
    this.lapsed();
    return false;
  }

  tells(): void {
    this.#options.onTold(this.credential);
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

  holds(now: number): boolean {
    return this.#peer.holds(now);
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
