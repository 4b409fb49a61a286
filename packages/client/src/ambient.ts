/** A timer: a number in a browser, an object in Node. */
export type Timer = unknown;

/** The time and chance of the whole package. */
export interface Ambient {
  /** Milliseconds since 1970. */
  now(): number;
  setTimeout(callback: () => void, ms?: number): Timer;
  clearTimeout(timer: Timer): void;
  /** In [0, 1). */
  random(): number;
}

// Each looks up the platform's function when it is called, because apps and their tests replace those.
const system: Ambient = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
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
