import { clock } from '../../common/clock.ts';

/** How long somebody waits for a client's queue, in milliseconds. */
const PATIENCE_MS = 1000;

/** Those who wait until none of a client's events is in a spool. Other clients may have so many that some are there always. */
export class Emptying {
  readonly #looks = new Set<() => void>();

  /** To be called when events have left a spool. */
  look(): void {
    for (const look of this.#looks) look();
  }

  /** Resolves once the queue is empty or the drain is over, and after a second in any case. */
  async wait(isEmpty: () => boolean, drained: Promise<void>): Promise<void> {
    const { promise: emptied, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (isEmpty()) resolve();
    };
    this.#looks.add(look);
    try {
      await Promise.race([emptied, drained, clock.sleep(PATIENCE_MS, { ref: false })]);
    } finally {
      this.#looks.delete(look);
    }
  }
}
