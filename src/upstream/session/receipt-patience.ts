/** How long a failing read is tried again before it is given up, in milliseconds. */
const GIVEN_MS = 5_000;
/** After that time it is tried once in this many milliseconds. */
const PAUSE_MS = 1_000;
/** Failures that are further apart than this, in milliseconds, count as separate outages. */
const FORGOTTEN_MS = 30_000;

/**
 * How long one reader of receipts waits for a service that cannot say whose they are: 5 s in all, however many things it asks for, so that an outage costs a
 * page of a hundred items no more time than a page of one. Times are milliseconds since the epoch.
 */
export class ReceiptPatience {
  #failingSince: number | undefined;
  #failedAt = 0;
  #triedAt = 0;

  /** Returns true if the reader may ask now. Once the time is spent, that is once a second; the reader must then ask. */
  mayTry(now: number): boolean {
    if (!this.#isSpent(now)) return true;
    if (now - Math.max(this.#failedAt, this.#triedAt) < PAUSE_MS) return false;
    this.#triedAt = now;
    return true;
  }

  succeeded(): void {
    this.#failingSince = undefined;
  }

  /** @returns true if the reader must give up. */
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
