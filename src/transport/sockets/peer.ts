import { isUtf8 } from 'node:buffer';
import {
  CloseCode,
  MessageType,
  type WebSocket as ProtocolSocket,
  type SubscribeMessage,
  type SubscribePayload,
} from 'graphql-ws';
import { type RawData, WebSocket } from 'ws';
import type { Expiring } from '../../auth/expiry-watch.ts';
import { clock } from '../../common/clock.ts';
import type { Turns } from '../../common/turns.ts';
import { type End, EXPIRED, FAILED, FELL_BEHIND } from './ends.ts';
import { CONNECT_AGAIN } from './lifetime.ts';
import { beginning, clientMessage, completion } from './messages.ts';
import type { StreamSeat } from './open-streams.ts';
import { clientsId, forClient, innerId } from './operation-ids.ts';
import type { Outlet } from './reader.ts';
import { SocketOutlet } from './socket-outlet.ts';

/** What is known of a socket when it is opened. */
export type Arrival = Pick<Peer, 'authorization' | 'address' | 'turnKey' | 'seat'>;

/** What all sockets share. */
export interface PeerOptions {
  /** Called with a caller's `Authorization`, and the client that it stands for, before it is told of an event. */
  onTold(authorization: string, clientId: string): void;
  /** Called with what an operation has failed with in a way that nobody has thought of, before its socket is closed. */
  onFailed(error: unknown): void;
  /** Gives the turns in which messages are taken. The first message of a socket does not wait for one. */
  readonly turns: Pick<Turns, 'turn'>;
}

