import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** A timer that is set. */
export interface Timer {
  /** It keeps no process from ending. */
  unref(): this;
}

/** Real time and chance, as the whole package takes them; its simulated time is {@link Clock}. */
export interface Ambient {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds since any moment, by a clock that only goes forward. */
  monotonic(): number;
  setTimeout(callback: () => void, ms: number): Timer;
  clearTimeout(timer: Timer | undefined): void;
  /** Resolves after so many milliseconds; keeps no process from ending. */
  sleep(ms: number): Promise<void>;
  /** A signal that aborts after so many milliseconds with a TimeoutError. */
  timeoutSignal(ms: number): AbortSignal;
  uuid(): string;
}

// Each looks its function up when it is called: tests put others in their place.
const system: Ambient = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout | undefined),
  sleep: (ms) => sleep(ms, undefined, { ref: false }),
  timeoutSignal: (ms) => AbortSignal.timeout(ms),
  uuid: () => randomUUID(),
};

/** The one source of both. Always ask it anew: another may take its place. */
export let ambient: Ambient = system;

/** Puts another in the place of the system's. @returns puts the system's back. */
export function useAmbient(other: Ambient): () => void {
  ambient = other;
  return () => {
    ambient = system;
  };
}
