/** What was kept of a client, for the one who compares now. */
export interface TakenReadings {
  /** Undefined before the first reading. */
  readonly text: string | undefined;
}

/**
 * The readings of each client's balances, by when they are to be compared again.
 *
 * Guaranteed: of all who take those of a client, in all processes, one gets them, and nobody else until they are due again: once
 * its lease has ended, or when `keep` says. What is kept by one from whom another has taken them counts for nothing.
 *
 * Every method rejects with `RecordsUnavailableError`, and with nothing else, when the store cannot be reached or written.
 */
export interface ReadingStore {
  /** Takes those of a client, for so many ms; undefined where they are not due, or another has them. */
  take(clientId: string, owner: string, leaseMs: number): Promise<TakenReadings | undefined>;
  /**
   * Keeps those that `take` gave to this owner.
   *
   * @param text what is kept from now on; undefined for what was
   * @param dueMs when they are due again, in ms from now
   * @returns whether nobody else has taken them since
   */
  keep(clientId: string, owner: string, text: string | undefined, dueMs: number): Promise<boolean>;
}
