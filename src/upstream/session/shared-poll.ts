import { Alarm } from '../../common/alarms.ts';
import type { Transaction } from '../transactions.ts';

/**
 * Waits between two readings, in milliseconds: each holds until so long after somebody began to wait. The last one holds from
 * then on.
 */
export type Schedule = readonly { readonly until: number; readonly wait: number }[];

/** A transaction that is read again where no message tells of it. */
export interface Polled {
  /** The same for all that one reading may serve. */
  readonly pollKey: string;
  /** For whom it is read: the group of its requester. Each has one share of the readings. */
  readonly pollRequester: string;
  readonly schedule: Schedule;
  /** Reads under its own credential. */
  read(): Promise<Transaction | null>;
  /**
   * Takes in a reading. @returns whether it showed anything new.
   *
   * @param isOwn whether it was made under its own credential.
   */
  takePoll(transaction: Transaction | null, isOwn: boolean): boolean;
  /** Takes note that a reading under its own credential has failed. @returns whether it may be read again. */
  pollFailed(error: unknown): boolean;
}

const MINUTE = 60_000;
/** How many readings of one transaction hints may cause at once, and after how long one more. */
const HINTS = { atOnce: 8, oneMoreAfterMs: 15 * MINUTE };

/** The pace at which one transaction is read, for all who wait for it together, and for those who leave and come back. */
export class Pace {
  readonly begun: number;
  leftAt = 0;
  #hints = HINTS.atOnce;
  #countedAt: number;

  constructor(now: number) {
    this.begun = now;
    this.#countedAt = now;
  }

  /** Whether a hint may cause a reading; uses up that right. */
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
  isReading = false;
  /** Whether a hint has come while it was being read. */
  isHinted = false;
  /** The message that was the last hint. Every watcher reports it. */
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

  /** @returns whether it is the first of its requester. */
  add(polled: Polled): boolean {
    if (this.#watchers.has(polled)) return false;
    this.#watchers.add(polled);
    const count = this.#requesters.get(polled.pollRequester) ?? 0;
    this.#requesters.set(polled.pollRequester, count + 1);
    return count === 0;
  }

  /** @returns whether it was there, and whether it was the last of its requester. */
  remove(polled: Polled): { readonly was: boolean; readonly isLast: boolean } {
    if (!this.#watchers.delete(polled)) return { was: false, isLast: false };
    const count = (this.#requesters.get(polled.pollRequester) ?? 0) - 1;
    if (count > 0) this.#requesters.set(polled.pollRequester, count);
    else this.#requesters.delete(polled.pollRequester);
    return { was: true, isLast: count <= 0 };
  }

  /** The watcher whose turn it is to read, under its own credential; the next time it is another's. */
  takeReader(): Polled | undefined {
    const [reader] = this.#watchers;
    if (reader === undefined) return undefined;
    this.#watchers.delete(reader);
    this.#watchers.add(reader);
    return reader;
  }

  nextDue(now: number): number {
    const since = now - this.pace.begun;
    const step = this.#schedule.find(({ until }) => since < until) ?? this.#schedule.at(-1);
    return now + (step?.wait ?? MINUTE);
  }
}
