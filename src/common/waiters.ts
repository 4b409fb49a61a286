/** Who waits for the result of one operation: at first its own caller, later perhaps others that ask the very same. */
export class Waiters {
  #waiting = 1;
  #gone: AbortController | undefined;

  /** Aborted once nobody waits any more. */
  get signal(): AbortSignal {
    if (this.#gone === undefined) {
      this.#gone = new AbortController();
      this.#abortIfGone();
    }
    return this.#gone.signal;
  }

  get isGone(): boolean {
    return this.#waiting === 0;
  }

  add(): void {
    this.#waiting += 1;
  }

  remove(): void {
    this.#waiting -= 1;
    this.#abortIfGone();
  }

  #abortIfGone(): void {
    if (this.isGone) this.#gone?.abort(new Error('The caller is gone.'));
  }
}
