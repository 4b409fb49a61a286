import { uptime } from 'node:os';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';

/** A timer that is set. */
export interface Timer {
  /** It keeps no process from ending. */
  unref(): this;
}

/** Time, as everything in `src` takes it. The names mean what Node's mean. */
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
  /** In the next turn of the event loop. */
  setImmediate(callback: () => void): void;
  /** Resolves in the next turn of the event loop. */
  immediate(): Promise<void>;
  /** Resolves after so many milliseconds; rejects with an AbortError when the signal aborts. With `ref: false` it keeps no process from ending. */
  sleep(ms: number, options?: { readonly signal?: AbortSignal; readonly ref?: boolean }): Promise<void>;
  /** A signal that aborts after so many milliseconds with a TimeoutError. */
  timeoutSignal(ms: number): AbortSignal;
}

// Each looks its function up when it is called: tests put others in their place.
const system: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  uptime: () => uptime() * 1000,
  setTimeout: (callback, ms, ...args) => setTimeout(callback, ms, ...args),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  setInterval: (callback, ms) => setInterval(callback, ms),
  clearInterval: (timer) => clearInterval(timer as NodeJS.Timeout | undefined),
  setImmediate: (callback) => void setImmediate(callback),
  immediate: () => immediate(),
  sleep: (ms, options) => sleep(ms, undefined, options),
  timeoutSignal: (ms) => AbortSignal.timeout(ms),
};

/** The one source of time. Always ask it anew: another may take its place. */
export let clock: Clock = system;

/** Puts another in the place of the system's, as the simulator does before it starts anything. @returns puts the system's back. */
export function useClock(other: Clock): () => void {
  clock = other;
  return () => {
    clock = system;
  };
}
