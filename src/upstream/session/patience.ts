/** How long what fails is tried again before it is given up, in milliseconds. */
const GIVEN_MS = 5_000;
/** How often it is tried once that time is over. */
const PAUSE_MS = 1_000;
/** Failures further apart than this have nothing to do with each other. */
const FORGOTTEN_MS = 30_000;

/**
 * How long one reader waits for a service that fails: some seconds in all, however many things are asked for meanwhile, so
 * that an outage costs a page of a hundred items no more time than a page of one. Times are milliseconds since the epoch.
 */
export class Patience {
  #failingSince: number | undefined;
  #failedAt = 0;
  #triedAt = 0;

  /** Whether to ask at all: while the patience is spent, no more than once a second. Who is allowed to is expected to ask. */
  mayTry(now: number): boolean {
    if (!this.#isSpent(now)) return true;
    if (now - Math.max(this.#failedAt, this.#triedAt) < PAUSE_MS) return false;
    this.#triedAt = now;
    return true;
  }

  succeeded(): void {
    this.#failingSince = undefined;
  }

  /** @returns whether to give up. */
  failed(now: number): boolean {
    if (now - this.#failedAt >= FORGOTTEN_MS) this.#failingSince = undefined;
    this.#failingSince ??= now;
    this.#failedAt = now;
    return this.#isSpent(now);
  }

  #isSpent(now: number): boolean {
    return this.#failingSince !== undefined && now - this.#failingSince >= GIVEN_MS;
  }
}
