/** A timer: a number in a browser, an object in Node. */
export type Timer = unknown;

/** The time and chance of the whole package. */
export interface Ambient {
  /** Milliseconds since 1970. */
  now(): number;
  /** A timer that is set for longer than one holds ends once that time is over. */
  setTimeout(callback: () => void, ms?: number): Timer;
  clearTimeout(timer: Timer): void;
  /** In [0, 1). */
  random(): number;
}

/** Less than the longest time that a timer holds, in milliseconds: one that is set for longer ends at once. */
const LONGEST_MS = 2e9;

// Each looks up the platform's function when it is called, because apps and their tests replace those.
const system: Ambient = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, Math.min(ms ?? 0, LONGEST_MS)),
  clearTimeout: (timer) => clearTimeout(timer as number),
  random: () => Math.random(),
};

/** The one source of both. Read this binding for each use, and keep no copy: tests replace it. */
export let ambient: Ambient = system;

/** Replaces the platform's time and chance. @returns a function that restores them. */
export function useAmbient(other: Ambient): () => void {
  ambient = other;
  return () => {
    ambient = system;
  };
}
