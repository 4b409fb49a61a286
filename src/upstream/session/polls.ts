import { LRUCache } from 'lru-cache';
import { type AlarmClock, Alarms, CallAlarm } from '../../common/alarms.ts';
import type { Transaction } from '../transactions.ts';
import { Pace, type Polled, PollGroup } from './poll-group.ts';
import { PollQueues } from './poll-queues.ts';

export type { Polled, Schedule } from './poll-group.ts';

/** Waits, in milliseconds, before another reading after a hint whose reading showed nothing new: the service's reads may lag behind its messages. */
const HINT_LAGS = [1_000, 3_000];
/** The pace of a transaction is remembered for so long after everybody has left it, and of so many transactions. */
const REMEMBERED = { ms: 1_800_000, max: 20_000 };
/** How many readings of one owner may be under way, so that readings that hang do not use up the rate. */
const UNDER_WAY = 16;

/**
 * Reads transactions again, each on its schedule: a lost webhook delays an answer, and never loses it. Watchers with the
 * same `pollKey` share a reading. All readings together keep to a rate; past it they wait in a queue for each owner, and the owners take turns.
 * A transaction that a message hints at is read at once: the reading counts for the rate, and waits for it only where the rate is used up
 * and others wait.
 */
export class Polls {
  /** The alarms that all waits for transactions share. */
  readonly alarms: Alarms;
  readonly #clock: AlarmClock;
  readonly #perSecond: number;
  readonly #groups = new Map<string, PollGroup>();
  /** The paces of transactions for which nobody waits any more. */
  readonly #paces = new LRUCache<string, Pace>({ max: REMEMBERED.max });
  /** The groups whose time has come. */
  readonly #queues = new PollQueues(UNDER_WAY);
  readonly #wake = new CallAlarm(() => this.#pump());
  /** Readings that may be made now, and when that was counted. Below zero where hints have used up readings of the future. */
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

  /** Reads it again from now on. The watcher has just read it, so one who joins others waits for their next reading. */
  add(polled: Polled): void {
    let group = this.#groups.get(polled.pollKey);
    if (group === undefined) {
      const now = this.#clock.now();
      group = new PollGroup(polled.pollKey, polled.schedule, this.#paceOf(polled.pollKey, now), (due) => {
        if (due.lags === undefined) this.#line(due);
        else this.#readAtOnce(due);
      });
      this.#groups.set(polled.pollKey, group);
      this.alarms.set(group, group.nextDue(now));
    }
    if (group.add(polled)) this.#queues.join(group, polled.pollOwner);
  }

  /** A message has brought its state: its next reading is a whole wait away again. */
  putOff(polled: Polled): void {
    const group = this.#groups.get(polled.pollKey);
    if (group === undefined || group.isReading) return;
    this.#queues.remove(group);
    this.alarms.set(group, group.nextDue(this.#clock.now()));
  }

  /**
   * A message hints that its state may have changed: it is read at once, and again soon while that shows nothing new. Past a
   * number of hints the schedule alone decides.
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
    if (group === undefined) return;
    const { was, isLast } = group.remove(polled);
    if (isLast) this.#queues.leave(group, polled.pollOwner);
    if (!was || group.members.size > 0) return;
    this.#groups.delete(group.key);
    this.#queues.remove(group);
    this.alarms.clear(group);
    group.pace.leftAt = this.#clock.now();
    this.#paces.set(group.key, group.pace);
  }

  #paceOf(key: string, now: number): Pace {
    const known = this.#paces.get(key);
    this.#paces.delete(key);
    return known === undefined || now - known.leftAt > REMEMBERED.ms ? new Pace(now) : known;
  }

  #takeHint(group: PollGroup): boolean {
    if (!group.pace.takeHint(this.#clock.now())) return false;
    group.lags = 0;
    this.#readAtOnce(group);
    return true;
  }

  #readAtOnce(group: PollGroup): void {
    this.#queues.remove(group);
    this.alarms.clear(group);
    this.#count();
    const owner = this.#queues.ownerAtOnce(group);
    if (owner === undefined) {
      this.#line(group, 'hinted');
      return;
    }
    this.#allowed = Math.max(-this.#perSecond, this.#allowed - 1);
    this.#queues.begin(owner);
    void this.#read(group, owner);
  }

  #line(group: PollGroup, way: 'hinted' | 'due' = 'due'): void {
    this.#queues.add(group, way);
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
    while (this.#allowed >= 1) {
      const next = this.#queues.take();
      if (next === undefined) return;
      this.#allowed -= 1;
      void this.#read(next.group, next.owner);
    }
    if (!this.#queues.isReady) return;
    const wait = Math.ceil(((1 - this.#allowed) / this.#perSecond) * 1_000);
    this.alarms.set(this.#wake, this.#clock.now() + wait);
  }

  /** Reads as each member in turn, so that each credential is asked about now and then. */
  async #read(group: PollGroup, owner: string): Promise<void> {
    const present = [...group.members];
    const reader = group.takeReader();
    if (reader === undefined) {
      this.#queues.end(owner);
      return;
    }
    group.isReading = true;
    let transaction: Transaction | null;
    try {
      transaction = await reader.read();
    } catch (error) {
      this.#end(group, owner);
      if (reader.pollFailed(error)) {
        this.#stepOn(group, false);
        return;
      }
      this.remove(reader);
      // Another's credential may still be good.
      if (group.members.size > 0) this.#line(group);
      return;
    }
    this.#end(group, owner);
    let isNews = false;
    // A member that joined meanwhile has read it later than this.
    for (const member of present) {
      if (group.members.has(member)) isNews = member.takePoll(transaction, member === reader) || isNews;
    }
    this.#stepOn(group, isNews);
  }

  /** A reading is over: another of its owner's may begin. */
  #end(group: PollGroup, owner: string): void {
    group.isReading = false;
    this.#queues.end(owner);
    this.#pump();
  }

  #stepOn(group: PollGroup, isNews: boolean): void {
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
