import type { ExecutionResult } from 'graphql';
import { clock } from '../../common/clock.ts';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import { countDelivery } from '../../graphql/deliveries.ts';
import { countSlowReaders } from '../../graphql/slow-readers.ts';
import type { FanOutMetrics } from '../../observability/event-metrics.ts';

export type Results = PushStream<ExecutionResult>;

/** The outcome of subscribing: a stream, or the reason why there is none. */
export type Subscribed = ExecutionResult | Results;

/** A reader of a shared stream, or one that is about to join it. */
export interface SharedStreamReader {
  /** Sends a result. Returns false if its credential has ended, so that nothing may be sent. */
  deliver(payload: Buffer, now: number): boolean;
  /** Ends it because it fell behind. The client may connect again and resume. */
  drop(): void;
  /** Ends it once its queue has been sent. */
  end(): void;
  /** The shared stream has nothing to send: the reader may join it, or be sent a bookmark. */
  sharedRests(): void;
}

export const hasCode = (
  { errors }: { readonly errors?: ExecutionResult['errors'] | undefined },
  code: string,
): boolean => errors?.some(({ extensions }) => extensions['code'] === code) === true;

export const fellBehind = (result: ExecutionResult): boolean => hasCode(result, 'SLOW_CONSUMER');

/** One stream that is read for many sockets. When it ends it is forgotten: a later subscription begins another. */
export class SharedStream implements Sink<ExecutionResult> {
  /** Resolves with the error result if there is no stream; with undefined once there is one. */
  readonly opened: Promise<ExecutionResult | undefined>;
  readonly #metrics: FanOutMetrics;
  readonly #since = clock.now();
  readonly #forget: () => void;
  readonly #joined = new Set<SharedStreamReader>();
  /** Readers that are told when it has nothing to send. */
  readonly #waiting = new Set<SharedStreamReader>();
  #readers = 0;
  #stream: Results | undefined;
  #ended = false;

  constructor(open: () => Promise<Subscribed>, metrics: FanOutMetrics, forget: () => void) {
    this.#metrics = metrics;
    this.#forget = forget;
    this.opened = this.#open(open);
    // Readers that wait for it learn of the failure; a reader that resumes has a stream of its own.
    this.opened.catch(() => this.#end());
  }

  async #open(open: () => Promise<Subscribed>): Promise<ExecutionResult | undefined> {
    const subscribed = await open();
    if (!(subscribed instanceof PushStream)) {
      this.#end();
      return subscribed;
    }
    if (this.#ended) {
      // All readers have left while it was being opened.
      subscribed.stop();
      return undefined;
    }
    this.#stream = subscribed;
    this.#metrics.sharing(-1);
    subscribed.connect(this);
    return undefined;
  }

  /**
   * Returns the position of all readers, not counting their queues; undefined while it works on an event, and once it has
   * ended.
   */
  caughtUpTo(): string | undefined {
    return this.#ended ? undefined : this.#stream?.caughtUpTo();
  }

  /** A cursor for that position. */
  bookmark(): string | undefined {
    return this.#ended ? undefined : this.#stream?.bookmark();
  }

  /** A stream that fails has the error in its last result (graphql/plugins/error-masking.ts). */
  take(result: ExecutionResult): void {
    if (fellBehind(result)) {
      countSlowReaders(this.#metrics, result, this.#joined.size);
      for (const reader of this.#joined) reader.drop();
      return;
    }
    const payload = Buffer.from(JSON.stringify(result));
    const now = clock.now();
    let readers = 0;
    for (const reader of this.#joined) if (reader.deliver(payload, now)) readers += 1;
    countDelivery(this.#metrics, result, readers, this.#since);
  }

  rests(): void {
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const reader of waiting) reader.sharedRests();
  }

  finish(): void {
    if (this.#stream === undefined) return;
    this.#stream = undefined;
    this.#metrics.sharing(1);
    this.#end();
  }

  /** Counts one more reader, or one that is going to resume. Each calls `leave` once. */
  enter(): void {
    this.#readers += 1;
  }

  /**
   * Sends a reader every result from now on. May be called only while `caughtUpTo` gives a position: there the reader begins.
   */
  join(reader: SharedStreamReader): void {
    this.#joined.add(reader);
    this.#metrics.sharing(1);
  }

  /** Tells a reader, once, when it next has nothing to send. */
  awaitRest(reader: SharedStreamReader): void {
    if (!this.#ended) this.#waiting.add(reader);
  }

  leave(reader?: SharedStreamReader): void {
    if (reader !== undefined) {
      if (this.#joined.delete(reader)) this.#metrics.sharing(-1);
      this.#waiting.delete(reader);
    }
    this.#readers -= 1;
    if (this.#readers > 0) return;
    this.#end();
    this.#stream?.stop();
    this.finish();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forget();
    this.#waiting.clear();
    for (const reader of this.#joined) reader.end();
  }
}
