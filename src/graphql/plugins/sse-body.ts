import type { ExecutionResult } from 'graphql';
import { clock, type Timer } from '../../common/clock.ts';
import type { PushStream, Sink } from '../../common/push-stream.ts';
import type { RoundMember, Rounds } from '../../common/rounds.ts';
import type { DeliveryMetrics } from '../../observability/event-metrics.ts';
import { countDelivery } from '../deliveries.ts';
import { originOf } from '../executor/graphql-js.ts';
import { countSlowReaders } from '../slow-readers.ts';

/** A comment this often keeps proxies from closing a quiet stream, in milliseconds. */
const PING_MS = 12_000;

/** What a stream needs of the transport that its operation came over. */
export interface CuttableConnection {
  /** Ends the connection in the midst of an answer; undefined where an operation has no connection of its own. */
  readonly cut?: () => void;
  /** Lets go of the request's body, of which a stream keeps nothing. */
  readonly releaseBody?: () => void;
  readonly incoming?: {
    /** Who waits for the result; its signal is aborted once nobody does. */
    readonly waiters: { readonly signal: AbortSignal } | undefined;
  };
}

interface BodyParts {
  readonly metrics: DeliveryMetrics;
  /** When its reader is told where it stands, beside the first time. */
  readonly rounds: Rounds;
}

const encoder = new TextEncoder();
const PING = encoder.encode(':\n\n');
const COMPLETE = encoder.encode('event: complete\ndata:\n\n');

/**
 * The body of a stream of events (`ReadableStream`'s source). It takes the next result once the client has read the one
 * before: what waits, waits in the buffers of Node and the kernel, and behind those in the event log's bounded queue.
 */
export class EventStreamBody
  implements UnderlyingDefaultSource<Uint8Array>, Sink<ExecutionResult>, RoundMember
{
  readonly #results: PushStream<ExecutionResult>;
  readonly #connection: CuttableConnection;
  readonly #parts: BodyParts;
  readonly #since = clock.now();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #ping: Timer | undefined;
  /** Called when the client has read what it was sent. */
  #read: (() => void) | undefined;
  /** Whether it is to be told where it stands: first as soon as it is live. */
  #isOwedMark = true;

  constructor(results: PushStream<ExecutionResult>, connection: CuttableConnection, parts: BodyParts) {
    this.#results = results;
    this.#connection = connection;
    this.#parts = parts;
  }

  get #waiters() {
    return this.#connection.incoming?.waiters;
  }

  async start(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    // A response that nobody reads any more when it is handed out is never cancelled.
    if (this.#waiters?.signal.aborted === true) {
      await this.#results.return();
      controller.close();
      return;
    }
    this.#controller = controller;
    this.#waiters?.signal.addEventListener('abort', this.#leave);
    // Headers reach some clients only with the first byte of the body.
    controller.enqueue(PING);
    this.#ping = clock.setInterval(() => {
      if (this.#isRead) controller.enqueue(PING);
    }, PING_MS);
    this.#parts.rounds.add(this);
    this.#results.connect(this);
  }

  pull(): void {
    const read = this.#read;
    this.#read = undefined;
    read?.();
    this.#mark();
  }

  cancel(): void {
    this.#leave();
  }

  take(result: ExecutionResult): void | Promise<void> {
    if (goesOn(result)) {
      countSlowReaders(this.#parts.metrics, result, 1);
      this.#connection.cut?.();
      // Nothing comes after it, least of all the end.
      return new Promise(() => undefined);
    }
    countDelivery(this.#parts.metrics, result, 1, this.#since);
    this.#controller?.enqueue(encoder.encode(eventOf(result)));
    if (this.#isRead) return undefined;
    return new Promise((resolve) => {
      this.#read = resolve;
    });
  }

  finish(): void {
    const controller = this.#controller;
    this.#release();
    controller?.enqueue(COMPLETE);
    controller?.close();
  }

  rests(): void {
    this.#mark();
  }

  remind(): void {
    this.#isOwedMark = true;
    this.#mark();
  }

  get #isRead(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** Tells the client where it stands, where it is owed that, once it has read all before. */
  #mark(): void {
    if (!this.#isOwedMark || !this.#isRead) return;
    const cursor = this.#results.bookmark();
    if (cursor === undefined) return;
    this.#isOwedMark = false;
    this.#controller?.enqueue(encoder.encode(`id: ${cursor}\n\n`));
  }

  /** Its client has gone. */
  readonly #leave = (): void => {
    this.#release();
    this.#results.stop();
  };

  #release(): void {
    this.#controller = undefined;
    clock.clearInterval(this.#ping);
    this.#parts.rounds.delete(this);
    this.#waiters?.signal.removeEventListener('abort', this.#leave);
  }
}

/** What ends a stream that goes on where it is taken up again. Other ends are for the client to know of. */
const RESUMED_AFTER: readonly unknown[] = ['DRAINING', 'SLOW_CONSUMER'];

const goesOn = ({ errors }: ExecutionResult): boolean =>
  errors?.some(({ extensions }) => RESUMED_AFTER.includes(extensions['code'])) === true;

function eventOf(result: ExecutionResult): string {
  const cursor = originOf(result)?.cursor;
  const id = cursor === undefined ? '' : `id: ${cursor}\n`;
  return `event: next\n${id}data: ${JSON.stringify(result)}\n\n`;
}
