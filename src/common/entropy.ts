import { randomBytes, randomUUID } from 'node:crypto';

/** Chance, as everything in `src` takes it. */
export interface Entropy {
  /** A UUID of version 4. */
  uuid(): string;
  /** So many bytes that nobody can guess. */
  bytes(count: number): Buffer;
  /** In [0, 1), for what may be guessed. */
  random(): number;
}

// Looked up when it is called: tests put another in its place.
const system: Entropy = { uuid: randomUUID, bytes: randomBytes, random: () => Math.random() };

/** The one source of chance. Always ask it anew: another may take its place. */
export let entropy: Entropy = system;

/** Puts another in the place of the system's, as the simulator does before it starts anything. @returns puts the system's back. */
export function useEntropy(other: Entropy): () => void {
  entropy = other;
  return () => {
    entropy = system;
  };
}
