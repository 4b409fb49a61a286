/** What an operation fails with when nobody waits for it any more. Nobody is told. */
export class CallerGoneError extends Error {
  constructor() {
    super('The caller is gone.');
  }
}

/** A caller that may leave before its result has come. */
export interface Leaver {
  readonly isGone: boolean;
  /**
   * Calls back once nobody waits any more; at once where that is so already.
   *
   * @returns ends the watching.
   */
  whenGone(callback: () => void): () => void;
}

/**
 * The callers that wait for the result of one operation: first its own caller, later perhaps others that ask exactly the same. Several
 * reads of each operation watch it. Listeners of an `AbortSignal` would cost more here than the rest of the bookkeeping.
 */
export class Waiters implements Leaver {
  #waiting = 1;
  #gone: AbortController | undefined;
  #callbacks: Set<() => void> | undefined;

  /** Aborted once nobody waits any more. */
  get signal(): AbortSignal {
    if (this.#gone === undefined) {
      this.#gone = new AbortController();
      if (this.isGone) this.#gone.abort(new CallerGoneError());
    }
    return this.#gone.signal;
  }

  get isGone(): boolean {
    return this.#waiting === 0;
  }

  whenGone(callback: () => void): () => void {
    if (this.isGone) {
      callback();
      return ignore;
    }
    const callbacks = this.#callbacks ?? new Set();
    this.#callbacks = callbacks;
    callbacks.add(callback);
    return () => callbacks.delete(callback);
  }

  add(): void {
    this.#waiting += 1;
  }

  remove(): void {
    this.#waiting -= 1;
    if (!this.isGone) return;
    this.#gone?.abort(new CallerGoneError());
    for (const callback of this.#callbacks ?? []) callback();
    this.#callbacks = undefined;
  }
}

/** A caller that leaves when its signal aborts. */
export const leaverOf = (signal: AbortSignal): Leaver => ({
  get isGone() {
    return signal.aborted;
  },
  whenGone(callback) {
    if (signal.aborted) callback();
    else signal.addEventListener('abort', callback, { once: true });
    return () => signal.removeEventListener('abort', callback);
  },
});

const ignore = (): void => undefined;
