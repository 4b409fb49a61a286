import type { RecordName } from '../intent.ts';
import type { SettlingCalls } from './open-payment.ts';
import { FIRST_DUE_MS } from './open-records.ts';

interface Kept {
  readonly name: RecordName;
  readonly calls: SettlingCalls;
  /** In ms since the epoch. */
  readonly until: number;
  /** When it is looked at next, in ms since the epoch, and the pause after that, in ms. */
  nextAt: number;
  pause: number;
}

/** How many payments are kept in all, and how many of one client. */
const MOST = 1_000;
const MOST_OF_ONE = 100;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 20_000;

/**
 * Payments that calls of this process have left open, with the calls to ask about them under their callers' own credentials.
 * They are in memory alone, for as long as the credential holds.
 */
export class Remembered {
  readonly #kept = new Map<string, Kept>();

  get size(): number {
    return this.#kept.size;
  }

  /** Remembers a payment. If there are too many, it is left to its caller. */
  add(name: RecordName, calls: SettlingCalls, until: number, now: number): void {
    const key = keyOf(name);
    const ofOne = [...this.#kept.values()].filter((kept) => kept.name.clientId === name.clientId).length;
    if (!this.#kept.has(key) && (this.#kept.size >= MOST || ofOne >= MOST_OF_ONE)) return;
    this.#kept.set(key, { name, calls, until, nextAt: now + FIRST_DUE_MS, pause: FIRST_PAUSE_MS });
  }

  forget(name: RecordName): void {
    this.#kept.delete(keyOf(name));
  }

  /** Returns the payments that are to be looked at now. Forgets those whose credentials no longer hold. */
  due(now: number): readonly Kept[] {
    const due: Kept[] = [];
    for (const [key, kept] of this.#kept) {
      if (kept.until <= now || kept.calls.isOver()) this.#kept.delete(key);
      else if (kept.nextAt <= now) due.push(kept);
    }
    for (const kept of due) {
      kept.nextAt = now + kept.pause;
      kept.pause = Math.min(2 * kept.pause, LONGEST_PAUSE_MS);
    }
    return due;
  }
}

const keyOf = ({ clientId, hash }: RecordName): string => `${clientId} ${hash}`;
