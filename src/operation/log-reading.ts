import { clock } from '../common/clock.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';

/** Events that an operation may look through, over all of its fields. */
const EVENTS = 10_000;
/** Fields of an operation for which the log may be read from one end to the other, for a caller who sees a part of it. */
const WHOLE_READS = 4;
/** Receipts of which an operation may have the REST service asked whose they are. */
const OWNERS = 250;

export interface LogReadingOptions {
  /** Undefined where a batch may begin at once; otherwise resolves when it may (`Turns.turn`). */
  readonly turn: () => Promise<void> | undefined;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: () => number;
  /** Aborted when nobody waits for the result any more. */
  readonly signal: AbortSignal;
}

/**
 * What one operation may read of the event log, over all of its fields. Every batch takes a turn, so that other callers are
 * served between two of them, and none begins once the operation's time is over.
 */
export class LogReading {
  readonly #options: LogReadingOptions;
  #events = EVENTS;
  #wholeReads = WHOLE_READS;
  #owners = OWNERS;
  #waitedMs: number | undefined;

  constructor(options: LogReadingOptions) {
    this.#options = options;
  }

  /** Aborted when nobody waits for the result any more. */
  get signal(): AbortSignal {
    return this.#options.signal;
  }

  /** Whether the operation's time is over. */
  get isOver(): boolean {
    return clock.now() >= this.#options.deadline();
  }

  /** Waits for the turn of a batch. Rejects when the caller is gone. */
  turn(): MaybePromise<void> {
    this.#options.signal.throwIfAborted();
    return this.#options.turn()?.then(() => this.#options.signal.throwIfAborted());
  }

  /**
   * How long the operation's fields waited for pages of the log, added up, in milliseconds; undefined where it read none. What several
   * wait for at once counts for each, so it may exceed the time of the operation.
   */
  get waitedMs(): number | undefined {
    return this.#waitedMs;
  }

  /** Counts how long the log takes for an answer. */
  async timed<T>(answer: Promise<T>): Promise<T> {
    const start = clock.monotonic();
    try {
      return await answer;
    } finally {
      this.#waitedMs = (this.#waitedMs ?? 0) + clock.monotonic() - start;
    }
  }

  /** Takes events out of the budget: as many as wanted, or as many as are left. */
  take(wanted: number): number {
    const taken = Math.min(wanted, this.#events);
    this.#events -= taken;
    return taken;
  }

  /** Puts back what was taken and not read. */
  putBack(events: number): void {
    this.#events += events;
  }

  /** Begins to read the whole log for a caller who sees a part of it; false where that was done too often. */
  beginWholeRead(): boolean {
    this.#wholeReads -= 1;
    return this.#wholeReads >= 0;
  }

  /** Whether the REST service may be asked for one more owner. */
  mayAskOwner(): boolean {
    this.#owners -= 1;
    return this.#owners >= 0;
  }

  /** What some work gives; undefined where the operation's time is over first, or nobody waits any more. */
  async inTime<T>(work: Promise<T>): Promise<T | undefined> {
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, this.#options.signal]);
    const over = clock.sleep(Math.max(0, this.#options.deadline() - clock.now()), { signal }).then(
      () => undefined,
      () => undefined,
    );
    try {
      return await Promise.race([work, over]);
    } finally {
      done.abort();
    }
  }
}
