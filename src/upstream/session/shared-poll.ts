import { Alarm } from '../../common/alarms.ts';
import type { Transaction } from '../transactions.ts';

/**
 * The waits between two readings, in milliseconds. Each holds until `until` milliseconds after the first watcher came; the
 * last one has no end.
 */
export type Schedule = readonly { readonly until: number; readonly wait: number }[];

/** A watcher of a transaction, which is read again in case no message tells of a change. */
export interface Polled {
  /** Equal for all watchers that one reading may serve. They need equal schedules: that of the first one to come holds for all. */
  readonly pollKey: string;
  /** The group of its requester, for which it is read. Each group has one share of the readings. */
  readonly pollRequester: string;
  readonly schedule: Schedule;
  /** Reads under its own credential. */
  read(): Promise<Transaction | null>;
  /**
   * Takes in a reading. @returns true if it showed anything new.
   *
   * @param isOwn true if it was made under the watcher's own credential.
   */
  takePoll(transaction: Transaction | null, isOwn: boolean): boolean;
  /** Called when a reading under its own credential has failed. @returns true if it may be read again. */
  pollFailed(error: unknown): boolean;
}

const MINUTE = 60_000;
/** How many readings of one transaction hints may cause at once, and after how many milliseconds they may cause one more. */
const HINTS = { atOnce: 8, oneMoreAfterMs: 15 * MINUTE };

/** The pace at which one transaction is read, shared by all its watchers, also by those who leave and come back. */
export class Pace {
  readonly begun: number;
  leftAt = 0;
  #hints = HINTS.atOnce;
  #countedAt: number;

  constructor(now: number) {
    this.begun = now;
    this.#countedAt = now;
  }

  /** Returns true if a hint may cause a reading, and counts that reading. */
  takeHint(now: number): boolean {
    const more = (now - this.#countedAt) / HINTS.oneMoreAfterMs;
    this.#hints = Math.min(HINTS.atOnce, this.#hints + Math.max(0, more));
    this.#countedAt = now;
    if (this.#hints < 1) return false;
    this.#hints -= 1;
    return true;
  }
}

/** The watchers that one reading serves. The first of them reads next. */
export class SharedPoll extends Alarm {
  readonly key: string;
  readonly pace: Pace;
  readonly #watchers = new Set<Polled>();
  /** How many watchers each requester has. */
  readonly #requesters = new Map<string, number>();
  readonly #schedule: Schedule;
  readonly #isDue: (poll: SharedPoll) => void;
  /** When the schedule has it read next. */
  #scheduledAt = 0;
  isReading = false;
  /** True if a hint has come while it was being read. */
  isHinted = false;
  /**
   * The id of the message that was the last hint. Every watcher of the transaction reports the same message, which counts
   * once.
   */
  hintedBy: string | undefined;
  /** How many readings have followed a hint and shown nothing new; undefined where the schedule alone decides. */
  lags: number | undefined;

  constructor(key: string, schedule: Schedule, pace: Pace, isDue: (poll: SharedPoll) => void) {
    super();
    this.key = key;
    this.pace = pace;
    this.#schedule = schedule;
    this.#isDue = isDue;
  }

  override ring(): void {
    this.#isDue(this);
  }

  get watchers(): ReadonlySet<Polled> {
    return this.#watchers;
  }

  /** The requesters of the watchers. */
  get requesters(): Iterable<string> {
    return this.#requesters.keys();
  }

  /** @returns true if it is the first watcher of its requester. */
  add(polled: Polled): boolean {
    if (this.#watchers.has(polled)) return false;
    this.#watchers.add(polled);
    const count = this.#requesters.get(polled.pollRequester) ?? 0;
    this.#requesters.set(polled.pollRequester, count + 1);
    return count === 0;
  }

  /** @returns `was`: true if it was there; `isLast`: true if it was the last watcher of its requester. */
  remove(polled: Polled): { readonly was: boolean; readonly isLast: boolean } {
    if (!this.#watchers.delete(polled)) return { was: false, isLast: false };
    const count = (this.#requesters.get(polled.pollRequester) ?? 0) - 1;
    if (count > 0) this.#requesters.set(polled.pollRequester, count);
    else this.#requesters.delete(polled.pollRequester);
    return { was: true, isLast: count <= 0 };
  }

  /** Returns the watcher under whose credential the next reading is made. The following one is made under another's. */
  takeReader(): Polled | undefined {
    const [reader] = this.#watchers;
    if (reader === undefined) return undefined;
    this.#watchers.delete(reader);
    this.#watchers.add(reader);
    return reader;
  }

  /** When the schedule has it read next. A reading that a hint has caused before that time does not move it. */
  nextDue(now: number): number {
    // Further ahead than a whole wait it is only where the clock was put back.
    const isAhead = this.#scheduledAt > now && this.#scheduledAt <= now + this.#waitMs(now);
    return isAhead ? this.#scheduledAt : this.putOff(now);
  }

  /** Moves the schedule's next reading to a whole wait from now. @returns its time. */
  putOff(now: number): number {
    this.#scheduledAt = now + this.#waitMs(now);
    return this.#scheduledAt;
  }

  #waitMs(now: number): number {
    const since = now - this.pace.begun;
    const step = this.#schedule.find(({ until }) => since < until) ?? this.#schedule.at(-1);
    return step?.wait ?? MINUTE;
  }
}
