/** A timer that is set: a number in a browser, an object in Node. */
export type Timer = unknown;

/** Time and chance, as the whole package takes them. */
export interface Ambient {
  /** Milliseconds since 1970. */
  now(): number;
  setTimeout(callback: () => void, ms?: number): Timer;
  clearTimeout(timer: Timer): void;
  /** In [0, 1). */
  random(): number;
}

// Each looks its function up when it is called: apps and their tests put others in their place.
const system: Ambient = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (timer) => clearTimeout(timer as number),
  random: () => Math.random(),
};

/** The one source of both. Always ask it anew: another may take its place. */
export let ambient: Ambient = system;

/** Puts another in the place of the platform's. @returns puts the platform's back. */
export function useAmbient(other: Ambient): () => void {
  ambient = other;
  return () => {
    ambient = system;
  };
}
