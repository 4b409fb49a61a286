import { LRUCache } from 'lru-cache';
import { Alarm, type AlarmClock, Alarms, CallAlarm } from '../common/alarms.ts';
import type { Transaction } from './transactions.ts';

/**
 * Waits between two readings, in milliseconds: each holds until so long after somebody began to wait. The last one holds from
 * then on.
 */
export type Schedule = readonly { readonly until: number; readonly wait: number }[];

/** A transaction that is read again where no message tells of it. */
export interface Polled {
  /** The same for all that one reading may serve. */
  readonly pollKey: string;
  readonly schedule: Schedule;
  /** Reads under its own credential. */
  read(): Promise<Transaction | null>;
  /**
   * Takes in a reading. Says whether it told anything new.
   *
   * @param isOwn whether it was made under its own credential.
   */
  takePoll(transaction: Transaction | null, isOwn: boolean): boolean;
  /** A reading under its own credential has failed. Says whether it may be read again. */
  pollFailed(error: unknown): boolean;
}

const MINUTE = 60_000;
/** Waits after a hint whose reading told nothing new: what is read may lag behind what was announced. */
const HINT_LAGS = [1_000, 3_000];
/** How many readings of one transaction hints may cause at once, and after how long one more. */
const HINTS = { atOnce: 8, oneMoreAfterMs: 15 * MINUTE };
/** How long after everybody has left a transaction is known to have been read, and of how many that is remembered. */
const REMEMBERED = { ms: 30 * MINUTE, max: 20_000 };

/** How often one transaction is read: for all who wait for it, also for those who leave and come back. */
class Pace {
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

/** All that one reading serves. The first of them reads next. */
class Group extends Alarm {
  readonly key: string;
  readonly pace: Pace;
  readonly members = new Set<Polled>();
  readonly #schedule: Schedule;
  readonly #isDue: (group: Group) => void;
  isReading = false;
  /** Whether a hint has come while it was being read. */
  isHinted = false;
  /** The message that has last been a hint. All members are told of it. */
  hintedBy: string | undefined;
  /** How many readings have followed a hint and told nothing new; undefined where the schedule alone rules. */
  lags: number | undefined;

  constructor(key: string, schedule: Schedule, pace: Pace, isDue: (group: Group) => void) {
    super();
    this.key = key;
    this.pace = pace;
    this.#schedule = schedule;
    this.#isDue = isDue;
  }

  override ring(): void {
    this.#isDue(this);
  }

  nextDue(now: number): number {
    const since = now - this.pace.begun;
    const step = this.#schedule.find(({ until }) => since < until) ?? this.#schedule.at(-1);
    return now + (step?.wait ?? MINUTE);
  }
}

/**
 * Reads transactions again, each on its schedule: a lost webhook delays an answer, and never loses it. Those that have the
 * same `pollKey` share a reading. All together keep to a rate; past it those wait, and the one that has waited longest is read
 * first. What a message hints at is read at once: it counts for the rate, and does not wait for it.
 */
export class Polls {
  /** What all waits of those who are told of transactions share. */
  readonly alarms: Alarms;
  readonly #clock: AlarmClock;
  readonly #perSecond: number;
  readonly #groups = new Map<string, Group>();
  /** Of those for whom nobody waits any more. */
  readonly #paces = new LRUCache<string, Pace>({ max: REMEMBERED.max });
  /** Those whose time has come, in that order. */
  readonly #due = new Set<Group>();
  readonly #wake = new CallAlarm(() => this.#pump());
  /** Readings that may be made now, and when that was counted. Below zero where hints have used up what was to come. */
  #allowed: number;
  #countedAt: number;

  /** @param perSecond how many readings are made in a second, at most. */
  constructor(clock: AlarmClock, perSecond: number) {
    this.alarms = new Alarms(clock);
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#allowed = perSecond;
    this.#countedAt = clock.now();
  }

  /** Reads it again from now on. It has just been read: who joins others waits for their next reading. */
  add(polled: Polled): void {
    let group = this.#groups.get(polled.pollKey);
    if (group === undefined) {
      const now = this.#clock.now();
      group = new Group(polled.pollKey, polled.schedule, this.#paceOf(polled.pollKey, now), (due) => {
        if (due.lags === undefined) this.#line(due);
        else this.#readAtOnce(due);
      });
      this.#groups.set(polled.pollKey, group);
      this.alarms.set(group, group.nextDue(now));
    }
    group.members.add(polled);
  }

