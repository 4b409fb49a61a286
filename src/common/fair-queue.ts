/** What a queue needs to know of one caller: those with the same key share what one caller may have. */
interface Lane {
  readonly key: string;
  /** How many of its own are under way. */
  underWay: number;
  /** Those that wait; undefined where none has. */
  waiting: Set<Waiter> | undefined;
}

interface Waiter {
  readonly enter: (entered: boolean) => void;
}

export interface FairQueueOptions {
  /** How many may be under way at once, of all callers together. */
  readonly total: number;
  /** How many of one caller. */
  readonly perCaller: number;
  /** Told of how many wait, when that changes. */
  readonly onWaiting?: ((count: number) => void) | undefined;
}

/**
 * Lets a bounded number of things be under way at once, fairly between callers: each may have so many and no more, and where
 * there is no room left, a caller that has nothing under way comes before one that has, and those that have take turns.
 * What one caller asks for goes on in the order in which it asked.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #lanes = new Map<string, Lane>();
  /** Lanes that wait for room in the whole: those with nothing under way, and those with some. */
  readonly #idle = new Set<Lane>();
  readonly #busy = new Set<Lane>();
  #underWay = 0;
  #waiting = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** How many wait, of all callers. */
  get waiting(): number {
    return this.#waiting;
  }

  /** How many of one caller wait. */
  waitingOf(key: string): number {
    return this.#lanes.get(key)?.waiting?.size ?? 0;
  }

  /** Takes a place, if there is one at once. Its holder gives it back with `leave`. */
  tryEnter(key: string): boolean {
    const lane = this.#lanes.get(key);
    if (this.#underWay >= this.#options.total) return false;
    if (lane === undefined) {
      this.#lanes.set(key, { key, underWay: 1, waiting: undefined });
    } else {
      if (lane.underWay >= this.#options.perCaller) return false;
      lane.underWay += 1;
    }
    this.#underWay += 1;
    return true;
  }

  /**
   * Waits for a place.
   *
   * @param timeoutMs how long at most.
   * @param signal ends the wait.
   * @returns whether there is one now; false when the wait has ended without.
   */
  enter(key: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    if (signal?.aborted) return Promise.resolve(false);
    const lane = this.#lanes.get(key) ?? { key, underWay: 0, waiting: undefined };
    this.#lanes.set(key, lane);
    lane.waiting ??= new Set();
    const { waiting } = lane;
    return new Promise((resolve) => {
      const settle = (entered: boolean): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
        resolve(entered);
      };
      const waiter: Waiter = { enter: settle };
      const giveUp = (): void => {
        if (!waiting.delete(waiter)) return;
        this.#count(-1);
        this.#place(lane);
        settle(false);
      };
      const timer = setTimeout(giveUp, timeoutMs);
      signal?.addEventListener('abort', giveUp, { once: true });
      waiting.add(waiter);
      this.#count(1);
      this.#place(lane);
      this.#letIn();
    });
  }

  /** Gives back a place. */
  leave(key: string): void {
    const lane = this.#lanes.get(key);
    if (lane === undefined) return;
    lane.underWay -= 1;
    this.#underWay -= 1;
    if (this.#waiting === 0) {
      if (lane.underWay === 0) this.#lanes.delete(key);
      return;
    }
    this.#place(lane);
    this.#letIn();
  }

  #letIn(): void {
    while (this.#underWay < this.#options.total) {
      const [lane] = this.#idle.size > 0 ? this.#idle : this.#busy;
      const [waiter] = lane?.waiting ?? [];
      if (lane?.waiting === undefined || waiter === undefined) return;
      lane.waiting.delete(waiter);
      lane.underWay += 1;
      this.#underWay += 1;
      this.#count(-1);
      this.#place(lane);
      waiter.enter(true);
    }
  }

  /** Puts a lane where it belongs, behind the others there. */
  #place(lane: Lane): void {
    this.#idle.delete(lane);
    this.#busy.delete(lane);
    if (lane.waiting === undefined || lane.waiting.size === 0) {
      if (lane.underWay === 0) this.#lanes.delete(lane.key);
    } else if (lane.underWay < this.#options.perCaller) {
      (lane.underWay === 0 ? this.#idle : this.#busy).add(lane);
    }
  }

  #count(by: number): void {
    this.#waiting += by;
    this.#options.onWaiting?.(this.#waiting);
  }
}
