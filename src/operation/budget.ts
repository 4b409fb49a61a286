import type { Caller } from '../auth/caller.ts';
import { clock } from '../common/clock.ts';
import type { Waiters } from '../common/waiters.ts';
import type { Incoming } from './incoming.ts';
import { LogReading } from './log-reading.ts';
import { type KeptBytes, type StreamRefusal, streamHolder } from './streams.ts';

export interface BudgetOptions {
  readonly operationTimeoutMs: number;
  /** How many items the pages of one answer may hold. */
  readonly maxItems: number;
}

/** What one operation is allowed to cost: time, items, reading of the event log, and a stream's seat. */
export class Budget {
  /** How many items the pages of the answer may hold. */
  readonly maxItems: number;
  readonly #options: BudgetOptions;
  readonly #incoming: Pick<Incoming, 'waiters' | 'openStream'>;
  readonly #turn: () => Promise<void> | undefined;
  #deadline: number;
  #items = 0;
  #log: LogReading | undefined;

  /** @param turn when a batch of the event log may be read; undefined where that is at once. */
  constructor(
    options: BudgetOptions,
    incoming: Pick<Incoming, 'waiters' | 'openStream'>,
    turn: () => Promise<void> | undefined,
  ) {
    this.maxItems = options.maxItems;
    this.#options = options;
    this.#incoming = incoming;
    this.#turn = turn;
    this.#deadline = clock.now() + options.operationTimeoutMs;
  }

  /** When the operation must be over, in milliseconds since the epoch. */
  get deadline(): number {
    return this.#deadline;
  }

  /** Who waits for the result; undefined where it is not told when somebody leaves. */
  get waiters(): Waiters | undefined {
    return this.#incoming.waiters;
  }

  /** Aborted when nobody waits for the result any more. */
  get signal(): AbortSignal {
    return this.waiters?.signal ?? new AbortController().signal;
  }

  /** What the operation may read of the event log. */
  get log(): LogReading {
    this.#log ??= new LogReading({ turn: this.#turn, deadline: () => this.#deadline, signal: this.signal });
    return this.#log;
  }

  /** {@link LogReading.waitedMs} */
  get eventLogMs(): number | undefined {
    return this.#log?.waitedMs;
  }

  /**
   * Waits for the turn of a further batch of a list that no index narrows. Returns false where the operation's time is over. Rejects when the
   * caller is gone.
   */
  async mayReadOn(): Promise<boolean> {
    await this.log.turn();
    return !this.log.isOver;
  }

  /** Adds to the items that the answer's pages hold. Returns how many they are by now. */
  countItems(count: number): number {
    this.#items += count;
    return this.#items;
  }

  /** Drops what has been counted, as the operation is executed a second time. */
  recount(): void {
    this.#items = 0;
    this.#log = undefined;
  }

  /** Gives what follows a deadline of its own: each event of a stream has one. */
  extend(): void {
    this.#deadline = clock.now() + this.#options.operationTimeoutMs;
  }

  /** Whether its stream takes a seat of its own; over a socket it has that of the socket. */
  get countsStreams(): boolean {
    return this.#incoming.openStream !== undefined;
  }

  /** Counts a stream that is about to begin for its caller, and what it keeps. Says why it may not begin. */
  openStream(caller: Caller, kept: KeptBytes): StreamRefusal | undefined {
    return this.#incoming.openStream?.(streamHolder(caller), kept);
  }
}
