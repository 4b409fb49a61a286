import { Lru } from '../common/lru.ts';
import { noteRefusal } from '../common/refusals.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import type { Rest } from '../upstream/call/rest.ts';

/** How long a refusal counts, in milliseconds. */
export const COUNTED_MS = 60_000;
/** Sources whose refusals are remembered. */
const MAX_SOURCES = 10_000;

/** The guesses of one source: those being made, and those that wait. */
interface Pending {
  count: number;
  /** Called with true if the guess may be made. */
  readonly waiting: ((entered: boolean) => void)[];
}

/**
 * Bounds how many wrong credentials one source, such as a network address, may present in a minute. A guess under way counts
 * as a refusal, so that no more are sent at once than may be refused; the next one waits for it. A source that is always
 * right is slowed down, never refused.
 */
export class Guesses {
  readonly #limit: number;
  readonly #refused = new Lru<number>(MAX_SOURCES, { ttl: COUNTED_MS, noUpdateTTL: true });
  readonly #pending = new Map<string, Pending>();

  /** @param limit refusals of one source in a minute. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Makes a guess once it may be made.
   *
   * @param isRefused decides whether the outcome is a refusal; it gets the error as `failed` if the guess threw.
   * @param tooMany makes the error for a source that has been refused too often; the guess is then not made.
   */
  async make<T>(
    source: string,
    guess: () => Promise<T>,
    isRefused: (outcome: { readonly result: T } | { readonly failed: unknown }) => boolean,
    tooMany: () => Error,
  ): Promise<T> {
    const pending = await this.#enter(source, tooMany);
    let refused = false;
    try {
      const result = await guess();
      refused = isRefused({ result });
      return result;
    } catch (failed) {
      refused = isRefused({ failed });
      throw failed;
    } finally {
      this.#leave(source, pending, refused);
    }
  }

  async #enter(source: string, tooMany: () => Error): Promise<Pending> {
    const left = this.#left(source);
    if (left <= 0) throw tooMany();
    const pending = this.#pending.get(source) ?? { count: 0, waiting: [] };
    this.#pending.set(source, pending);
    if (pending.count < left) pending.count += 1;
    else if (!(await new Promise<boolean>((resolve) => pending.waiting.push(resolve)))) throw tooMany();
    return pending;
  }

  #leave(source: string, pending: Pending, refused: boolean): void {
    if (refused) this.#refused.set(source, (this.#refused.get(source) ?? 0) + 1);
    pending.count -= 1;
    const left = this.#left(source);
    const free = left <= 0 ? pending.waiting.length : Math.max(0, left - pending.count);
    for (const enter of pending.waiting.splice(0, free)) {
      // Counted at once, so that no other guess takes the place.
      if (left > 0) pending.count += 1;
      enter(left > 0);
    }
    if (pending.count === 0) this.#pending.delete(source);
  }

  #left(source: string): number {
    return this.#limit - (this.#refused.get(source) ?? 0);
  }
}

/** API keys that one address may have refused in a minute. People mistype a key less often, also behind one address. */
export const KEY_GUESSES = 10;

const isRefusal = (status: number | undefined): boolean => status === 401 || status === 403;

/** Returns REST calls that count as guesses of a source, because their credential may be guessed. */
export const guessing = (rest: Rest, guesses: Guesses, source: string): Rest => {
  const tooMany = () => {
    noteRefusal('key_guesses');
    return new UpstreamError(
      'UPSTREAM_RATE_LIMITED',
      'The service has refused too many keys from this address. Try again in a minute.',
      { dispatched: false, retryAfterMs: COUNTED_MS },
    );
  };
  return {
    clientId: rest.clientId,
    identity: rest.identity,
    served: (route) => rest.served(route),
    within: (work, message) => rest.within(work, message),
    sharedBy: (party, isReported) => guessing(rest.sharedBy(party, isReported), guesses, source),
    keep: (work, ms) => rest.keep(work, ms),
    get: (route, options) =>
      guesses.make(
        source,
        () => rest.get(route, options),
        (outcome) =>
          'failed' in outcome &&
          outcome.failed instanceof UpstreamError &&
          isRefusal(outcome.failed.refusal?.httpStatus),
        tooMany,
      ),
    send: async (method, route, options) => {
      try {
        return await guesses.make(
          source,
          () => rest.send(method, route, options),
          (outcome) =>
            'result' in outcome && outcome.result.kind === 'answered' && isRefusal(outcome.result.status),
          tooMany,
        );
      } catch (error) {
        if (error instanceof UpstreamError) return { kind: 'failed', error };
        throw error;
      }
    },
  };
};
