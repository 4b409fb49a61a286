import { clock } from '../common/clock.ts';
import { Lru } from '../common/lru.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Party } from '../common/party.ts';
import { SingleFlight } from '../common/single-flight.ts';
import { CutShortError } from '../upstream/call/errors.ts';
import { type Asker, type Joinable, SharedWork } from '../upstream/call/shared-work.ts';
import type { Caller } from './caller.ts';
import { BELIEVED_MS, isRefusal } from './credential-expiry.ts';

/** How often the clock for that is read, in milliseconds. Otherwise it would be read with every operation. */
const CLOCK_MS = 100;
const LATE = 'The time of the operation was over before it was known who is calling.';
/** Accepted tokens kept in memory. */
const KNOWN_TOKENS = 10_000;

/** Finds out whom a token stands for. `isCurrent` tells whether the answer may be kept: not once a fresh question has begun. */
export type Ask = (party: Party, isCurrent: () => boolean) => Promise<Caller>;

/** Remembers the callers of tokens that were accepted a moment ago. It keeps nothing of refused tokens. */
export class KnownCallers {
  readonly #known = new Lru<Caller>(KNOWN_TOKENS, { ttlResolution: CLOCK_MS });
  readonly #asking = new SingleFlight<Caller, Joinable<Caller>>();

  /**
   * Returns the caller that a token stands for, without a promise if it is known.
   *
   * @param ask finds it out, for all who ask about the same token meanwhile, of the same source: it goes on while one of them waits.
   * @param fresh true to ask again, whatever was found a moment ago or is being found. Until there is an answer the token is believed as
   * before, and where there is none it stays so.
   * @param source whose guess the question is, which waits for the earlier guesses of that source. Callers from another source do not join
   * it. Empty for a question that is no guess.
   */
  find(token: string, ask: Ask, fresh: boolean, asker: Asker, source = ''): MaybePromise<Caller> {
    // What was asked before may be answered as it was before.
    if (fresh) this.#asking.forget(token);
    return (fresh ? undefined : this.#known.get(token)) ?? this.#ask(token, ask, asker, source);
  }

  /** Joins the question under way, or begins one. */
  #ask(token: string, ask: Ask, asker: Asker, source: string): Promise<Caller> {
    const others = this.#asking.underWay(token, source)?.details;
    if (others?.isGone === false) {
      // It had the time of those who waited as it was sent, which may be less than this one has.
      return others.wait(asker, LATE).catch((error: unknown) => {
        if (!(error instanceof CutShortError) || asker.deadline <= clock.now()) throw error;
        return this.#ask(token, ask, asker, source);
      });
    }
    // A guess waits for those before it.
    const work = new SharedWork<Caller>(false);
    const question = this.#asking.begin(token, source, work.result, work);
    const caller = work.wait(asker, LATE);
    const isCurrent = () => this.#asking.isCurrent(token, source, question);
    work.begin(async (party) => {
      try {
        const found = await ask(party, isCurrent);
        if (isCurrent()) this.#believe(token, found);
        return found;
      } catch (error) {
        if (isRefusal(error) && isCurrent()) this.#known.delete(token);
        throw error;
      }
    });
    return caller;
  }

  #believe(token: string, caller: Caller): void {
    // Each is asked about again after a minute at the latest: it may have no `exp`, and its issuer another clock.
    const leftMs = caller.expiresAt === undefined ? BELIEVED_MS : caller.expiresAt - clock.now();
    if (leftMs > 0) this.#known.set(token, caller, { ttl: Math.min(BELIEVED_MS, leftMs) });
  }
}
