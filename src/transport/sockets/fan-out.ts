import type { ExecutionResult } from 'graphql';
import { PushStream, type Sink } from '../../common/push-stream.ts';
import { originOf } from '../../graphql/executor/graphql-js.ts';
import { countDelivery } from '../../graphql/plugins/deliveries.ts';
import type { FanOutMetrics } from '../../observability/metrics.ts';

type Results = PushStream<ExecutionResult>;

/** The outcome of subscribing: a stream, or the reason why there is none. */
export type Subscribed = ExecutionResult | Results;

/** One operation of one socket. */
export interface Outlet {
  /**
   * Whether its credential still holds: where it does not, the socket is closed, and nothing more may be sent.
   *
   * @param now milliseconds since the epoch.
   */
  holds(now: number): boolean;
  /** Its caller is about to be told of an event: what it asks from now on must not be older. */
  tells(): void;
  /** Whether the socket has taken in full what it was sent. */
  readonly isDrained: boolean;
  /**
   * Sends the JSON of one result, in UTF-8. All readers are given the same bytes.
   *
   * @param sent called once the socket has taken it in full.
   */
  send(payload: Buffer, sent?: () => void): void;
  /** Its reader has fallen behind, or the shared follower has. The reader may come back, and resume. */
  close(): void;
}

interface Subscription {
  /** The same for all whom every event gives the same result. */
  readonly key: string;
  readonly outlet: Outlet;
  /** Subscribes for all, from now on. */
  readonly open: () => Promise<Subscribed>;
  /** Subscribes for this one alone, from where it left off; undefined when it begins now. */
  readonly resume: (() => Promise<Subscribed>) | undefined;
}

/** How much may wait for one reader: a slow one hurts nobody else. */
const QUEUE = { results: 256, bytes: 1024 * 1024 } as const;

/**
 * Executes a subscription once for all who ask the same, and sends all the same text. Results do not come through the
 * iterators given, which only end when the stream does: they are sent.
 */
export interface FanOut {
  /** What a socket is to be given. One that resumes reads alone until it has seen what the others have seen last. */
  subscribe(subscription: Subscription): Promise<ExecutionResult | AsyncIterableIterator<ExecutionResult>>;
  /** Sends a stream that nobody shares. */
  alone(outlet: Outlet, stream: Results): AsyncIterableIterator<ExecutionResult>;
}

export function createFanOut(metrics: FanOutMetrics): FanOut {
  const groups = new Map<string, Group>();

  const enter = ({ key, open }: Subscription): Group => {
    let group = groups.get(key);
    if (group === undefined) {
      group = new Group(open, metrics, () => groups.delete(key));
      groups.set(key, group);
    }
    group.enter();
    return group;
  };

  return {
    async subscribe(subscription) {
      const { outlet, resume } = subscription;
      if (resume !== undefined) {
        const own = await resume();
        return own instanceof PushStream ? new Reader(outlet, metrics, enter(subscription), own) : own;
      }
      const group = enter(subscription);
      try {
        const refused = await group.opened;
        if (refused === undefined) return new Reader(outlet, metrics, group, undefined);
        group.leave();
        return refused;
      } catch (error) {
        group.leave();
        throw error;
      }
    },
    alone: (outlet, stream) => new Reader(outlet, metrics, undefined, stream),
  };
}

const hasCode = ({ errors }: ExecutionResult, code: string): boolean =>
  errors?.some(({ extensions }) => extensions['code'] === code) === true;

const fellBehind = (result: ExecutionResult): boolean => hasCode(result, 'SLOW_CONSUMER');

/** One stream that is read for many. */
class Group implements Sink<ExecutionResult> {
  /** Resolves with what there is instead of a stream; with undefined once there is one. */
  readonly opened: Promise<ExecutionResult | undefined>;
  readonly #metrics: FanOutMetrics;
  /** That of the last result. */
  cursor: string | undefined;
  readonly #since = Date.now();
  readonly #forget: () => void;
  readonly #members = new Set<Reader>();
  readonly #resuming = new Set<Reader>();
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

