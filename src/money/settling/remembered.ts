import type { Later } from '../call.ts';
import type { RecordName } from '../intent.ts';
import type { SettlingCalls } from './open-payment.ts';
import { FIRST_DUE_MS } from './open-records.ts';

/** A payment that is remembered. */
export interface Kept {
  readonly name: RecordName;
  readonly credential: string;
  readonly calls: SettlingCalls;
  /** In ms since the epoch. */
  until: number;
  /** When it is looked at next, in ms since the epoch, and the pause after that, in ms. */
  nextAt: number;
  pause: number;
  /** Whether its caller has asked for it since it was looked for, and when that was, in ms since the epoch. */
  isAsked: boolean;
  askedAt: number;
}

/** How many payments are kept in all, and how many of one client. */
const MOST = 1_000;
const MOST_OF_ONE = 100;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 20_000;
/** A caller that asks again sooner than this, under the same credential, changes nothing. */
const ASKED_AGAIN_MS = 5 * 60_000;

/**
 * Open payments for which their callers have come, with the calls to ask about them under the callers' own credentials. They are in memory
 * alone, for as long as the credential holds.
 */
export class Remembered {
  readonly #clients = new Map<string, Map<string, Kept>>();

  get size(): number {
    return this.#clients.values().reduce((sum, kept) => sum + kept.size, 0);
  }

  /** Whether there is a payment of this client. */
  has(clientId: string): boolean {
    return this.#clients.has(clientId);
  }

  /** Remembers a payment, and that its caller has asked for it. If there are too many, it is left to its caller. */
  add(name: RecordName, { credential, calls, until }: Later, now: number): void {
    const { clientId, hash } = name;
    const ofOne = this.#clients.get(clientId) ?? new Map<string, Kept>();
    const known = ofOne.get(hash);
    if (known?.credential === credential && !known.calls.isOver()) {
      known.until = until;
      if (now - known.askedAt < ASKED_AGAIN_MS) return;
      known.isAsked = true;
      known.askedAt = now;
      return;
    }
    if (known === undefined && (this.size >= MOST || ofOne.size >= MOST_OF_ONE)) return;
    // Those of one credential share what is read.
    const shared = ofOne.values().find((kept) => kept.credential === credential && !kept.calls.isOver());
    this.#clients.set(clientId, ofOne);
    ofOne.set(hash, {
      ...{ name, credential, calls: shared?.calls ?? calls(), until },
      ...{ nextAt: now + FIRST_DUE_MS, pause: FIRST_PAUSE_MS, isAsked: true, askedAt: now },
    });
  }

  forget({ clientId, hash }: RecordName): void {
    const ofOne = this.#clients.get(clientId);
    ofOne?.delete(hash);
    if (ofOne?.size === 0) this.#clients.delete(clientId);
  }

  /** Returns a client's payments that are to be looked at now. Forgets those whose credentials no longer hold. */
  due(clientId: string, now: number): readonly Kept[] {
    const due: Kept[] = [];
    for (const kept of this.#clients.get(clientId)?.values() ?? []) {
      if (kept.until <= now || kept.calls.isOver()) this.forget(kept.name);
      // The clock may have been set back since.
      else if (kept.nextAt <= now || kept.nextAt > now + LONGEST_PAUSE_MS) due.push(kept);
    }
    for (const kept of due) {
      kept.nextAt = now + kept.pause;
      kept.pause = Math.min(2 * kept.pause, LONGEST_PAUSE_MS);
    }
    return due;
  }
}
