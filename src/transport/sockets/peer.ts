import { CloseCode, type WebSocket as ProtocolSocket } from 'graphql-ws';
import { WebSocket } from 'ws';
import type { Watched } from './expiry-watch.ts';
import type { Outlet } from './fan-out.ts';

/** Close code for a reader that fell behind (IANA, WebSocket close codes); clients connect again after it. */
export const TRY_AGAIN_LATER = 1013;

/** A socket as the protocol needs it. Thousands of them wait for events: each holds as little as may be. */
export class Peer implements ProtocolSocket, Watched {
  readonly protocol: string;
  readonly authorization: string | undefined;
  readonly address: string;
  readonly #socket: WebSocket;

  /**
   * @param authorization the header of the upgrade request.
   * @param address of the other side.
   */
  constructor(socket: WebSocket, authorization: string | undefined, address: string) {
    this.address = address;
    this.#socket = socket;
    this.protocol = socket.protocol;
    this.authorization = authorization;
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
    this.#socket.on('message', (data) => {
      take(String(data)).catch(() => this.close(CloseCode.InternalServerError, 'Internal server error'));
    });
  }

  lapsed(): void {
    this.close(CloseCode.Forbidden, 'Forbidden');
  }

  /** Resolves once the socket is closed. */
  closed(): Promise<void> {
    return new Promise((resolve) => this.#socket.once('close', () => resolve()));
  }

  /** Where one of its operations sends results to, beside the protocol's own way. */
  outlet(operationId: string): Outlet {
    return new SocketOutlet(this.#socket, operationId);
  }
}

class SocketOutlet implements Outlet {
  readonly #socket: WebSocket;
  /** A `next` message up to its payload (graphql-transport-ws). */
  readonly #head: string;

  constructor(socket: WebSocket, operationId: string) {
    this.#socket = socket;
    this.#head = `{"id":${JSON.stringify(operationId)},"type":"next","payload":`;
  }

  send(payload: string, sent: () => void): void {
    this.#socket.send(`${this.#head}${payload}}`, sent);
  }

  close(): void {
    this.#socket.close(TRY_AGAIN_LATER, 'Read too slowly');
  }
}