/** If a peer has more bytes unread than this when a message is to be sent, its socket is cut. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** The longest reason of a close frame, in bytes (RFC 6455, 5.5.1). */
const MAX_REASON_BYTES = 123;

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
  /** Operations that are prepared now, and mutations that are executed. */
  busy = 0;
  /** The operations that are open, by their inner ids, once it is initialised. */
  operations: Readonly<Record<string, unknown>> | undefined;
  /** Messages of the protocol that the connection has not taken yet. */
  unsent = 0;
  /** True once it is to be closed because the process ends, as soon as its queries and mutations are answered. */
  isDrained = false;
  expiresAt: number | undefined;
  readonly seat: StreamSeat;
  readonly #socket: WebSocket;
  readonly #options: PeerOptions;
  #isGreeted = false;
  /** True once its client has sent `connection_init`. */
  #hasInit = false;
  /** Undefined as long as it stays. */
  #end: End | undefined;
  /** The payload of the message that is being taken. */
  #payload: SubscribePayload | undefined;
  /** Messages that wait for a turn. */
  #unread: RawData[] | undefined;
  /** How many operations its client has completed before they had ended. */
  #left = 0;

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
    const message = forClient(data, (inner) => this.has(inner));
    if (message === undefined || !this.isOpen) return Promise.resolve();
    if (this.#socket.bufferedAmount > MAX_UNREAD_BYTES) {
      this.#socket.terminate();
      return Promise.resolve();
    }
    // Where it cannot be sent, the connection is about to close.
    this.unsent += 1;
    return new Promise((resolve) => {
      this.#socket.send(message, () => {
        this.unsent -= 1;
        if (this.isEnding) this.#closeOnceIdle();
        this.leaveIfDrained();
        resolve();
      });
    });
  }

  close(code?: number, reason?: string): void {
    const close = (): void => this.#socket.close(code, reason);
    if (code !== CloseCode.ConnectionInitialisationTimeout) close();
    // The `connection_init` may have come while the process was busy. It is read before this callback runs.
    else clock.setImmediate(() => this.#hasInit || close());
  }

  onMessage(take: (data: string) => Promise<void>): void {
    const hand = (text: string): void => void take(text).catch((error: unknown) => this.failed(error));
    const handOver = (data: RawData): void => {
      const text = String(data);
      const message = clientMessage(text);
      this.#hasInit ||= message?.type === MessageType.ConnectionInit;
      if (message === undefined) this.close(CloseCode.BadRequest, 'Invalid message received');
      else if (message.type === MessageType.Subscribe) this.#begin(message, hand);
      else if (message.type === MessageType.Complete) this.#leave(message.id, hand);
      else hand(text);
    };
    this.#socket.on('message', (data, isBinary) => {
      // The socket sends no answer any more: its client asks again over another, and a change would be made twice.
      if (!this.isOpen) return;
      // ws has looked at the bytes of text messages alone. It gives a message as one buffer.
      if (isBinary && !isUtf8(data as Buffer)) {
        this.close(CloseCode.BadRequest, 'The message is not UTF-8');
        return;
      }
      // The first message identifies the caller. It has to arrive within a moment, so it waits for no turn.
      if (!this.#isGreeted) {
        this.#isGreeted = true;
        handOver(data);
      } else if (this.#unread === undefined) {
        const turn = this.#options.turns.turn('streams', this.turnKey);
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
    if (this.#unread?.length === 0 || !this.isOpen) {
      this.#unread = undefined;
      this.#socket.resume();
      return;
    }
    const turn = this.#options.turns.turn('streams', this.turnKey) ?? Promise.resolve();
    turn.then(() => this.#takeNext(handOver));
  }

  #begin({ id, payload }: SubscribeMessage, hand: (text: string) => void): void {
    if (this.#openAs(id) !== undefined) {
      this.close(CloseCode.SubscriberAlreadyExists, 'Subscriber already exists');
      return;
    }
    this.#payload = payload;
    // graphql-ws has the operation prepared before this call returns.
    hand(beginning(innerId(id, this.#left)));
    this.#payload = undefined;
  }

  #leave(id: string, hand: (text: string) => void): void {
    const inner = this.#openAs(id);
    // It has ended before, or there was none.
    if (inner === undefined) return;
    this.#left += 1;
    hand(completion(inner));
  }

  /** Returns the inner id of the open operation that has this id of its client's. */
  #openAs(id: string): string | undefined {
    for (const inner in this.operations) if (clientsId(inner) === id) return inner;
    return undefined;
  }

  /** Whether the operation of an inner id, which has begun, is still open: once its client has completed it, it is sent nothing more. */
  has(inner: string): boolean {
    return this.#left === 0 || (this.operations !== undefined && inner in this.operations);
  }

  /** Returns the whole payload of the operation that is to be prepared. */
  get payload(): SubscribePayload {
    if (this.#payload === undefined) throw new Error('The payload is read after its message is taken.');
    return this.#payload;
  }

  /** Closes the socket after an unexpected failure of one operation. A mutation is answered first. */
  failed(error: unknown): void {
    this.#options.onFailed(error);
    this.#endWith(FAILED);
  }

  /** Closes it because too many events wait for one of its operations. A mutation is answered first. */
  fellBehind(): void {
    this.#endWith(FELL_BEHIND);
  }

  /** Closes it because its credential is nobody's, and says why where a close frame has room for the reason. */
  refuse(reason: string): void {
    this.close(CloseCode.Forbidden, Buffer.byteLength(reason) > MAX_REASON_BYTES ? 'Forbidden' : reason);
  }

  /** True if it is to be closed once its mutations are answered. It begins no other operation, and its streams send nothing more. */
  get isEnding(): boolean {
    return this.#end !== undefined;
  }

  /** Closes it because its credential has ended. A mutation is answered first, as its answer may say what became of money. */
  expired(): void {
    this.#endWith(EXPIRED);
  }

  /** True if it is not to be closed, and its credential has not ended by now. A timer may not have fired yet. */
  holds(now: number): boolean {
    if (this.expiresAt !== undefined && this.expiresAt <= now) this.expired();
    return !this.isEnding;
  }

  #endWith(end: End): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#closeOnceIdle();
  }

  /**
   * Closes it where it is to be closed, and its mutations are answered. Within this turn of the event loop the answer to one that has been
   * executed is sent, and one that has been prepared is begun. `complete` follows once the connection has taken the answer: graphql-ws
   * executes a mutation again where it lacks that.
   */
  #closeOnceIdle(): void {
    clock.setImmediate(() => {
      if (this.#end === undefined || this.busy > 0 || this.unsent > 0) return;
      this.close(this.#end.code, this.#end.reason);
    });
  }

  /** Closes it where it is drained: its client asks another process. What is executed is answered first, down to its `complete`. */
  leaveIfDrained(): void {
    if (!this.isDrained) return;
    // An answer that has just come is sent within this turn of the event loop.
    clock.setImmediate(() => {
      if (this.executed === 0 && this.unsent === 0) this.close(CONNECT_AGAIN, 'Service restart');
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

  /** Prepares an operation, or executes a mutation: where the socket is to be closed meanwhile, it is closed after that. */
  async busyWith<T>(work: () => T): Promise<Awaited<T>> {
    this.busy += 1;
    try {
      return await work();
    } finally {
      this.busy -= 1;
      if (this.isEnding) this.#closeOnceIdle();
    }
  }

  beforeEvent(): void {
    this.#options.onTold(this.authorization ?? '', this.clientId);
  }

  /** Resolves once the socket is closed. */
  closed(): Promise<undefined> {
    return new Promise((resolve) => this.#socket.once('close', () => resolve(undefined)));
  }

  /** Returns the way by which the operation of an inner id sends results, past graphql-ws. */
  outlet(inner: string): Outlet {
    return new SocketOutlet(this, this.#socket, inner);
  }
}
