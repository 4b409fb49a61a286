import type { ExecutionResult } from 'graphql';
import { clock } from '../../common/clock.ts';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import { countDelivery } from '../../graphql/deliveries.ts';
import type { FanOutMetrics } from '../../observability/event-metrics.ts';

export type Results = PushStream<ExecutionResult>;

/** The outcome of subscribing: a stream, or the reason why there is none. */
export type Subscribed = ExecutionResult | Results;

/** One who reads a stream that is read for many, or is going to. */
export interface SharedStreamReader {
  /** Sends a result. Says whether it may be sent at all. */
  deliver(payload: Buffer, now: number): boolean;
  /** Ends it as a reader that may come back. */
  drop(): void;
  /** Ends it once what waits has been sent. */
  end(): void;
  /** The shared stream rests: the reader may join it, or be told where it stands. */
  sharedRests(): void;
}

export const hasCode = (
  { errors }: { readonly errors?: ExecutionResult['errors'] | undefined },
  code: string,
): boolean => errors?.some(({ extensions }) => extensions['code'] === code) === true;

export const fellBehind = (result: ExecutionResult): boolean => hasCode(result, 'SLOW_CONSUMER');

/** One stream that is read for many. It is forgotten as it ends: who asks the same later begins another. */
export class SharedStream implements Sink<ExecutionResult> {
  /** Resolves with what there is instead of a stream; with undefined once there is one. */
  readonly opened: Promise<ExecutionResult | undefined>;
  readonly #metrics: FanOutMetrics;
  readonly #since = clock.now();
  readonly #forget: () => void;
  readonly #joined = new Set<SharedStreamReader>();
  /** Those who want to know when it rests. */
  readonly #waiting = new Set<SharedStreamReader>();
  #readers = 0;
  #stream: Results | undefined;
  #ended = false;

  constructor(open: () => Promise<Subscribed>, metrics: FanOutMetrics, forget: () => void) {
    this.#metrics = metrics;
    this.#forget = forget;
    this.opened = this.#open(open);
    // Who waits for it is told; who resumes has a stream of its own.
    this.opened.catch(() => this.#end());
  }

  async #open(open: () => Promise<Subscribed>): Promise<ExecutionResult | undefined> {
    const subscribed = await open();
    if (!(subscribed instanceof PushStream)) {
      this.#end();
      return subscribed;
    }
    if (this.#ended) {
      // Everybody has left while it was being opened.
      subscribed.stop();
      return undefined;
    }
    this.#stream = subscribed;
    this.#metrics.sharing(-1);
    subscribed.connect(this);
    return undefined;
  }

  /** Where all readers stand, but for what waits for each of them; undefined while it is at work, and once it has ended. */
  caughtUpTo(): string | undefined {
    return this.#ended ? undefined : this.#stream?.caughtUpTo();
  }

  /** A cursor for that position. */
  bookmark(): string | undefined {
    return this.#ended ? undefined : this.#stream?.bookmark();
  }

  /** A stream that fails says so in its last result (graphql/plugins/error-masking.ts). */
  take(result: ExecutionResult): void {
    if (fellBehind(result)) for (const reader of this.#joined) reader.drop();
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

  /** One more is going to read, or to resume. Each leaves once. */
  enter(): void {
    this.#readers += 1;
  }

  /** Sends a reader every result from now on. Only while it rests: `caughtUpTo` says where it begins. */
  join(reader: SharedStreamReader): void {
    this.#joined.add(reader);
    this.#metrics.sharing(1);
  }

  /** Tells a reader once when it rests next. */
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
