import { CloseCode, type WebSocket as ProtocolSocket, type SubscribePayload } from 'graphql-ws';
import { type RawData, WebSocket } from 'ws';
import type { Expiring } from '../../auth/expiry-watch.ts';
import { clock } from '../../common/clock.ts';
import type { Turns } from '../../common/turns.ts';
import { CONNECT_AGAIN } from './lifetime.ts';
import { taken } from './messages.ts';
import type { StreamSeat } from './open-streams.ts';
import { OperationIds } from './operation-ids.ts';
import type { Outlet } from './reader.ts';

/** Close code for a reader for whom, or for whose shared stream, too many events wait (IANA, WebSocket close codes); clients connect again after it. */
export const TRY_AGAIN_LATER = 1013;

/** What is known of a socket when it is opened. */
export type Arrival = Pick<Peer, 'authorization' | 'address' | 'turnKey' | 'seat'>;

/** What all sockets share. */
export interface PeerOptions {
  /** Called with a caller's credential, and the client that it stands for, before it is told of an event. */
  onTold(credential: string, clientId: string): void;
  /** Gives the turns in which messages are taken. The first message of a socket does not wait for one. */
  readonly turns: Pick<Turns, 'turn'>;
}

/** If a peer has more bytes unread than this when a message is to be sent, its socket is cut. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** The longest reason of a close frame, in bytes (RFC 6455, 5.5.1). */
const MAX_REASON_BYTES = 123;

/** What is done for an operation: it is prepared, or executed as a mutation. */
type BusyWith = 'preparation' | 'mutation';

/** A socket in the form that the protocol needs. Thousands of them wait for events, so each holds as little as possible. */
export class Peer implements ProtocolSocket, Expiring {
  readonly protocol: string;
  /** The caller's credential, from the header of the upgrade request; kept until the socket is initialised. */
  authorization: string | undefined;
  /** The network address that it came from, until the socket is initialised; undefined where it is not known. */
  address: string | undefined;
  /** The key by which it takes turns: its address's until its caller is known, then its caller's. */
  turnKey: string;
  /** The client that its caller acts for, once that is known. */
  clientId = '';
  /** Queries and mutations that are executed now. */
  executed = 0;
  /** True once it was refused an operation because the process ends. */
  isDrained = false;
  expiresAt: number | undefined;
  readonly seat: StreamSeat;
  readonly #socket: WebSocket;
  readonly #options: PeerOptions;
  #isGreeted = false;
  #isEnding = false;
  /** The payload of the message that is being taken. */
  #payload: SubscribePayload | undefined;
  /** Messages that wait for a turn. */
  #unread: RawData[] | undefined;
  /** Operations that are prepared, and mutations that are executed, by their ids. */
  #busy: Map<string, BusyWith> | undefined;
  #ids: OperationIds | undefined;

