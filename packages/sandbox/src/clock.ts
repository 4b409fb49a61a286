import { ambient, type Timer } from './ambient.ts';
import type { Logger } from './logger.ts';

type Task = () => void | Promise<void>;
interface Entry {
  at: number;
  task: Task;
}

/** Node's timers overflow past this delay and fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Simulated time: `speed` times as fast as real time from `start()`, or still (speed 0) until it is stepped. Whatever
 * is scheduled at or before now runs at once at any speed. Tasks run in the order of their times, then of scheduling.
 *
 * Running by itself, the clock starts a task and does not wait for it; stepped by `advance`, it waits for each before
 * the next, so that a test that stepped can look at the outcome.
 */
export class Clock {
  #speed: number;
  readonly #logger: Logger;
  readonly #entries: Entry[] = [];
  readonly #running = new Set<Promise<void>>();
  #simulated: number;
  #since: number | undefined;
  #timer: Timer | undefined;
  #steps: Promise<void> = Promise.resolve();
  #stepping = false;
  #stopped = false;

  /** `startAt` in ms since the epoch. The clock stands still until `start()`. */
  constructor(speed: number, startAt: number, logger: Logger) {
    this.#speed = speed;
    this.#simulated = startAt;
    this.#logger = logger;
  }

  /** How many times faster than real time it runs. */
  get speed(): number {
    return this.#speed;
  }

  /** Runs at another speed from now on; at 0 it stands still. */
  setSpeed(speed: number): void {
    const isRunning = this.#since !== undefined;
    this.#hold(this.now());
    this.#speed = speed;
    if (isRunning) this.#since = ambient.monotonic();
    ambient.clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#arm();
  }

  /** Simulated ms since the epoch. */
  now(): number {
    return this.#since === undefined
      ? this.#simulated
      : this.#simulated + (ambient.monotonic() - this.#since) * this.#speed;
  }

  /** Runs `task` once simulated time reaches `at` (ms since the epoch). */
  schedule(at: number, task: Task): void {
    let index = this.#entries.length;
    while (index > 0 && (this.#entries[index - 1]?.at ?? 0) > at) index -= 1;
    this.#entries.splice(index, 0, { at, task });
    this.#arm();
  }

  /** Lets time run. */
  start(): void {
    this.#since = ambient.monotonic();
    this.#arm();
  }

  /** Moves time on by `ms`, running and awaiting everything that falls due on the way, in order. */
  advance(ms: number): Promise<void> {
    this.#steps = this.#steps.then(() => this.#advance(ms));
    return this.#steps;
  }

  /**
   * Begins what is due now, in order, and awaits none of it: for a caller whose own answer a task that is under way may be
   * waiting for.
   */
  beginDue(): void {
    ambient.clearTimeout(this.#timer);
    this.#runDue();
  }

  /** Nothing runs any more. */
  stop(): void {
    this.#stopped = true;
    ambient.clearTimeout(this.#timer);
    this.#entries.length = 0;
  }

  async #advance(ms: number): Promise<void> {
    const target = this.now() + ms;
    const wasRunning = this.#since !== undefined;
    // Time stands still between the steps, else a task would see a moment later than the one it was due at.
    this.#hold(this.now());
    this.#stepping = true;
    ambient.clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let next = this.#takeDue(target); next !== undefined; next = this.#takeDue(target)) {
      this.#hold(Math.max(this.#simulated, next.at));
      await this.#run(next);
    }
    this.#hold(target);
    await Promise.allSettled(this.#running);
    this.#stepping = false;
    if (wasRunning) this.start();
    else this.#arm();
  }

  #hold(at: number): void {
    this.#since = undefined;
    this.#simulated = at;
  }

  #takeDue(until: number): Entry | undefined {
    const next = this.#entries[0];
    return next !== undefined && next.at <= until ? this.#entries.shift() : undefined;
  }

  #arm(): void {
    const next = this.#entries[0];
    if (next === undefined || this.#stepping || this.#stopped) return;
    const wait = next.at - this.now();
    if (wait > 0 && (this.#since === undefined || this.#speed === 0)) return;
    ambient.clearTimeout(this.#timer);
    const delay = wait <= 0 ? 0 : Math.min(Math.ceil(wait / this.#speed), LONGEST_TIMER_MS);
    this.#timer = ambient.setTimeout(() => this.#runDue(), delay);
    this.#timer.unref();
  }

  #runDue(): void {
    this.#timer = undefined;
    for (let next = this.#takeDue(this.now()); next !== undefined; next = this.#takeDue(this.now())) {
      const run = this.#run(next).finally(() => this.#running.delete(run));
      this.#running.add(run);
    }
    this.#arm();
  }

  async #run(entry: Entry): Promise<void> {
    try {
      await entry.task();
    } catch (error) {
      this.#logger.error({ err: error }, 'a scheduled task of the sandbox failed');
    }
  }
}
