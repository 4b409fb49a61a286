import type { SharedPoll } from './shared-poll.ts';

/** The polls of one owner that wait. */
interface OwnerQueue {
  readonly owner: string;
  /** How many readings of its own are under way. */
  underWay: number;
  /** Polls that a message has hinted at, and polls that are due by their schedule; each in the order in which they began to wait. */
  readonly hinted: Set<SharedPoll>;
  readonly due: Set<SharedPoll>;
}

/**
 * The polls to be read, in a queue for each owner. The owners take turns, so that no owner waits for all polls of another; a poll of several
 * owners stands in the queue of each. In a queue the hinted polls go first, then the one that has waited longest.
 */
export class PollQueues {
  readonly #perOwner: number;
  readonly #queues = new Map<string, OwnerQueue>();
  /** Why each poll waits. */
  readonly #waiting = new Map<SharedPoll, 'hinted' | 'due'>();

  /** @param perOwner how many readings of one owner may be under way. */
  constructor(perOwner: number) {
    this.#perOwner = perOwner;
  }

  /** Whether something waits that could be taken now. */
  get isReady(): boolean {
    return this.#queues.values().some((queue) => this.#isReady(queue));
  }

  add(poll: SharedPoll, way: 'hinted' | 'due'): void {
    this.remove(poll);
    this.#waiting.set(poll, way);
    for (const owner of poll.owners) this.#queueOf(owner)[way].add(poll);
  }

  /** Takes a poll out of all queues. */
  remove(poll: SharedPoll): void {
    if (!this.#waiting.delete(poll)) return;
    for (const owner of poll.owners) this.#drop(owner, poll);
  }

  /** Puts a poll that waits into the queue of one more owner. */
  join(poll: SharedPoll, owner: string): void {
    const way = this.#waiting.get(poll);
    if (way !== undefined) this.#queueOf(owner)[way].add(poll);
  }

  /** Takes a poll out of the queue of one owner. */
  leave(poll: SharedPoll, owner: string): void {
    this.#drop(owner, poll);
  }

  /** Takes the next poll out, and counts it as its owner's reading under way until `end`. */
  take(): { readonly poll: SharedPoll; readonly owner: string } | undefined {
    const queue = this.#queues.values().find((one) => this.#isReady(one));
    const [poll] = queue === undefined ? [] : queue.hinted.size > 0 ? queue.hinted : queue.due;
    if (queue === undefined || poll === undefined) return undefined;
    this.begin(queue.owner);
    this.remove(poll);
    // The others come first now.
    this.#queues.delete(queue.owner);
    this.#queues.set(queue.owner, queue);
    return { poll, owner: queue.owner };
  }

  /** The owner whose reading of it may begin at once, out of turn; undefined where other owners wait, or its owners have enough under way. */
  ownerAtOnce(poll: SharedPoll): string | undefined {
    const owners = new Set(poll.owners);
    const isOthers = (queue: OwnerQueue): boolean => !owners.has(queue.owner) && this.#isReady(queue);
    if (this.#waiting.size > 0 && this.#queues.values().some(isOthers)) return undefined;
    return owners.values().find((owner) => (this.#queues.get(owner)?.underWay ?? 0) < this.#perOwner);
  }

  /** Counts a reading that begins. */
  begin(owner: string): void {
    this.#queueOf(owner).underWay += 1;
  }

  end(owner: string): void {
    const queue = this.#queueOf(owner);
    queue.underWay -= 1;
    this.#tidy(queue);
  }

  #isReady({ underWay, hinted, due }: OwnerQueue): boolean {
    return underWay < this.#perOwner && hinted.size + due.size > 0;
  }

  #queueOf(owner: string): OwnerQueue {
    let queue = this.#queues.get(owner);
    if (queue === undefined) {
      queue = { owner, underWay: 0, hinted: new Set(), due: new Set() };
      this.#queues.set(owner, queue);
    }
    return queue;
  }

  #drop(owner: string, poll: SharedPoll): void {
    const queue = this.#queues.get(owner);
    if (queue === undefined) return;
    queue.hinted.delete(poll);
    queue.due.delete(poll);
    this.#tidy(queue);
  }

  #tidy({ owner, underWay, hinted, due }: OwnerQueue): void {
    if (underWay === 0 && hinted.size + due.size === 0) this.#queues.delete(owner);
  }
}
