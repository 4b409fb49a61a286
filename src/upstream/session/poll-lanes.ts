import type { PollGroup } from './poll-group.ts';

/** The groups of one owner that wait. */
interface Lane {
  readonly owner: string;
  /** How many readings of its own are under way. */
  underWay: number;
  /** Groups that a message has hinted at, and groups that are due by their schedule; each in the order in which they began to wait. */
  readonly hinted: Set<PollGroup>;
  readonly due: Set<PollGroup>;
}

/**
 * The groups to be read, in a lane for each owner. Lanes take turns, so that no owner waits for all groups of another; a group of several
 * owners stands in the lane of each. In a lane the hinted groups go first, then the one that has waited longest.
 */
export class PollLanes {
  readonly #perOwner: number;
  readonly #lanes = new Map<string, Lane>();
  /** Why each group waits. */
  readonly #waiting = new Map<PollGroup, 'hinted' | 'due'>();

  /** @param perOwner how many readings of one owner may be under way. */
  constructor(perOwner: number) {
    this.#perOwner = perOwner;
  }

  /** Whether something waits that could be taken now. */
  get isReady(): boolean {
    return this.#lanes.values().some((lane) => this.#isReady(lane));
  }

  add(group: PollGroup, way: 'hinted' | 'due'): void {
    this.remove(group);
    this.#waiting.set(group, way);
    for (const owner of group.owners) this.#lane(owner)[way].add(group);
  }

  /** Takes a group out of all lanes. */
  remove(group: PollGroup): void {
    if (!this.#waiting.delete(group)) return;
    for (const owner of group.owners) this.#drop(owner, group);
  }

  /** Puts a group that waits into the lane of one more owner. */
  join(group: PollGroup, owner: string): void {
    const way = this.#waiting.get(group);
    if (way !== undefined) this.#lane(owner)[way].add(group);
  }

  /** Takes a group out of the lane of one owner. */
  leave(group: PollGroup, owner: string): void {
    this.#drop(owner, group);
  }

  /** Takes the next group out, and counts it as its owner's reading under way until `end`. */
  take(): { readonly group: PollGroup; readonly owner: string } | undefined {
    const lane = this.#lanes.values().find((one) => this.#isReady(one));
    const [group] = lane === undefined ? [] : lane.hinted.size > 0 ? lane.hinted : lane.due;
    if (lane === undefined || group === undefined) return undefined;
    this.begin(lane.owner);
    this.remove(group);
    // The others come first now.
    this.#lanes.delete(lane.owner);
    this.#lanes.set(lane.owner, lane);
    return { group, owner: lane.owner };
  }

  /** The owner whose reading of it may begin at once, out of turn; undefined where other owners wait, or its owners have enough under way. */
  ownerAtOnce(group: PollGroup): string | undefined {
    const owners = new Set(group.owners);
    const isOthers = (lane: Lane): boolean => !owners.has(lane.owner) && this.#isReady(lane);
    if (this.#waiting.size > 0 && this.#lanes.values().some(isOthers)) return undefined;
    return owners.values().find((owner) => (this.#lanes.get(owner)?.underWay ?? 0) < this.#perOwner);
  }

  /** Counts a reading that begins. */
  begin(owner: string): void {
    this.#lane(owner).underWay += 1;
  }

  end(owner: string): void {
    const lane = this.#lane(owner);
    lane.underWay -= 1;
    this.#tidy(lane);
  }

  #isReady({ underWay, hinted, due }: Lane): boolean {
    return underWay < this.#perOwner && hinted.size + due.size > 0;
  }

  #lane(owner: string): Lane {
    let lane = this.#lanes.get(owner);
    if (lane === undefined) {
      lane = { owner, underWay: 0, hinted: new Set(), due: new Set() };
      this.#lanes.set(owner, lane);
    }
    return lane;
  }

  #drop(owner: string, group: PollGroup): void {
    const lane = this.#lanes.get(owner);
    if (lane === undefined) return;
    lane.hinted.delete(group);
    lane.due.delete(group);
    this.#tidy(lane);
  }

  #tidy({ owner, underWay, hinted, due }: Lane): void {
    if (underWay === 0 && hinted.size + due.size === 0) this.#lanes.delete(owner);
  }
}
