import { ambient, type Timer } from './ambient.ts';

const FIRST_MS = 100;
/** While somebody may be waiting at the screen, and after that. */
const SHORT_MS = 500;
const LONG_MS = 30_000;
const SHORT_FOR_MS = 60_000;

/** Waits between tries: longer each time, and not the same for everybody, so that a gateway that comes back is not run over. */
export class Pause {
  #tries = 0;
  #since = 0;
  #wake: (() => void) | undefined;

  /** The next wait is a short one. */
  reset(): void {
    this.#tries = 0;
  }

  /** Ends the wait of the moment; the next one is short as well. */
  wake(): void {
    this.reset();
    this.#wake?.();
  }

  /** Waits, at least for `leastMs`, unless woken. */
  async next(leastMs = 0): Promise<void> {
    const now = ambient.now();
    if (this.#tries === 0) this.#since = now;
    const most = now - this.#since < SHORT_FOR_MS ? SHORT_MS : LONG_MS;
    const backoff = Math.min(FIRST_MS * 2 ** this.#tries, most) * (0.5 + ambient.random() / 2);
    this.#tries += 1;
    await this.wait(Math.max(backoff, leastMs));
  }

  /** Waits until woken, or, where a time in milliseconds is given, at most that long. */
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
