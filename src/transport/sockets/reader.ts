import type { ExecutionResult } from 'graphql';
import { clock } from '../../common/clock.ts';
import type { Sink } from '../../common/push-stream.ts';
import type { RoundMember, Rounds } from '../../common/rounds.ts';
import { countDelivery } from '../../graphql/deliveries.ts';
import type { FanOutMetrics } from '../../observability/event-metrics.ts';
import {
  fellBehind,
  hasCode,
  type Results,
  type SharedStream,
  type SharedStreamReader,
} from './shared-stream.ts';

/** One operation of one socket. */
export interface Outlet {
  /**
   * Whether its credential still holds: where it does not, the socket is closed, and nothing more may be sent.
   *
   * @param now milliseconds since the epoch.
   */
  holds(now: number): boolean;
  /** Its caller is about to be told of an event: what it asks from now on must not be older. */
  beforeEvent(): void;
  /** Whether the socket has taken in full what it was sent. */
  readonly isDrained: boolean;
  /**
   * Sends the JSON of one result, in UTF-8. All readers are given the same bytes.
   *
   * @param sent called once the socket has taken it in full.
   */
  send(payload: Buffer, sent?: () => void): void;
  /**
   * Says that all up to a cursor has been sent.
   *
   * @param sent called once the socket has taken it in full.
   */
  mark(cursor: string, sent?: () => void): void;
  /** Its reader has fallen behind, or the shared follower has. The reader may come back, and resume. */
  close(): void;
}

/** What all readers share. */
export interface ReaderParts {
  readonly metrics: FanOutMetrics;
  /** When each is told where it stands, beside the first time. */
  readonly rounds: Rounds;
}

/** How much may wait for one reader: a slow one hurts nobody else. */
const QUEUE = { results: 256, bytes: 1024 * 1024 } as const;

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/**
 * Reads its own stream until that stands at the position of the shared one, then joins the shared one. Where the shared one has ended,
 * it keeps its own, which either goes on or says why it ends.
 */
export class Reader
  implements
    AsyncIterableIterator<ExecutionResult, undefined>,
    Sink<ExecutionResult>,
    SharedStreamReader,
    RoundMember
{
  readonly #outlet: Outlet;
  readonly #parts: ReaderParts;
  readonly #shared: SharedStream | undefined;
  #own: Results | undefined;
  readonly #since = clock.now();
  #settle: ((step: IteratorResult<ExecutionResult, undefined>) => void) | undefined;
  #left = false;
  /** Whether it ends once what waits has been sent. */
  #ending = false;
  #sending = false;
  #queue: Buffer[] | undefined;
  #queued = 0;
  /** Whether it is to be told where it stands: first as soon as it is live. */
  #isOwedMark = true;

  /** @param own its own stream; undefined where it joins the shared stream, which rests. */
  constructor(
    outlet: Outlet,
    parts: ReaderParts,
    shared: SharedStream | undefined,
    own: Results | undefined,
  ) {
    this.#outlet = outlet;
    this.#parts = parts;
    this.#shared = shared;
    this.#own = own;
    parts.rounds.add(this);
    if (own === undefined) {
      shared?.join(this);
      this.#mark();
    } else {
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
    if (!this.#outlet.holds(clock.now())) return undefined;
    this.#outlet.beforeEvent();
    countDelivery(this.#parts.metrics, result, 1, this.#since);
    return new Promise((resolve) => {
      this.#sending = true;
      this.#outlet.send(Buffer.from(JSON.stringify(result)), () => {
        this.#sending = false;
        this.#endIfSent();
        resolve();
      });
    });
  }

  /** Its own stream has nothing more for now. */
  rests(): void {
    this.#joinShared();
    this.#mark();
  }

  sharedRests(): void {
    this.#joinShared();
    this.#mark();
  }

  finish(): void {
    this.end();
  }

  remind(): void {
    this.#isOwedMark = true;
    this.#mark();
  }

  /** Goes on with the shared stream, where both stand at the same position and nothing is on its way. */
  #joinShared(): void {
    const own = this.#own;
    if (own === undefined || this.#shared === undefined || this.#left) return;
    const position = own.caughtUpTo();
    if (position === undefined) return;
    if (position !== this.#shared.caughtUpTo()) {
      this.#shared.awaitRest(this);
      return;
    }
    this.#own = undefined;
    own.stop();
    this.#shared.join(this);
  }

  /** Tells it where it stands, where it is owed that, once all before has been sent. */
  #mark(): void {
    if (!this.#isOwedMark || this.#left || this.#sending) return;
    const cursor = (this.#own ?? this.#shared)?.bookmark();
    if (cursor === undefined) {
      if (this.#own === undefined) this.#shared?.awaitRest(this);
      return;
    }
    if (!this.#outlet.holds(clock.now())) return;
    this.#isOwedMark = false;
    if (this.#own !== undefined || this.#outlet.isDrained) {
      this.#outlet.mark(cursor);
      return;
    }
    this.#sending = true;
    this.#outlet.mark(cursor, () => this.#sent());
  }

  deliver(payload: Buffer, now: number): boolean {
    if (!this.#outlet.holds(now)) return false;
    this.#outlet.beforeEvent();
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
      this.#parts.metrics.slowConsumerDisconnect();
      this.drop();
    }
    return true;
  }

  #sent(): void {
    const next = this.#queue?.shift();
    if (next === undefined) {
      this.#sending = false;
      this.#endIfSent();
      this.#mark();
      return;
    }
    this.#queued -= next.length;
    this.#outlet.send(next, () => this.#sent());
  }

  drop(): void {
    this.#leave();
    this.#queue = undefined;
    this.#queued = 0;
    this.#outlet.close();
    this.#settle?.(DONE);
  }

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
    this.#parts.rounds.delete(this);
    this.#own?.stop();
    this.#own = undefined;
    this.#shared?.leave(this);
  }
}
