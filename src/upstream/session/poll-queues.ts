import type { SharedPoll } from './shared-poll.ts';

/** The waiting polls of one requester. */
interface RequesterQueue {
  readonly requester: string;
  /** How many readings of its own are under way. */
  underWay: number;
  /**
   * Polls that a message has hinted at, and polls that are due by their schedule, each in the order in which they began to
   * wait.
   */
  readonly hinted: Set<SharedPoll>;
  readonly due: Set<SharedPoll>;
}

/**
 * The polls to be read, in a queue for each requester. The requesters take turns, so that no requester waits for all polls of another; a poll of several
 * requesters stands in the queue of each. In a queue the hinted polls go first, then the one that has waited longest.
 */
export class PollQueues {
  readonly #perRequester: number;
  readonly #queues = new Map<string, RequesterQueue>();
  /** By waiting poll: whether it was hinted at or is due. */
  readonly #waiting = new Map<SharedPoll, 'hinted' | 'due'>();

  /** @param perRequester how many readings of one requester may be under way. */
  constructor(perRequester: number) {
    this.#perRequester = perRequester;
  }

  /** How many polls wait. One of several requesters counts once. */
  get size(): number {
    return this.#waiting.size;
  }

  /** True if a waiting poll could be taken now. */
  get isReady(): boolean {
    return this.#queues.values().some((queue) => this.#isReady(queue));
  }

  /** Has a poll wait. One that waits already changes its way alone: its requesters keep their turns. */
  add(poll: SharedPoll, way: 'hinted' | 'due'): void {
    const before = this.#waiting.get(poll);
    this.#waiting.set(poll, way);
    for (const requester of poll.requesters) {
      const queue = this.#queueOf(requester);
      queue[way].add(poll);
      if (before !== undefined && before !== way) queue[before].delete(poll);
    }
  }

  /** Takes a poll out of all queues. */
  remove(poll: SharedPoll): void {
    if (!this.#waiting.delete(poll)) return;
    for (const requester of poll.requesters) this.#drop(requester, poll);
  }

  /** Puts a waiting poll into the queue of one more requester. */
  join(poll: SharedPoll, requester: string): void {
    const way = this.#waiting.get(poll);
    if (way !== undefined) this.#queueOf(requester)[way].add(poll);
  }

  /** Takes a poll out of the queue of one requester. */
  leave(poll: SharedPoll, requester: string): void {
    this.#drop(requester, poll);
  }

  /** Takes out the next poll, and counts it as a reading under way of its requester until `end`. */
  take(): { readonly poll: SharedPoll; readonly requester: string } | undefined {
    const queue = this.#queues.values().find((one) => this.#isReady(one));
    const [poll] = queue === undefined ? [] : queue.hinted.size > 0 ? queue.hinted : queue.due;
    if (queue === undefined || poll === undefined) return undefined;
    this.begin(queue.requester);
    this.remove(poll);
    // Moves the requester behind the others.
    this.#queues.delete(queue.requester);
    this.#queues.set(queue.requester, queue);
    return { poll, requester: queue.requester };
  }

  /**
   * Returns the requester whose reading of the poll may begin at once, out of turn; undefined if other requesters wait, or if
   * its requesters have enough readings under way.
   */
  requesterAtOnce(poll: SharedPoll): string | undefined {
    const requesters = new Set(poll.requesters);
    const isOthers = (queue: RequesterQueue): boolean =>
      !requesters.has(queue.requester) && this.#isReady(queue);
    if (this.#waiting.size > 0 && this.#queues.values().some(isOthers)) return undefined;
    return requesters
      .values()
      .find((requester) => (this.#queues.get(requester)?.underWay ?? 0) < this.#perRequester);
  }

  /** Counts a reading that begins. */
  begin(requester: string): void {
    this.#queueOf(requester).underWay += 1;
  }

  end(requester: string): void {
    const queue = this.#queueOf(requester);
    queue.underWay -= 1;
    this.#tidy(queue);
  }

  #isReady({ underWay, hinted, due }: RequesterQueue): boolean {
    return underWay < this.#perRequester && hinted.size + due.size > 0;
  }

  #queueOf(requester: string): RequesterQueue {
    let queue = this.#queues.get(requester);
    if (queue === undefined) {
      queue = { requester, underWay: 0, hinted: new Set(), due: new Set() };
      this.#queues.set(requester, queue);
    }
    return queue;
  }

  #drop(requester: string, poll: SharedPoll): void {
    const queue = this.#queues.get(requester);
    if (queue === undefined) return;
    queue.hinted.delete(poll);
    queue.due.delete(poll);
    this.#tidy(queue);
  }

  #tidy({ requester, underWay, hinted, due }: RequesterQueue): void {
    if (underWay === 0 && hinted.size + due.size === 0) this.#queues.delete(requester);
  }
}
