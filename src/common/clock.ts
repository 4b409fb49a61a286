import { uptime } from 'node:os';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';

/** A timer. */
export interface Timer {
  /** Lets the process end although the timer is set. */
  unref(): this;
}

/** The time of everything in `src`. The names mean what Node's mean. */
export interface Clock {
  /** Milliseconds since 1970, by the clock of the machine, which may be set. */
  now(): number;
  /** Milliseconds since any moment, by a clock that only goes forward. */
  monotonic(): number;
  /** Milliseconds since the machine was started, its sleep included. */
  uptime(): number;
  setTimeout<Args extends unknown[]>(callback: (...args: Args) => void, ms: number, ...args: Args): Timer;
  clearTimeout(timer: Timer | undefined): void;
  setInterval(callback: () => void, ms: number): Timer;
  clearInterval(timer: Timer | undefined): void;
  /** Calls back in the next turn of the event loop. */
  setImmediate(callback: () => void): void;
  /** Resolves in the next turn of the event loop. */
  immediate(): Promise<void>;
  /**
   * Resolves after `ms` milliseconds; rejects with an AbortError when the signal aborts. With `ref: false` it does not keep
   * the process from ending.
   */
  sleep(ms: number, options?: { readonly signal?: AbortSignal; readonly ref?: boolean }): Promise<void>;
  /** Returns a signal that aborts after `ms` milliseconds with a TimeoutError. */
  timeoutSignal(ms: number): AbortSignal;
}

// Each looks up Node's function when it is called, because tests replace those.
const system: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // In some containers (LXC) the first says when the container was started, though the start of the machine has one name for all of them.
  uptime: () => Math.max(uptime() * 1000, Number(process.hrtime.bigint()) / 1_000_000),
  setTimeout: (callback, ms, ...args) => setTimeout(callback, ms, ...args),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  setInterval: (callback, ms) => setInterval(callback, ms),
  clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
  setImmediate: (callback) => void setImmediate(callback),
  immediate: () => immediate(),
  sleep: (ms, options) => sleep(ms, undefined, options),
  timeoutSignal: (ms) => AbortSignal.timeout(ms),
};

/** The one source of time. Read this binding for each use, and keep no copy: the simulator replaces it. */
export let clock: Clock = system;

/** Replaces the system's clock, as the simulator does before it starts anything. @returns a function that restores it. */
export function useClock(other: Clock): () => void {
  clock = other;
  return () => {
    clock = system;
  };
}
