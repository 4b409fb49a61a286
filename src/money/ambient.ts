import { clock } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';

/** Time and chance. They are passed in, so that a test can choose them. */
export interface Ambient {
  /** Ms since the epoch. */
  now(): number;
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
  /** Returns a name that no other call has, in any process. */
  newId(): string;
}

export const systemAmbient: Ambient = {
  now: () => clock.now(),
  sleep: (ms, signal) =>
    clock.sleep(Math.max(0, ms), { signal }).catch(() => {
      // The only rejection is the abort, which the caller sees by its signal.
    }),
  random: () => entropy.random(),
  newId: () => entropy.uuid(),
};
