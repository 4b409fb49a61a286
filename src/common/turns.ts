import { clock } from './clock.ts';

/**
 * The urgencies of work, the most urgent first: calls that move money; operations that somebody waits for; sockets and
 * streams that go on; and sockets that arrive.
 */
export const URGENCIES = ['money', 'operations', 'streams', 'arrivals'] as const;
export type Urgency = (typeof URGENCIES)[number];

/**
 * For how long each urgency may start work in one turn of the event loop, in milliseconds. Each starts at least one piece. `arrivals`
 * has 0, so one socket is taken in per turn: sockets that are already open are served first, and few are half-way at a time.
 */
const SLICES_MS: Readonly<Record<Urgency, number>> = { money: 4, operations: 4, streams: 4, arrivals: 0 };
/** How long work starts without waiting after a turn that left no work over, in milliseconds. */
const AT_ONCE_MS = 4;

/** The work of one urgency, in a queue for each key; the keys take turns. */
class Line {
  /** Queues by key, which names whose work it is. */
  readonly #queues = new Map<unknown, (() => void)[]>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  add(key: unknown, begin: () => void): void {
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, [begin]);
    else queue.push(begin);
  }

  /** Takes the next piece out, and moves its queue behind the others. */
  take(): (() => void) | undefined {
    for (const [key, queue] of this.#queues) {
      const begin = queue.shift();
      this.#queues.delete(key);
      if (queue.length > 0) this.#queues.set(key, queue);
      return begin;
    }
    return undefined;
  }
}

/**
 * Spreads the work of this process over turns of the event loop. Node handles everything that arrived during one turn before it
 * looks at new input, so the answers to one caller's hundred joins, or a thousand phones that reconnect, would keep everybody else
 * waiting until all of them are done. Work therefore starts here: at once while there is little of it, otherwise a few
 * milliseconds of it in each turn, the most urgent first, and each key in its turn.
 *
 * No work is refused or lost, and work of one key and urgency starts in the order in which it came. Less urgent work has a share
 * of each turn, so that it slows down and never stops.
 */
export class Turns {
  readonly #now: () => number;
  readonly #isOn: boolean;
  readonly #lines: Readonly<Record<Urgency, Line>> = {
    money: new Line(),
    operations: new Line(),
    streams: new Line(),
    arrivals: new Line(),
  };
  #waiting = 0;
  #isTurning = false;
  /** Until when work begins at once. */
  #atOnceUntil = Number.NEGATIVE_INFINITY;

  /**
   * @param now milliseconds of a monotonic clock.
   * @param isOn false lets all work begin at once.
   */
  constructor(now: () => number, isOn = true) {
    this.#now = now;
    this.#isOn = isOn;
  }

  /**
   * Undefined where work may begin at once; otherwise resolves when it may. What it does before it waits for something
   * counts for the turn.
   *
   * @param key whose work it is.
   */
  turn(urgency: Urgency, key: unknown): Promise<void> | undefined {
    if (!this.#isOn) return undefined;
    if (this.#waiting === 0 && !this.#isTurning && this.#now() < this.#atOnceUntil) return undefined;
    return new Promise((begin) => {
      this.#lines[urgency].add(key, begin);
      this.#waiting += 1;
      if (this.#isTurning) return;
      this.#isTurning = true;
      clock.setImmediate(() => this.#turn());
    });
  }

  /** One turn: a slice of each line that has work. */
  #turn(): void {
    const left = [...URGENCIES];
    /** The line whose slice it is, and until when more of it begins. */
    let line: Line | undefined;
    let until = 0;
    const next = (): (() => void) | undefined => {
      if (line?.isEmpty === false && this.#now() < until) return line.take();
      for (let urgency = left.shift(); urgency !== undefined; urgency = left.shift()) {
        line = this.#lines[urgency];
        until = this.#now() + SLICES_MS[urgency];
        if (!line.isEmpty) return line.take();
      }
      return undefined;
    };
    const step = (): void => {
      const begin = next();
      if (begin === undefined) {
        this.#end();
        return;
      }
      this.#waiting -= 1;
      begin();
      // Node calls it once all promises that are settled by then are through: what follows from the work is part of it.
      queueMicrotask(() => process.nextTick(step));
    };
    step();
  }

  #end(): void {
    this.#isTurning = this.#waiting > 0;
    if (this.#isTurning) clock.setImmediate(() => this.#turn());
    else this.#atOnceUntil = this.#now() + AT_ONCE_MS;
  }
}
