import { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../common/maybe-promise.ts';
import { SingleFlight } from '../common/single-flight.ts';
import type { Caller } from './caller.ts';

/** How long an accepted token is believed before it is asked about again (docs/authentication.md), in milliseconds. */
const KNOWN_MS = 60_000;
/** How often the clock is read that this is measured by; otherwise it would be with every operation. */
const CLOCK_MS = 100;
/** Accepted tokens kept in memory. */
const KNOWN_TOKENS = 10_000;

/** Whom tokens stand for that were accepted a moment ago. Nothing is kept of one that was refused. */
export class KnownCallers {
  readonly #known = new LRUCache<string, Caller>({ max: KNOWN_TOKENS, ttlResolution: CLOCK_MS });
  readonly #asking = new SingleFlight<Caller>();

  /**
   * The caller that a token stands for; no promise where that is known.
   *
   * @param ask finds it out. Who asks about the same token meanwhile shares the answer.
   * @param fresh true to ask again, whatever was found a moment ago.
   */
  find(token: string, ask: () => Promise<Caller>, fresh: boolean): MaybePromise<Caller> {
    if (fresh) this.#known.delete(token);
    return this.#known.get(token) ?? this.#ask(token, ask);
  }

  async #ask(token: string, ask: () => Promise<Caller>): Promise<Caller> {
    const caller = await this.#asking.run(token, ask);
    // A token without `exp`, or whose clock is not ours, is still asked about every minute.
    const leftMs = caller.expiresAt === undefined ? KNOWN_MS : caller.expiresAt - Date.now();
    if (leftMs > 0) this.#known.set(token, caller, { ttl: Math.min(KNOWN_MS, leftMs) });
    return caller;
  }
}
