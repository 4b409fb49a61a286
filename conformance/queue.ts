/** How long a client may take for a step of the script, in milliseconds. */
const PATIENCE_MS = 30_000;

/** What one side has done and the script has not yet come to. */
export class Queue<Item> {
  readonly waiting: Item[] = [];
  #wake: (() => void) | undefined;
  #ended = false;

  push(item: Item): void {
    this.waiting.push(item);
    this.#wake?.();
  }

  /** Nothing more will come, unless another program is started. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** Another program has been started. */
  reopen(): void {
    this.#ended = false;
  }

  /** @throws where the client does nothing for too long. */
  async next(): Promise<Item> {
    if (this.waiting.length === 0 && !this.#ended) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const late = setTimeout(
        () => reject(new Error(`The client did nothing for ${PATIENCE_MS} ms.`)),
        PATIENCE_MS,
      );
      // A client that nobody waits for any more does not hold up the end of the suite.
      late.unref();
      await promise.finally(() => clearTimeout(late));
    }
    const [item] = this.waiting.splice(0, 1);
    if (item === undefined) throw new Error('The client has ended.');
    return item;
  }
}
