import { randomBytes, randomUUID } from 'node:crypto';

/** The chance of everything in `src`. */
export interface Entropy {
  /** A UUID of version 4. */
  uuid(): string;
  /** Returns `count` bytes that nobody can guess. */
  bytes(count: number): Buffer;
  /** Returns a number in [0, 1) that may be guessed. */
  random(): number;
}

// `Math.random` is looked up when it is called, because tests replace it.
const system: Entropy = { uuid: randomUUID, bytes: randomBytes, random: () => Math.random() };

/** The one source of chance. Read this binding for each use, and keep no copy: the simulator replaces it. */
export let entropy: Entropy = system;

/** Replaces the system's chance, as the simulator does before it starts anything. @returns a function that restores it. */
export function useEntropy(other: Entropy): () => void {
  entropy = other;
  return () => {
    entropy = system;
  };
}
