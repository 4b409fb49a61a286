import type { ExecutionResult } from 'graphql';
import { CURSOR } from '../../graphql/executor/graphql-js.ts';
import type { FanOutMetrics } from '../../observability/metrics.ts';

type Results = AsyncIterableIterator<ExecutionResult, unknown>;

/** The outcome of subscribing: a stream, or the reason why there is none. */
export type Subscribed = ExecutionResult | Results;

/** One operation of one socket. */
export interface Outlet {
  /**
   * Sends the JSON of one result.
   *
   * @param sent called once the socket has taken it in full.
   */
  send(payload: string, sent: () => void): void;
  /** Its reader has fallen behind, or the shared follower has. The reader may come back, and resume. */
  close(): void;
}

interface Subscription {
  /** The same for all whom every event gives the same result. */
  readonly key: string;
  readonly outlet: Outlet;
  /** Subscribes for all, from now on. `readers` tells how many read along. */
  readonly open: (readers: () => number) => Promise<Subscribed>;
  /** Subscribes for this one alone, from where it left off; undefined when it begins now. */
  readonly resume: (() => Promise<Subscribed>) | undefined;
}

/** How much may wait for one reader (docs/events.md, "A slow reader hurts nobody else"). */
const QUEUE = { results: 256, characters: 1024 * 1024 } as const;

/** Executes a subscription once for all who ask the same, and sends all the same text. */
export interface FanOut {
  /**
   * What a socket is to be given. Results of the group do not come through its iterator, which only ends when the group
   * does: they are sent. A socket that resumes reads alone until it has seen what the group has seen last.
   */
  subscribe(subscription: Subscription): Promise<Subscribed>;
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
        return isStream(own) ? new Reader(outlet, enter(subscription), own) : own;
      }
      const group = enter(subscription);
      try {
        const refused = await group.opened;
        if (refused === undefined) return new Reader(outlet, group, undefined);
        group.leave();
        return refused;
      } catch (error) {
        group.leave();
        throw error;
      }
    },
  };
}

const isStream = (subscribed: Subscribed): subscribed is Results => Symbol.asyncIterator in subscribed;

const fellBehind = ({ errors }: ExecutionResult): boolean =>
  errors?.some(({ extensions }) => extensions['code'] === 'SLOW_CONSUMER') === true;

/** One stream that is read for many. */
class Group {
  /** Resolves with what there is instead of a stream; with undefined once there is one. */
  readonly opened: Promise<ExecutionResult | undefined>;
  readonly metrics: FanOutMetrics;
  /** That of the last result. */
  cursor: unknown;
  readonly #forget: () => void;
  readonly #members = new Set<Reader>();
  readonly #resuming = new Set<Reader>();
  #readers = 0;
  #stream: Results | undefined;
  #ended = false;

  constructor(
    open: (readers: () => number) => Promise<Subscribed>,
    metrics: FanOutMetrics,
    forget: () => void,
  ) {
    this.metrics = metrics;
    this.#forget = forget;
    this.opened = this.#open(open);
    // Who waits for it is told; who resumes has a stream of its own.
    this.opened.catch(() => this.#end());
  }

  async #open(open: (readers: () => number) => Promise<Subscribed>): Promise<ExecutionResult | undefined> {
    const subscribed = await open(() => this.#members.size);
    if (!isStream(subscribed)) {
      this.#end();
      return subscribed;
    }
    this.#stream = subscribed;
    this.metrics.sharing(-1);
    void this.#pump(subscribed);
    return undefined;
  }

  /** A stream that fails says so in its last result (plugins/error-masking.ts). */
  async #pump(stream: Results): Promise<void> {
    if (this.#ended) await stream.return?.();
    for await (const result of stream) {
      this.cursor = Reflect.get(result, CURSOR) ?? this.cursor;
      if (fellBehind(result)) for (const member of this.#members) member.drop();
      const payload = JSON.stringify(result);
      for (const member of this.#members) member.take(payload);
      for (const reader of this.#resuming) reader.stepOver();
    }
    this.metrics.sharing(1);
    this.#end();
  }

  /** One more is going to read, or to resume. Each leaves once. */
  enter(): void {
    this.#readers += 1;
  }

  join(reader: Reader): void {
    this.#resuming.delete(reader);
    if (this.#ended) {
      reader.finish();
      return;
    }
    this.#members.add(reader);
    this.metrics.sharing(1);
  }

  /** Tells a reader of each result, so that it may see that it has come as far. */
  tell(reader: Reader): void {
    this.#resuming.add(reader);
  }

  leave(reader?: Reader): void {
    if (reader !== undefined) {
      if (this.#members.delete(reader)) this.metrics.sharing(-1);
      this.#resuming.delete(reader);
    }
    this.#readers -= 1;
    if (this.#readers > 0) return;
    this.#end();
    void this.#stream?.return?.();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forget();
    for (const member of this.#members) member.finish();
  }
}

/** One who reads with a group, or on its own until it has seen what the group has seen last. */
class Reader implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly #outlet: Outlet;
  readonly #group: Group;
  #own: Results | undefined;
  /** Of the last result of its own. */
  #cursor: unknown;
  /** Whether everything of its own has been sent. */
  #idle = false;
  #settle: ((step: IteratorResult<ExecutionResult, undefined>) => void) | undefined;
  #left = false;
  #finishing = false;
  #sending = false;
  #queue: string[] | undefined;
  #queued = 0;

  constructor(outlet: Outlet, group: Group, own: Results | undefined) {
    this.#outlet = outlet;
    this.#group = group;
    this.#own = own;
    if (own === undefined) group.join(this);
    else group.tell(this);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ExecutionResult, undefined>> {
    if (this.#left && !this.#finishing) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#idle = true;
      this.stepOver();
      if (this.#own !== undefined) this.#pull(this.#own).catch(reject);
      else if (this.#finishing) this.#finished();
    });
  }

  async return(): Promise<IteratorResult<ExecutionResult, undefined>> {
    this.#leave();
    await this.#own?.return?.();
    this.#settle?.(DONE);
    return DONE;
  }

  async #pull(own: Results): Promise<void> {
    const step = await own.next();
    // The group's are its results from here on.
    if (this.#own !== own) return;
    this.#idle = false;
    if (step.done === true) this.#leave();
    else this.#cursor = Reflect.get(step.value, CURSOR) ?? this.#cursor;
    this.#settle?.(step.done === true ? DONE : step);
  }

  /** Goes on with the group, where both have come as far. */
  stepOver(): void {
    const own = this.#own;
    if (own === undefined || !this.#idle || this.#left) return;
    if (this.#cursor === undefined || this.#cursor !== this.#group.cursor) return;
    this.#own = undefined;
    this.#group.join(this);
    void own.return?.();
  }

  take(payload: string): void {
    if (!this.#sending) {
      this.#sending = true;
      this.#outlet.send(payload, () => this.#sent());
      return;
    }
    this.#queue ??= [];
    this.#queue.push(payload);
    this.#queued += payload.length;
    if (this.#queue.length > QUEUE.results || this.#queued > QUEUE.characters) {
      this.#group.metrics.slowConsumerDisconnect();
      this.drop();
    }
  }

  #sent(): void {
    const next = this.#queue?.shift();
    if (next === undefined) {
      this.#sending = false;
      if (this.#finishing) this.#finished();
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
  finish(): void {
    this.#leave();
    this.#finishing = true;
    if (!this.#sending) this.#finished();
  }

  #finished(): void {
    if (this.#sending) return;
    this.#finishing = false;
    this.#settle?.(DONE);
  }

  #leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#group.leave(this);
  }
}

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };
