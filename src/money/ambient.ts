import { setTimeout as delay } from 'node:timers/promises';

/** Time and chance, handed in so that a test may choose them. */
export interface Ambient {
  /** Ms since the epoch. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
  /** A name that no other call has, in any process. */
  newId(): string;
}

export const systemAmbient: Ambient = {
  now: Date.now,
  sleep: (ms, signal) =>
    delay(Math.max(0, ms), undefined, { signal }).catch(() => {
      // The only rejection is the abort, which is told by the signal.
    }),
  random: Math.random,
  newId: () => crypto.randomUUID(),
};
