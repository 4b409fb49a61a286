import { clock, type Timer } from './clock.ts';
import type { Party, Requester, Waiter } from './party.ts';
import type { Full } from './refusals.ts';
import { URGENCIES, type Urgency } from './turns.ts';

/** A call that waits for a seat, in the queue of its caller. */
interface Stand {
  readonly waiter: Waiter;
  readonly enter: () => void;
}

/** Queues that wait for a seat, in the order of their turns. Queues with nothing under way come first. */
class WaitingList<T extends { readonly underWay: number }> {
  // Most queues live as long as one operation, and nothing waits in them. They need no sets.
  #idle: Set<T> | undefined;
  #busy: Set<T> | undefined;

  get first(): T | undefined {
    const waiting = this.#idle !== undefined && this.#idle.size > 0 ? this.#idle : this.#busy;
    return waiting?.values().next().value;
  }

  /** Notes if a queue waits for a seat that it may take. A queue that already waited keeps its turn. */
  note(one: T, waits: boolean): void {
    if (!waits) {
      this.pass(one);
    } else if (one.underWay === 0) {
      this.#busy?.delete(one);
      this.#idle ??= new Set();
      this.#idle.add(one);
    } else {
      this.#idle?.delete(one);
      this.#busy ??= new Set();
      this.#busy.add(one);
    }
  }

  /** Moves a queue that has had its turn behind the others. */
  pass(one: T): void {
    this.#idle?.delete(one);
    this.#busy?.delete(one);
  }
}

/** How many urgent calls of one caller go first before a less urgent one of the same caller gets a turn. */
const PRESSING_AT_ONCE = 3;

/** One caller. */
class CallerQueue {
  readonly key: string;
  /** How many of its calls are under way. */
  underWay = 0;
  /** How many of its calls wait. */
  waiting = 0;
  /** Its waiting calls, by urgency. */
  readonly #lines: Partial<Record<Urgency, Set<Stand>>> = {};
  #passedOver = 0;

  constructor(key: string) {
    this.key = key;
  }

  add(stand: Stand): void {
    const { urgency } = stand.waiter;
    this.#lines[urgency] ??= new Set();
    this.#lines[urgency].add(stand);
    this.waiting += 1;
  }

  remove(stand: Stand): void {
    if (this.#lines[stand.waiter.urgency]?.delete(stand) === true) this.waiting -= 1;
  }

  /**
   * Returns the call whose turn it is: the most urgent one, and now and then the least urgent, so that none waits for ever.
   */
  next(): Stand | undefined {
    const lines = URGENCIES.flatMap((urgency) => {
      const line = this.#lines[urgency];
      return line === undefined || line.size === 0 ? [] : [line];
    });
    const isOneLine = lines.length < 2;
    const isLeast = !isOneLine && this.#passedOver >= PRESSING_AT_ONCE;
    this.#passedOver = isOneLine || isLeast ? 0 : this.#passedOver + 1;
    const [stand] = lines.at(isLeast ? -1 : 0) ?? [];
    return stand;
  }
}

/** The callers that share the seats of one group (party.ts, `Requester`). */
class Group {
  readonly key: string;
  underWay = 0;
  readonly callers = new Map<string, CallerQueue>();
  readonly waiting = new WaitingList<CallerQueue>();

  constructor(key: string) {
    this.key = key;
  }

  queueOf(key: string): CallerQueue {
    let queue = this.callers.get(key);
    if (queue === undefined) {
      queue = new CallerQueue(key);
      this.callers.set(key, queue);
    }
    return queue;
  }
}

/** What part of the shared seats one group may have. The rest stays free for others while its calls hang. */
export const SHARE_OF_GROUP = 0.75;

export interface FairQueueOptions {
  /** How many calls may be under way at once, of all callers together. */
  readonly total: number;
  /** How many calls of one caller. */
  readonly perCaller: number;
  /** How many calls of all callers of one group. */
  readonly perGroup: number;
  /** Called with how many calls wait, when that changes. */
  readonly onWaiting?: ((count: number) => void) | undefined;
}

/**
 * Gives a bounded number of seats to calls, fairly between groups of callers, and within each group between its callers. Each group
 * and each caller has a limit. When no seat is free, a caller with nothing under way comes before a caller with something under
 * way, and those with something under way take turns. The calls of one caller go by urgency, then in the order in which they came.
 *
 * A call that several callers wait for (a {@link Party}) stands in the queue of each of them, and starts at the first turn of any.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #groups = new Map<string, Group>();
  readonly #waitingGroups = new WaitingList<Group>();
  #underWay = 0;
  #waiting = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** How many calls wait, of all callers. */
  get waiting(): number {
    return this.#waiting;
  }

  /** How many calls of one caller wait. */
  waitingOf({ group, caller }: Requester): number {
    return this.#groups.get(group)?.callers.get(caller)?.waiting ?? 0;
  }

