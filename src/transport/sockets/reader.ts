import type { ExecutionResult } from 'graphql';
import { clock } from '../../common/clock.ts';
import type { Sink } from '../../common/push-stream.ts';
import type { RoundMember, Rounds } from '../../common/rounds.ts';
import { countDelivery } from '../../graphql/deliveries.ts';
import { countSlowReaders } from '../../graphql/slow-readers.ts';
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
  /** The client whose events it is sent. */
  readonly clientId: string;
  /**
   * True if its credential is still valid, and its socket is not to be closed. If not, nothing more may be sent, and the socket is
   * closed once its mutations are answered.
   *
   * @param now milliseconds since the epoch.
   */
  holds(now: number): boolean;
  /** Called before its caller is told of an event. From then on, what it asks must be read afresh. */
  beforeEvent(): void;
  /** True if the socket has taken everything that it was sent. */
  readonly isDrained: boolean;
  /**
   * Sends the JSON of one result, in UTF-8. All readers get the same buffer.
   *
   * @param sent called once the socket has taken it in full.
   */
  send(payload: Buffer, sent?: () => void): void;
  /**
   * Sends a bookmark: every event up to this cursor has been sent.
   *
   * @param sent called once the socket has taken it in full.
   */
  mark(cursor: string, sent?: () => void): void;
  /**
   * Has the socket closed once its mutations are answered, because its reader, or the shared follower, has fallen behind. From now on
   * `holds` is false. The client may connect again and resume.
   */
  close(): void;
}

/** Parts that all readers share. */
export interface ReaderParts {
  readonly metrics: FanOutMetrics;
  /** Says when each reader is sent a bookmark, after the first one. */
  readonly rounds: Rounds;
}

/** Results and bytes that may wait for one reader, so that a slow one harms no other. */
const QUEUE = { results: 256, bytes: 1024 * 1024 } as const;

const DONE: IteratorReturnResult<undefined> = { done: true, value: undefined };

/**
 * Reads its own stream until that reaches the position of the shared stream, then joins the shared stream. If the shared
 * stream has ended, it keeps its own, which goes on or ends with a reason.
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
  /** True if it ends once its queue has been sent. */
  #ending = false;
  #sending = false;
  #queue: Buffer[] | undefined;
  #queued = 0;
  /** True if it is to be sent a bookmark. The first one is due as soon as it is live. */
  #isOwedMark = true;

  /** @param own its own stream; undefined if it joins the shared stream at once, while that has nothing to send. */
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
    this.#ending = false;
    this.#settle?.(DONE);
    return DONE;
  }

  /** Takes a result of its own stream. Resolves once the socket has taken it; only then does the next one come. */
  take(result: ExecutionResult): void | Promise<void> {
    if (this.#left) return undefined;
    if (fellBehind(result)) {
      countSlowReaders(this.#parts.metrics, result, 1);
      return this.drop();
    }
    // The process is stopping. The socket is closed once its other operations have been answered.
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

  /** Called when its own stream has nothing more for now. */
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

  /** Joins the shared stream, if both are at the same position and neither has a result to send. */
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

  /** Sends a bookmark if one is due, once everything before has been sent. */
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
      // A socket with nothing unread nearly always takes a message at once, so that no callback is needed.
      this.#sending = !this.#outlet.isDrained;
      this.#outlet.send(payload, this.#sending ? () => this.#sent() : undefined);
      return true;
    }
    this.#queue ??= [];
    this.#queue.push(payload);
    this.#queued += payload.length;
    if (this.#queue.length > QUEUE.results || this.#queued > QUEUE.bytes) {
      this.#parts.metrics.slow(this.#outlet.clientId, 1);
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
    this.#queue = undefined;
    this.#queued = 0;
    this.#outlet.close();
    this.end();
  }

  end(): void {
    this.#ending = true;
    this.#leave();
    this.#endIfSent();
  }

  #endIfSent(): void {
    // Nobody has called `next` yet, so the end cannot be reported.
    if (!this.#ending || this.#sending || this.#settle === undefined) return;
    // A client that is told that the stream is complete does not come back for what it was not sent. `return` is called once the socket is closed.
    if (!this.#outlet.holds(clock.now())) return;
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
