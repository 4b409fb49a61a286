import { clock } from './clock.ts';

/** Time, as an {@link Alarms} measures it. */
export interface AlarmClock {
  /** Milliseconds since the epoch, by a clock that may be set. */
  now(): number;
  /** Milliseconds since any moment, by a clock that only goes forward. */
  monotonic(): number;
  /** Rejects when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemAlarmClock: AlarmClock = {
  now: () => clock.now(),
  monotonic: () => clock.monotonic(),
  sleep: (ms, signal) => clock.sleep(ms, { signal, ref: false }),
};

/** An action at a set time. It stores its own index in the heap, so that thousands of them cost little. */
export abstract class Alarm {
  /** When it is due, in milliseconds since the epoch; only while it is set. */
  due = 0;
  /** Its index in the heap; -1 while it is not set. */
  index = -1;
  abstract ring(): void;
}

/** An alarm that only calls a function. */
export class CallAlarm extends Alarm {
  readonly ring: () => void;

  constructor(ring: () => void) {
    super();
    this.ring = ring;
  }
}

/** The longest single wait, in milliseconds. A timer cannot take longer ones, so they are split. */
const LONGEST_SLEEP_MS = 3_600_000;
/** The clock counts as set where it has moved by this against the one that only goes forward, in milliseconds. */
const SET_BY_MS = 1_000;

/**
 * Many alarms on one timer, in a binary heap by the time when they are due. Where the clock is put back, each that is set rings when it
 * would have rung without that: one that was set for a time of the clock rings early then.
 */
export class Alarms {
  readonly #clock: AlarmClock;
  readonly #heap: Alarm[] = [];
  /** Aborts the sleep under way, which lasts until `#wakesAt`. */
  #asleep: AbortController | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  /** How far the clock was ahead of the one that only goes forward when the two were last compared, in milliseconds. */
  #ahead: number;

  constructor(clock: AlarmClock) {
    this.#clock = clock;
    this.#ahead = clock.now() - clock.monotonic();
  }

  /** Milliseconds since the epoch. */
  now(): number {
    const now = this.#clock.now();
    const ahead = now - this.#clock.monotonic();
    const back = this.#ahead - ahead;
    if (Math.abs(back) < SET_BY_MS) return now;
    this.#ahead = ahead;
    // The sleep under way ends when it would have.
    this.#wakesAt -= back;
    if (back > 0) for (const alarm of this.#heap) alarm.due -= back;
    return now;
  }

  /** Sets an alarm, or moves one that is set. `due` is in milliseconds since the epoch. */
  set(alarm: Alarm, due: number): void {
    // It is set by the clock as it is.
    this.now();
    this.#remove(alarm);
    alarm.due = due;
    this.#rise(alarm, this.#heap.length);
    this.#sleep();
  }

  clear(alarm: Alarm): void {
    this.#remove(alarm);
    if (this.#heap.length === 0) this.#wake();
  }

  #sleep(): void {
    const [first] = this.#heap;
    if (first === undefined || first.due >= this.#wakesAt) return;
    this.#wake();
    const asleep = new AbortController();
    this.#asleep = asleep;
    const now = this.now();
    const ms = Math.min(Math.max(0, first.due - now), LONGEST_SLEEP_MS);
    this.#wakesAt = now + ms;
    this.#clock.sleep(ms, asleep.signal).then(
      () => this.#ring(),
      // The sleep was aborted: an earlier alarm was set, or none is left.
      () => undefined,
    );
  }

  #wake(): void {
    this.#asleep?.abort();
    this.#asleep = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #ring(): void {
    this.#asleep = undefined;
    // An alarm that is set as one rings begins no sleep: the others that are due ring first.
    this.#wakesAt = Number.NEGATIVE_INFINITY;
    const now = this.now();
    try {
      for (let [first] = this.#heap; first !== undefined && first.due <= now; [first] = this.#heap) {
        this.#remove(first);
        first.ring();
      }
    } finally {
      this.#wakesAt = Number.POSITIVE_INFINITY;
      this.#sleep();
    }
  }

  #remove(alarm: Alarm): void {
    const { index } = alarm;
    if (index < 0) return;
    alarm.index = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === alarm) return;
    // The moved alarm belongs above or below the gap.
    this.#rise(last, index);
    this.#sink(last, last.index);
  }

  #rise(alarm: Alarm, from: number): void {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const parent = this.#heap[above];
      if (parent === undefined || parent.due <= alarm.due) break;
      this.#put(parent, index);
      index = above;
    }
    this.#put(alarm, index);
  }

  #sink(alarm: Alarm, from: number): void {
    let index = from;
    for (;;) {
      const [left, right] = [this.#heap[2 * index + 1], this.#heap[2 * index + 2]];
      const child = right !== undefined && left !== undefined && right.due < left.due ? right : left;
      if (child === undefined || child.due >= alarm.due) break;
      const below = child.index;
      this.#put(child, index);
      index = below;
    }
    this.#put(alarm, index);
  }

  #put(alarm: Alarm, index: number): void {
    this.#heap[index] = alarm;
    alarm.index = index;
  }
}