  /** A stream that fails says so in its last result (plugins/error-masking.ts). */
  take(result: ExecutionResult): void {
    this.cursor = originOf(result)?.cursor ?? this.cursor;
    if (fellBehind(result)) for (const member of this.#members) member.drop();
    const payload = Buffer.from(JSON.stringify(result));
    const now = Date.now();
    let readers = 0;
    for (const member of this.#members) if (member.deliver(payload, now)) readers += 1;
    countDelivery(this.#metrics, result, readers, this.#since);
    for (const reader of this.#resuming) reader.stepOver();
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

  join(reader: Reader): void {
    this.#resuming.delete(reader);
    if (this.#ended) {
      reader.end();
      return;
    }
    this.#members.add(reader);
    this.#metrics.sharing(1);
  }

  /** Tells a reader of each result, so that it may see that it has come as far. */
  tell(reader: Reader): void {
    this.#resuming.add(reader);
  }

  leave(reader?: Reader): void {
    if (reader !== undefined) {
      if (this.#members.delete(reader)) this.#metrics.sharing(-1);
      this.#resuming.delete(reader);
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
    for (const member of this.#members) member.end();
  }
}

/** One who reads a stream of its own, or with a group, or the one until it has seen what the other has seen last. */
class Reader implements AsyncIterableIterator<ExecutionResult, undefined>, Sink<ExecutionResult> {
  readonly #outlet: Outlet;
  readonly #metrics: FanOutMetrics;
  readonly #group: Group | undefined;
  #own: Results | undefined;
  readonly #since = Date.now();
  /** Of the last result of its own. */
  #cursor: string | undefined;
  #settle: ((step: IteratorResult<ExecutionResult, undefined>) => void) | undefined;
  #left = false;
  /** Whether it ends once what waits has been sent. */
  #ending = false;
  #sending = false;
  #queue: Buffer[] | undefined;
  #queued = 0;

  constructor(outlet: Outlet, metrics: FanOutMetrics, group: Group | undefined, own: Results | undefined) {
    this.#outlet = outlet;
    this.#metrics = metrics;
    this.#group = group;
    this.#own = own;
    if (own === undefined) {
      group?.join(this);
    } else {
      group?.tell(this);
      own.connect(this);
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (this.#left && !this.#ending) return Promise.resolve(DONE);
    return new Promise((resolve) => {
      this.#settle = resolve;
      if (this.#ending) this.#endIfSent();
    });
  }

  async return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    this.#leave();
    this.#settle?.(DONE);
    return DONE;
  }

  /** Takes a result of its own stream. The next one comes once the socket has taken this one. */
  take(result: ExecutionResult): void | Promise<void> {
    if (this.#left) return undefined;
    if (fellBehind(result)) return this.drop();
    // The socket is about to be closed, once what else it carries has been answered.
    if (hasCode(result, 'DRAINING')) return new Promise(() => undefined);
    if (!this.#outlet.holds(Date.now())) return undefined;
    this.#outlet.tells();
    this.#cursor = originOf(result)?.cursor ?? this.#cursor;
    countDelivery(this.#metrics, result, 1, this.#since);
    return new Promise((resolve) => {
      this.#sending = true;
      this.#outlet.send(Buffer.from(JSON.stringify(result)), () => {
        this.#sending = false;
        this.stepOver();
        this.#endIfSent();
        resolve();
      });
    });
  }

  finish(): void {
    this.end();
  }

  /** Goes on with the group, where both have come as far. */
  stepOver(): void {
    const own = this.#own;
    if (own === undefined || this.#group === undefined || this.#sending || this.#left) return;
    if (this.#cursor === undefined || this.#cursor !== this.#group.cursor) return;
    this.#own = undefined;
    own.stop();
    this.#group.join(this);
  }

  /** Sends a result of the group. Says whether it may be sent at all. */
  deliver(payload: Buffer, now: number): boolean {
    if (!this.#outlet.holds(now)) return false;
    this.#outlet.tells();
    if (!this.#sending) {
      // What a drained socket is sent it nearly always takes at once: nobody needs to be told of it.
      this.#sending = !this.#outlet.isDrained;
      this.#outlet.send(payload, this.#sending ? () => this.#sent() : undefined);
      return true;
    }
    this.#queue ??= [];
    this.#queue.push(payload);
    this.#queued += payload.length;
    if (this.#queue.length > QUEUE.results || this.#queued > QUEUE.bytes) {
      this.#metrics.slowConsumerDisconnect();
      this.drop();
    }
    return true;
  }

  #sent(): void {
    const next = this.#queue?.shift();
    if (next === undefined) {
      this.#sending = false;
      this.#endIfSent();
      return;
    }
    this.#queued -= next.length;
    this.#outlet.send(next, () => this.#sent());
  }

  /** Ends it as a reader that may come back. */
  drop(): void {
    this.#leave();
    this.#queue = undefined;
    this.#queued = 0;
    this.#outlet.close();
    this.#settle?.(DONE);
  }

  /** Ends it once what waits has been sent. */
  end(): void {
    this.#ending = true;
    this.#leave();
    this.#endIfSent();
  }

  #endIfSent(): void {
    // Before it is asked for, there is nobody to be told.
    if (!this.#ending || this.#sending || this.#settle === undefined) return;
    this.#ending = false;
    this.#settle(DONE);
  }

  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#own?.stop();
    this.#own = undefined;
    this.#group?.leave(this);
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
