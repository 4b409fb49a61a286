import { clock, type Timer } from './clock.ts';

/** The result of the last look, its age, and whether there ought to be a later one. */
export interface Known<T> {
  readonly found: T;
  /** The time since the look that found it began, in milliseconds. */
  readonly ageMs: number;
  /** For how long it has been looked in vain since, in milliseconds; 0 where nobody has asked. */
  readonly silentMs: number;
}

export interface LastKnownOptions {
  /** How long a result serves after its look began, in milliseconds. */
  readonly freshMs: number;
  /** How long a caller waits for a look that is under way, in milliseconds. */
  readonly waitMs: number;
}

/**
 * Makes a function that answers soon, however long the look takes. One look runs at a time, and all callers share it. A
 * caller that has waited for `waitMs` gets the result of the look before.
 *
 * @param find looks. If it fails, the result before stays.
 * @returns undefined if nothing has been found yet.
 */
export function lastKnown<T>(
  find: () => Promise<T>,
  { freshMs, waitMs }: LastKnownOptions,
): () => Promise<Known<T> | undefined> {
  let last: { readonly found: T; readonly at: number } | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  /** When the first look began of those that have found nothing since. */
  let inVainSince: number | undefined;
  const since = (at: number) => Math.max(0, clock.monotonic() - at);
  const known = (): Known<T> | undefined =>
    last && {
      found: last.found,
      ageMs: since(last.at),
      silentMs: inVainSince === undefined ? 0 : since(inVainSince),
    };

  const look = (): Promise<void> => {
    const at = clock.monotonic();
    lookedAt = at;
    inVainSince ??= at;
    return find().then(
      (found) => {
        last = { found, at };
        inVainSince = undefined;
        looking = undefined;
      },
      () => {
        looking = undefined;
      },
    );
  };

  return async () => {
    if (looking === undefined && clock.monotonic() - lookedAt < freshMs) return known();
    looking ??= look();
    let timer: Timer | undefined;
    const waited = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, waitMs);
    });
    await Promise.race([looking, waited]);
    clock.clearTimeout(timer);
    return known();
  };
}