  /** Whose seats are all taken, where a requester finds none. */
  fullFor({ group: key, caller }: Requester): Exclude<Full, 'queue'> {
    const { perCaller, perGroup } = this.#options;
    const group = this.#groups.get(key);
    if ((group?.callers.get(caller)?.underWay ?? 0) >= perCaller) return 'caller';
    return (group?.underWay ?? 0) >= perGroup ? 'group' : 'process';
  }

  /** Takes a seat, if there is one at once. Its holder gives it back with `leave`. */
  tryEnter(requester: Requester): boolean {
    const { total, perCaller, perGroup } = this.#options;
    if (this.#underWay >= total) return false;
    const group = this.#group(requester.group);
    if (group.underWay >= perGroup) return false;
    const queue = group.queueOf(requester.caller);
    if (queue.underWay >= perCaller) return false;
    queue.underWay += 1;
    group.underWay += 1;
    this.#underWay += 1;
    return true;
  }

  /**
   * Waits for a seat for all waiters of a party, each until its own deadline.
   *
   * @returns the requester whose seat it is; undefined if nobody waits any more.
   */
  enter(party: Party): Promise<Requester | undefined> {
    return new Promise((resolve) => {
      const stands = new Map<Waiter, { readonly stand: Stand; readonly timer: Timer }>();
      const finish = (requester: Requester | undefined): void => {
        unwatch();
        for (const waiter of stands.keys()) remove(waiter);
        this.#count(-1);
        resolve(requester);
      };
      const remove = (waiter: Waiter): boolean => {
        const held = stands.get(waiter);
        if (held === undefined) return false;
        clock.clearTimeout(held.timer);
        stands.delete(waiter);
        this.#change(waiter.requester, (queue) => queue.remove(held.stand));
        return true;
      };
      const leave = (waiter: Waiter): void => {
        if (remove(waiter) && stands.size === 0) finish(undefined);
      };
      const join = (waiter: Waiter): void => {
        const stand = { waiter, enter: () => finish(waiter.requester) };
        stands.set(waiter, { stand, timer: clock.setTimeout(leave, waiter.deadline - clock.now(), waiter) });
        this.#change(waiter.requester, (queue) => queue.add(stand));
      };
      this.#count(1);
      const unwatch = party.watch({
        joined: (waiter) => {
          join(waiter);
          this.#letIn();
        },
        left: leave,
      });
      for (const waiter of party.waiters) join(waiter);
      if (stands.size === 0) finish(undefined);
      this.#letIn();
    });
  }

  /** Gives back a seat. */
  leave(requester: Requester): void {
    this.#underWay -= 1;
    const group = this.#group(requester.group);
    group.underWay -= 1;
    const queue = group.queueOf(requester.caller);
    queue.underWay -= 1;
    this.#reorder(group, queue);
    if (this.#waiting > 0) this.#letIn();
  }

  /** Hands on a seat that is taken, also where its new holder has as many as it may: what it was taken for is under way. */
  move(from: Requester, to: Requester): void {
    if (from.group === to.group && from.caller === to.caller) return;
    this.#underWay += 1;
    const group = this.#group(to.group);
    group.underWay += 1;
    const queue = group.queueOf(to.caller);
    queue.underWay += 1;
    this.#reorder(group, queue);
    this.leave(from);
  }

  #group(key: string): Group {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new Group(key);
      this.#groups.set(key, group);
    }
    return group;
  }

  #letIn(): void {
    while (this.#underWay < this.#options.total) {
      const group = this.#waitingGroups.first;
      const queue = group?.waiting.first;
      const stand = queue?.next();
      if (group === undefined || queue === undefined || stand === undefined) return;
      queue.underWay += 1;
      group.underWay += 1;
      this.#underWay += 1;
      group.waiting.pass(queue);
      this.#waitingGroups.pass(group);
      stand.enter();
    }
  }

  /** Changes a caller's queue. */
  #change(requester: Requester, change: (queue: CallerQueue) => void): void {
    const group = this.#group(requester.group);
    const queue = group.queueOf(requester.caller);
    change(queue);
    this.#reorder(group, queue);
  }

  /** Updates the places of a queue that has changed, and of its group, among those that wait. */
  #reorder(group: Group, queue: CallerQueue): void {
    const { perCaller, perGroup } = this.#options;
    group.waiting.note(queue, queue.waiting > 0 && queue.underWay < perCaller);
    if (queue.underWay === 0 && queue.waiting === 0) group.callers.delete(queue.key);
    this.#waitingGroups.note(group, group.waiting.first !== undefined && group.underWay < perGroup);
    if (group.callers.size === 0) this.#groups.delete(group.key);
  }

  #count(by: number): void {
    this.#waiting += by;
    this.#options.onWaiting?.(this.#waiting);
  }
}
