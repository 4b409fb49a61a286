import { type AlarmClock, Alarms, CallAlarm } from '../../common/alarms.ts';
import { Lru } from '../../common/lru.ts';
import type { Transaction } from '../transactions.ts';
import { PollQueues } from './poll-queues.ts';
import { Pace, type Polled, SharedPoll } from './shared-poll.ts';

export type { Polled, Schedule } from './shared-poll.ts';

/**
 * After a hint whose reading showed nothing new, the waits before the next readings, in milliseconds: the service's reads may
 * lag behind its messages.
 */
const HINT_LAGS = [1_000, 3_000];
/**
 * How long the pace of a transaction is remembered after all watchers have left, in milliseconds, and of how many
 * transactions.
 */
const REMEMBERED = { ms: 1_800_000, max: 20_000 };
/** How many readings of one requester may be under way, so that readings that hang do not use up the rate. */
const UNDER_WAY = 16;

/**
 * Reads transactions again, each on its schedule, so that a lost webhook delays an answer and never loses it. Watchers with
 * the same `pollKey` share a reading. All readings of the schedule together keep to a rate. Beyond it they wait in a queue for each
 * requester, and the requesters take turns. A transaction that a message hints at is read at once. That reading counts for
 * the rate, and waits only if other requesters wait for the rate, or if enough readings of its own requester are under way.
 */
export class Polls {
  /** The timers that all waits for transactions share. */
  readonly alarms: Alarms;
  readonly #clock: AlarmClock;
  readonly #perSecond: number;
  readonly #polls = new Map<string, SharedPoll>();
  /** The paces of transactions for which nobody waits any more. */
  readonly #paces = new Lru<Pace>(REMEMBERED.max);
  /** The polls whose time has come. */
  readonly #queues = new PollQueues(UNDER_WAY);
  readonly #wake = new CallAlarm(() => this.#pump());
  /** How many readings may be made now, as of when that was counted. Below zero if hints have used up later readings. */
  #allowed: number;
  #countedAt: number;

  /** @param perSecond how many readings of the schedule are made in a second, at most. */
  constructor(clock: AlarmClock, perSecond: number) {
    this.alarms = new Alarms(clock);
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#allowed = perSecond;
    this.#countedAt = clock.now();
  }

  /** How many readings wait whose time has come. */
  get waiting(): number {
    return this.#queues.size;
  }