  constructor(socket: WebSocket, { authorization, address, turnKey, seat }: Arrival, options: PeerOptions) {
    this.seat = seat;
    this.#socket = socket;
    this.protocol = socket.protocol;
    this.authorization = authorization;
    this.address = address;
    this.turnKey = turnKey;
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
    const handOver = (data: RawData): void => {
      const message = taken(String(data));
      this.#payload = message.payload;
      // graphql-ws reads the payload before this call returns.
      const worked = take(message.text).catch(() => this.failed());
      this.#payload = undefined;
      this.#ids ??= new OperationIds();
      this.#ids.note(message, worked);
    };
    this.#socket.on('message', (data) => {
      // The first message identifies the caller. It has to arrive within a moment, so it waits for no turn.
      if (!this.#isGreeted) {
        this.#isGreeted = true;
        handOver(data);
      } else if (this.#unread === undefined) {
        const turn = this.#turn(data);
        if (turn === undefined) {
          handOver(data);
          return;
        }
        // Nothing more is read from the socket meanwhile, except messages that came with the same bytes.
        this.#unread = [data];
        this.#socket.pause();
        turn.then(() => this.#takeNext(handOver));
      } else {
        this.#unread.push(data);
      }
    });
  }

  /** Takes one waiting message. The next one waits for a turn of its own, after those of other sockets. */
  #takeNext(handOver: (data: RawData) => void): void {
    const message = this.#unread?.shift();
    if (message !== undefined && this.isOpen) handOver(message);
    const next = this.#unread?.[0];
    if (next === undefined || !this.isOpen) {
      this.#unread = undefined;
      this.#socket.resume();
      return;
    }
    const turn = this.#turn(next) ?? Promise.resolve();
    turn.then(() => this.#takeNext(handOver));
  }

  #turn(message: RawData): Promise<void> | undefined {
    const turn = () => this.#options.turns.turn('streams', this.turnKey);
    const id = this.#ids?.usedAgain(String(message));
    // A mutation may take half a minute, for which nothing else of the socket is to wait: busyWith closes it.
    if (id === undefined || this.#busy?.get(id) === 'mutation') return turn();
    return this.#ids?.ended(id)?.then(turn);
  }

  /** Returns the whole payload of the message that is being taken. */
  inFull(payload: SubscribePayload): SubscribePayload {
    return this.#payload ?? payload;
  }

  /** Closes the socket after an unexpected failure. */
  failed(): void {
    this.close(CloseCode.InternalServerError, 'Internal server error');
  }

  /** Closes it because its credential is nobody's, and says why where a close frame has room for the reason. */
  refuse(reason: string): void {
    this.close(CloseCode.Forbidden, Buffer.byteLength(reason) > MAX_REASON_BYTES ? 'Forbidden' : reason);
  }

  /** True if its credential has ended. It begins no other operation, and its streams send nothing more. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Closes it because its credential has ended. A mutation is answered first, as its answer may say what became of money. */
  expired(): void {
    this.#isEnding = true;
    if (this.#busy === undefined) this.refuse('The access token is no longer accepted.');
  }

  /** True if its credential has not ended by now. A timer may not have fired yet. */
  holds(now: number): boolean {
    if (!this.#isEnding && (this.expiresAt === undefined || this.expiresAt > now)) return true;
    this.expired();
    return false;
  }

  /** Closes it where it is drained: its client asks another process. What is executed is answered first. */
  leaveIfDrained(): void {
    if (!this.isDrained) return;
    // An answer that has just come is sent within this turn of the event loop.
    clock.setImmediate(() => {
      if (this.executed === 0) this.close(CONNECT_AGAIN, 'Service restart');
    });
  }

  /** Counts a query or a mutation as long as it is executed. The protocol forgets it as soon as the client completes it. */
  async executing<T>(execute: () => T): Promise<Awaited<T>> {
    this.executed += 1;
    try {
      return await execute();
    } finally {
      this.executed -= 1;
      this.leaveIfDrained();
    }
  }

  /**
   * Does something for an operation, and closes the socket where the same id is busy already, as with a mutation that its client has
   * completed: graphql-ws would take its answer for that of the later one.
   *
   * @returns undefined where it was closed
   */
  async busyWith<T>(id: string, what: BusyWith, work: () => T): Promise<Awaited<T> | undefined> {
    this.#busy ??= new Map();
    if (this.#busy.has(id)) {
      this.close(CloseCode.SubscriberAlreadyExists, 'Subscriber already exists');
      return undefined;
    }
    this.#busy.set(id, what);
    try {
      return await work();
    } finally {
      this.#busy.delete(id);
      if (this.#busy.size === 0) {
        this.#busy = undefined;
        // The answer is sent within this turn of the event loop, and an operation that has been prepared is begun.
        if (this.#isEnding) clock.setImmediate(() => this.expired());
      }
    }
  }

  beforeEvent(): void {
    this.#options.onTold(this.authorization ?? '', this.clientId);
  }

  /** Resolves once the socket is closed. */
  closed(): Promise<undefined> {
    return new Promise((resolve) => this.#socket.once('close', () => resolve(undefined)));
  }

  /** Returns the way by which one of its operations sends results, past graphql-ws. */
  outlet(operationId: string): Outlet {
    return new SocketOutlet(this, this.#socket, operationId);
  }
}

const TEXT = { binary: false } as const;
const CLOSING_BRACE = 0x7d;
const HEAD = { start: '{"id":', end: ',"type":"next","payload":' } as const;

class SocketOutlet implements Outlet {
  readonly #peer: Peer;
  readonly #socket: WebSocket;
  /** A `next` message up to its payload (graphql-transport-ws). */
  readonly #head: string;

  constructor(peer: Peer, socket: WebSocket, operationId: string) {
    this.#peer = peer;
    this.#socket = socket;
    this.#head = HEAD.start + JSON.stringify(operationId) + HEAD.end;
  }

  get clientId(): string {
    return this.#peer.clientId;
  }

  holds(now: number): boolean {
    return this.#peer.holds(now);
  }

  beforeEvent(): void {
    this.#peer.beforeEvent();
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
    this.#socket.send(message, TEXT, sent);
  }

  mark(cursor: string, sent?: () => void): void {
    const id = this.#head.slice(HEAD.start.length, -HEAD.end.length);
    this.#socket.send(`{"type":"ping","payload":{"bookmarks":{${id}:"${cursor}"}}}`, sent);
  }

  close(): void {
    this.#socket.close(TRY_AGAIN_LATER, 'Too many events wait');
  }
}
