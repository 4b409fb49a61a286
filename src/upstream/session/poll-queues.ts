import type { PollGroup } from './poll-group.ts';

/** The groups of one owner that wait. */
interface OwnerQueue {
  readonly owner: string;
  /** How many readings of its own are under way. */
  underWay: number;
  /** Groups that a message has hinted at, and groups that are due by their schedule; each in the order in which they began to wait. */
  readonly hinted: Set<PollGroup>;
  readonly due: Set<PollGroup>;
}

/**
 * The groups to be read, in a queue for each owner. The owners take turns, so that no owner waits for all groups of another; a group of several
 * owners stands in the queue of each. In a queue the hinted groups go first, then the one that has waited longest.
 */
export class PollQueues {
  readonly #perOwner: number;
  readonly #queues = new Map<string, OwnerQueue>();
  /** Why each group waits. */
  readonly #waiting = new Map<PollGroup, 'hinted' | 'due'>();

  /** @param perOwner how many readings of one owner may be under way. */
  constructor(perOwner: number) {
    this.#perOwner = perOwner;
  }

  /** Whether something waits that could be taken now. */
  get isReady(): boolean {
    return this.#queues.values().some((queue) => this.#isReady(queue));
  }

  add(group: PollGroup, way: 'hinted' | 'due'): void {
    this.remove(group);
    this.#waiting.set(group, way);
    for (const owner of group.owners) this.#queueOf(owner)[way].add(group);
  }

  /** Takes a group out of all queues. */
  remove(group: PollGroup): void {
    if (!this.#waiting.delete(group)) return;
    for (const owner of group.owners) this.#drop(owner, group);
  }

  /** Puts a group that waits into the queue of one more owner. */
  join(group: PollGroup, owner: string): void {
    const way = this.#waiting.get(group);
    if (way !== undefined) this.#queueOf(owner)[way].add(group);
  }

  /** Takes a group out of the queue of one owner. */
  leave(group: PollGroup, owner: string): void {
    this.#drop(owner, group);
  }

  /** Takes the next group out, and counts it as its owner's reading under way until `end`. */
  take(): { readonly group: PollGroup; readonly owner: string } | undefined {
    const queue = this.#queues.values().find((one) => this.#isReady(one));
    const [group] = queue === undefined ? [] : queue.hinted.size > 0 ? queue.hinted : queue.due;
    if (queue === undefined || group === undefined) return undefined;
    this.begin(queue.owner);
    this.remove(group);
    // The others come first now.
    this.#queues.delete(queue.owner);
    this.#queues.set(queue.owner, queue);
    return { group, owner: queue.owner };
  }

  /** The owner whose reading of it may begin at once, out of turn; undefined where other owners wait, or its owners have enough under way. */
  ownerAtOnce(group: PollGroup): string | undefined {
    const owners = new Set(group.owners);
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

  #drop(owner: string, group: PollGroup): void {
    const queue = this.#queues.get(owner);
    if (queue === undefined) return;
    queue.hinted.delete(group);
    queue.due.delete(group);
    this.#tidy(queue);
  }

  #tidy({ owner, underWay, hinted, due }: OwnerQueue): void {
    if (underWay === 0 && hinted.size + due.size === 0) this.#queues.delete(owner);
  }
}
