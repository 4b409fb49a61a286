import { ambient, type Timer } from './ambient.ts';

const FIRST_MS = 100;
/** The longest pauses, in milliseconds: while a person may be waiting, and after that. */
const SHORT_MS = 500;
const LONG_MS = 30_000;
const SHORT_FOR_MS = 60_000;

/**
 * Waits between tries. The waits grow, and differ at random, so that not all clients come to a restarted gateway at once.
 * Also a signal: `wait` and `wake`.
 */
export class Pause {
  #tries = 0;
  #since = 0;
  #isOver = false;
  #wake: (() => void) | undefined;

  /** Makes the next wait a short one. */
  reset(): void {
    this.#tries = 0;
  }

  /**
   * Ends the present wait once its least time is over, and makes the next one a short one.
   *
   * @param isOver true where nobody comes back after the wait: it ends at once
   */
  wake(isOver = false): void {
    this.#isOver = isOver;
    this.reset();
    this.#wake?.();
  }

  /**
   * Waits, at least for `leastMs` also if woken: a gateway has asked for that, of all whom it refuses alike, so the wait that differs
   * comes on top.
   *
   * @param ms how long it waits where it is not woken
   */
  async next(leastMs = 0, ms?: number): Promise<void> {
    const now = ambient.now();
    // A clock that was set back would keep the pauses short until it is there again.
    if (this.#tries === 0 || now < this.#since) this.#since = now;
    const most = now - this.#since < SHORT_FOR_MS ? SHORT_MS : LONG_MS;
    const backoff = Math.min(FIRST_MS * 2 ** this.#tries++, most) * (0.5 + ambient.random() / 2);
    await this.wait(ms ?? leastMs + backoff);
    const left = Math.min(now + leastMs - ambient.now(), leastMs);
    // It was woken sooner, or the timer came early. A clock that was set back makes it no longer.
    if (left > 0 && !this.#isOver) await this.next(left, left);
  }

  /** Waits until woken, at most for `ms` milliseconds if that is given. */
  async wait(ms?: number): Promise<void> {
    let timer: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (ms !== undefined) timer = ambient.setTimeout(resolve, ms);
    });
    ambient.clearTimeout(timer);
    this.#wake = undefined;
  }
}