  /**
   * Begins to read the watcher's transaction again. The watcher has just read it, so if it joins others it waits for their
   * next reading.
   */
  add(polled: Polled): void {
    let poll = this.#polls.get(polled.pollKey);
    if (poll === undefined) {
      const now = this.#clock.now();
      poll = new SharedPoll(polled.pollKey, polled.schedule, this.#paceOf(polled.pollKey, now), (due) => {
        if (due.lags === undefined) this.#line(due);
        else this.#readAtOnce(due);
      });
      this.#polls.set(polled.pollKey, poll);
      this.alarms.set(poll, poll.nextDue(now));
    }
    if (poll.add(polled)) this.#queues.join(poll, polled.pollRequester);
  }

  /** Puts off the next reading by a whole wait, because a message has brought the state. */
  putOff(polled: Polled): void {
    const poll = this.#polls.get(polled.pollKey);
    if (poll === undefined || poll.isReading) return;
    this.#queues.remove(poll);
    this.alarms.set(poll, poll.putOff(this.#clock.now()));
  }

  /**
   * Reads the transaction at once, because a message hints that its state may have changed; and again soon while that shows
   * nothing new. The next reading of the schedule keeps its time, unless that comes before these have ended: then one of these stands for
   * it. After a number of hints the schedule alone decides.
   *
   * @param messageId the same for one message alone: that is one hint to all that share a reading. Undefined for a hint to this watcher
   * alone.
   */
  hint(polled: Polled, messageId?: string): void {
    const poll = this.#polls.get(polled.pollKey);
    if (poll === undefined || (messageId !== undefined && poll.hintedBy === messageId)) return;
    poll.hintedBy = messageId;
    // A reading under way may have begun before the change.
    if (poll.isReading) poll.isHinted = true;
    else this.#takeHint(poll);
  }

  remove(polled: Polled): void {
    const poll = this.#polls.get(polled.pollKey);
    if (poll === undefined) return;
    const { was, isLast } = poll.remove(polled);
    if (isLast) this.#queues.leave(poll, polled.pollRequester);
    if (!was || poll.watchers.size > 0) return;
    this.#polls.delete(poll.key);
    this.#queues.remove(poll);
    this.alarms.clear(poll);
    poll.pace.leftAt = this.#clock.now();
    this.#paces.set(poll.key, poll.pace);
  }

  #paceOf(key: string, now: number): Pace {
    const known = this.#paces.get(key);
    this.#paces.delete(key);
    return known === undefined || now - known.leftAt > REMEMBERED.ms ? new Pace(now) : known;
  }

  #takeHint(poll: SharedPoll): boolean {
    if (!poll.pace.takeHint(this.#clock.now())) return false;
    poll.lags = 0;
    this.#readAtOnce(poll);
    return true;
  }

  #readAtOnce(poll: SharedPoll): void {
    this.alarms.clear(poll);
    this.#count();
    const requester = this.#queues.requesterAtOnce(poll);
    if (requester === undefined) {
      this.#line(poll, 'hinted');
      return;
    }
    this.#queues.remove(poll);
    this.#allowed = Math.max(-this.#perSecond, this.#allowed - 1);
    this.#queues.begin(requester);
    void this.#read(poll, requester);
  }

  #line(poll: SharedPoll, way: 'hinted' | 'due' = 'due'): void {
    this.#queues.add(poll, way);
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
      void this.#read(next.poll, next.requester);
    }
    if (!this.#queues.isReady) return;
    const wait = Math.ceil(((1 - this.#allowed) / this.#perSecond) * 1_000);
    this.alarms.set(this.#wake, this.#clock.now() + wait);
  }

  /** Reads under each watcher's credential in turn: with n watchers, each credential is checked at every n-th reading. */
  async #read(poll: SharedPoll, requester: string): Promise<void> {
    const present = [...poll.watchers];
    const reader = poll.takeReader();
    if (reader === undefined) {
      this.#queues.end(requester);
      return;
    }
    poll.isReading = true;
    let transaction: Transaction | null;
    try {
      transaction = await reader.read();
    } catch (error) {
      poll.isReading = false;
      this.#end(requester);
      // A reading whose reader has left ends without an answer, which says nothing of the service.
      if (poll.watchers.has(reader) && reader.pollFailed(error)) {
        this.#stepOn(poll, false);
        return;
      }
      this.remove(reader);
      // The next reading is made under another watcher's credential, which may still be valid.
      if (poll.watchers.size > 0) this.#line(poll);
      return;
    }
    this.#end(requester);
    let isNews = false;
    // Watchers that joined meanwhile are left out: they have read a later state.
    for (const watcher of present) {
      if (poll.watchers.has(watcher)) isNews = watcher.takePoll(transaction, watcher === reader) || isNews;
    }
    // Not before: a watcher may take a hint from the reading, which is for the next one.
    poll.isReading = false;
    this.#stepOn(poll, isNews);
  }

  /** Ends a reading, so that another of its requester's may begin. */
  #end(requester: string): void {
    this.#queues.end(requester);
    this.#pump();
  }

  #stepOn(poll: SharedPoll, isNews: boolean): void {
    const { isHinted } = poll;
    const now = this.#clock.now();
    const due = poll.nextDue(now);
    poll.isHinted = false;
    if (poll.watchers.size === 0 || (isHinted && this.#takeHint(poll))) return;
    const lag = poll.lags === undefined || isNews ? undefined : HINT_LAGS[poll.lags];
    if (poll.lags !== undefined && lag !== undefined && poll.pace.takeHint(now)) {
      poll.lags += 1;
      this.alarms.set(poll, now + lag);
      return;
    }
    poll.lags = undefined;
    this.alarms.set(poll, due);
  }
}
