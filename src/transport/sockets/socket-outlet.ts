import type { WebSocket } from 'ws';
import { clientsId } from './operation-ids.ts';
import type { Outlet } from './reader.ts';

const TEXT = { binary: false } as const;
const CLOSING_BRACE = 0x7d;
const HEAD = { start: '{"id":', end: ',"type":"next","payload":' } as const;

/** Who is sent them, and whether that one's operation of an inner id is still open. */
interface Told extends Pick<Outlet, 'clientId' | 'holds' | 'beforeEvent'> {
  has(inner: string): boolean;
  /** Has the socket closed, because too many events wait for the operation. */
  fellBehind(): void;
}

/** Sends the results of one operation of a socket, until its client completes it. */
export class SocketOutlet implements Outlet {
  readonly #reader: Told;
  readonly #socket: WebSocket;
  readonly #inner: string;
  /** A `next` message up to its payload (graphql-transport-ws). */
  readonly #head: string;

  constructor(reader: Told, socket: WebSocket, inner: string) {
    this.#reader = reader;
    this.#socket = socket;
    this.#inner = inner;
    this.#head = HEAD.start + JSON.stringify(clientsId(inner)) + HEAD.end;
  }

  get clientId(): string {
    return this.#reader.clientId;
  }

  holds(now: number): boolean {
    return this.#reader.holds(now);
  }

  beforeEvent(): void {
    this.#reader.beforeEvent();
  }

  get isDrained(): boolean {
    return this.#socket.bufferedAmount === 0;
  }

  send(payload: Buffer, sent?: () => void): void {
    const start = Buffer.byteLength(this.#head);
    const message = Buffer.allocUnsafe(start + payload.length + 1);
    message.write(this.#head);
    message.set(payload, start);
    message[start + payload.length] = CLOSING_BRACE;
    this.#send(message, sent);
  }

  mark(cursor: string, sent?: () => void): void {
    const id = this.#head.slice(HEAD.start.length, -HEAD.end.length);
    this.#send(`{"type":"ping","payload":{"bookmarks":{${id}:"${cursor}"}}}`, sent);
  }

  #send(message: Buffer | string, sent?: () => void): void {
    if (this.#reader.has(this.#inner)) this.#socket.send(message, TEXT, sent);
    else sent?.();
  }

  close(): void {
    this.#reader.fellBehind();
  }
}
