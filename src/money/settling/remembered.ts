import type { Later } from '../call.ts';
import type { RecordName } from '../intent.ts';
import type { SettlingCalls } from './open-payment.ts';
import { FIRST_DUE_MS } from './open-records.ts';

/** A payment that is remembered. */
export interface Kept {
  readonly name: RecordName;
  credential: string;
  calls: SettlingCalls;
  /** In ms since the epoch. */
  until: number;
  /** When it is looked at next, in ms since the epoch, and the pause after that, in ms. */
  nextAt: number;
  pause: number;
  /** Whether its caller has asked for it since it was looked for, and when that was, in ms since the epoch. */
  isAsked: boolean;
  askedAt: number;
  /** Whether a mutation has left it unknown, and not only somebody asked what became of it. */
  isOfMutation: boolean;
  /** Whether it was looked for to the end, and not asked for since. */
  isGivenUp: boolean;
}

/** How many payments are kept in all, and how many of one client. */
const MOST = 1_000;
const MOST_OF_ONE = 100;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 20_000;
/** A caller that asks again sooner than this changes nothing. */
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

  /**
   * Remembers a payment, and that its caller has asked for it. If there are too many, it takes the place of one that was given up, or, where
   * a mutation has left it unknown, of one that was only asked about. If there is none, it is left to its caller.
   */
  add(name: RecordName, later: Later, now: number, isOfMutation = false): void {
    const { clientId, hash } = name;
    const known = this.#clients.get(clientId)?.get(hash);
    if (known !== undefined) {
      known.isOfMutation ||= isOfMutation;
      this.#renew(known, later, now);
      return;
    }
    if (!this.#makeRoom(clientId, isOfMutation)) return;
    const { credential, until } = later;
    const kept: Kept = {
      ...{ name, credential, calls: this.#callsOf(clientId, later), until },
      ...{ nextAt: now + FIRST_DUE_MS, pause: FIRST_PAUSE_MS, isAsked: true, askedAt: now },
      ...{ isOfMutation, isGivenUp: false },
    };
    this.#clients.set(clientId, (this.#clients.get(clientId) ?? new Map()).set(hash, kept));
  }

  forget({ clientId, hash }: RecordName): void {
    const ofOne = this.#clients.get(clientId);
    ofOne?.delete(hash);
    if (ofOne?.size === 0) this.#clients.delete(clientId);
  }

  /** Notes that a payment was looked for to the end. It keeps its place until another needs it, so that it is known when it was asked for. */
  giveUp({ clientId, hash }: RecordName): void {
    const kept = this.#clients.get(clientId)?.get(hash);
    if (kept !== undefined) kept.isGivenUp = !kept.isAsked;
  }

  /** Returns a client's payments that are to be looked at now, the longest due first. Forgets those whose credentials no longer hold. */
  due(clientId: string, now: number): readonly Kept[] {
    const due: Kept[] = [];
    for (const kept of this.#clients.get(clientId)?.values() ?? []) {
      if (!holds(kept, now)) this.forget(kept.name);
      // The clock may have been set back since.
      else if (kept.nextAt <= now || kept.nextAt > now + LONGEST_PAUSE_MS) due.push(kept);
    }
    return due.sort((one, other) => one.nextAt - other.nextAt);
  }

  /** Notes that a look at a payment begins. Returns whether its caller has asked for it since the look before. */
  begin(kept: Kept, now: number): boolean {
    const { isAsked } = kept;
    kept.isAsked = false;
    kept.nextAt = now + kept.pause;
    kept.pause = Math.min(2 * kept.pause, LONGEST_PAUSE_MS);
    return isAsked;
  }

  #renew(known: Kept, later: Later, now: number): void {
    // The clock may have been set back since.
    if (Math.abs(now - known.askedAt) >= ASKED_AGAIN_MS) {
      known.isAsked = true;
      known.askedAt = now;
      known.isGivenUp = false;
    }
    const { credential, until } = later;
    if (holds(known, now)) {
      if (known.credential === credential) known.until = until;
      // What was read under one credential is read again under the next: a caller that has a new one each time would never come to the end.
      if (known.credential === credential || until - now < 2 * (known.until - now)) return;
    }
    known.calls = this.#callsOf(known.name.clientId, later);
    known.credential = credential;
    known.until = until;
    known.nextAt = Math.min(known.nextAt, now + FIRST_DUE_MS);
  }

  /** Those of one credential share what is read. */
  #callsOf(clientId: string, { credential, calls }: Later): SettlingCalls {
    const ofOne = this.#clients.get(clientId)?.values();
    return ofOne?.find((kept) => kept.credential === credential && !kept.calls.isOver())?.calls ?? calls();
  }

  /** @returns false if there is no room for one more */
  #makeRoom(clientId: string, isOfMutation: boolean): boolean {
    const ofOne = this.#clients.get(clientId);
    const isFullOfOne = ofOne !== undefined && ofOne.size >= MOST_OF_ONE;
    if (!isFullOfOne && this.size < MOST) return true;
    const all = isFullOfOne ? [ofOne] : [...this.#clients.values()];
    const kept = all.flatMap((some) => [...some.values()]);
    const last =
      kept.find(({ isGivenUp }) => isGivenUp) ??
      (isOfMutation ? kept.find((one) => !one.isOfMutation) : undefined);
    if (last !== undefined) this.forget(last.name);
    return last !== undefined;
  }
}

const holds = ({ until, calls }: Kept, now: number): boolean => until > now && !calls.isOver();