  /** A message has told its state: its next reading is a whole wait away again. */
  putOff(polled: Polled): void {
    const group = this.#groups.get(polled.pollKey);
    if (group === undefined || group.isReading) return;
    this.#due.delete(group);
    this.alarms.set(group, group.nextDue(this.#clock.now()));
  }

  /**
   * A message hints that its state may have changed: it is read at once, and again soon while that tells nothing new. Hints
   * past a number are left to the schedule.
   *
   * @param messageId of the message, which is one hint to all that share a reading; undefined for a hint to this one alone.
   */
  hint(polled: Polled, messageId?: string): void {
    const group = this.#groups.get(polled.pollKey);
    if (group === undefined || (messageId !== undefined && group.hintedBy === messageId)) return;
    group.hintedBy = messageId;
    // A reading under way may have begun before the change.
    if (group.isReading) group.isHinted = true;
    else this.#takeHint(group);
  }

  remove(polled: Polled): void {
    const group = this.#groups.get(polled.pollKey);
    if (group === undefined || !group.members.delete(polled) || group.members.size > 0) return;
    this.#groups.delete(group.key);
    this.#due.delete(group);
    this.alarms.clear(group);
    group.pace.leftAt = this.#clock.now();
    this.#paces.set(group.key, group.pace);
  }

  #paceOf(key: string, now: number): Pace {
    const known = this.#paces.get(key);
    this.#paces.delete(key);
    return known === undefined || now - known.leftAt > REMEMBERED.ms ? new Pace(now) : known;
  }

  #takeHint(group: Group): boolean {
    if (!group.pace.takeHint(this.#clock.now())) return false;
    group.lags = 0;
    this.#readAtOnce(group);
    return true;
  }

  #readAtOnce(group: Group): void {
    this.#due.delete(group);
    this.alarms.clear(group);
    this.#count();
    this.#allowed = Math.max(-this.#perSecond, this.#allowed - 1);
    void this.#read(group);
  }

  #line(group: Group): void {
    this.#due.add(group);
    this.#pump();
  }

  #count(): void {
    const now = this.#clock.now();
    this.#allowed = Math.min(
      this.#perSecond,
      this.#allowed + (Math.max(0, now - this.#countedAt) / 1_000) * this.#perSecond,
    );
    this.#countedAt = now;
  }

  #pump(): void {
    this.#count();
    for (const group of this.#due) {
      if (this.#allowed < 1) {
        const wait = Math.ceil(((1 - this.#allowed) / this.#perSecond) * 1_000);
        this.alarms.set(this.#wake, this.#clock.now() + wait);
        return;
      }
      this.#allowed -= 1;
      this.#due.delete(group);
      void this.#read(group);
    }
  }

  /** Reads as each member in turn, so that each credential is asked about now and then. */
  async #read(group: Group): Promise<void> {
    const present = [...group.members];
    const [reader] = present;
    if (reader === undefined) return;
    group.members.delete(reader);
    group.members.add(reader);
    group.isReading = true;
    let transaction: Transaction | null;
    try {
      transaction = await reader.read();
    } catch (error) {
      group.isReading = false;
      if (reader.pollFailed(error)) {
        this.#stepOn(group, false);
        return;
      }
      this.remove(reader);
      // Another's credential may still be good.
      if (group.members.size > 0) this.#line(group);
      return;
    }
    group.isReading = false;
    let isNews = false;
    // Who has come meanwhile has read it later.
    for (const member of present) {
      if (group.members.has(member)) isNews = member.takePoll(transaction, member === reader) || isNews;
    }
    this.#stepOn(group, isNews);
  }

  #stepOn(group: Group, isNews: boolean): void {
    const { isHinted } = group;
    group.isHinted = false;
    if (group.members.size === 0 || (isHinted && this.#takeHint(group))) return;
    const now = this.#clock.now();
    const lag = group.lags === undefined || isNews ? undefined : HINT_LAGS[group.lags];
    if (group.lags !== undefined && lag !== undefined && group.pace.takeHint(now)) {
      group.lags += 1;
      this.alarms.set(group, now + lag);
      return;
    }
    group.lags = undefined;
    this.alarms.set(group, group.nextDue(now));
  }
}
