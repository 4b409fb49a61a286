/** A request that made, read or refunded a transaction. */
export interface Call {
  /** Simulated ms since the epoch. */
  at: number;
  method: string;
  path: string;
  /** Undefined where the caller was sent no complete answer. */
  status: number | undefined;
  transactionId: string;
}

/** How many are kept. */
const KEPT = 1_000;
const NAMED = /\/transactions\/([0-9a-f-]{36})/i;

/** The id of the transaction that a path names; undefined for none. */
export const transactionIn = (path: string): string | undefined => NAMED.exec(path)?.[1]?.toLowerCase();

/** The latest calls that had to do with a transaction, so that its page can show them. */
export class Calls {
  readonly #calls: Call[] = [];

  add(call: Call): void {
    this.#calls.push(call);
    if (this.#calls.length > KEPT) this.#calls.shift();
  }

  /** Oldest first. */
  of(transactionId: string): Call[] {
    return this.#calls.filter((call) => call.transactionId === transactionId);
  }
}
