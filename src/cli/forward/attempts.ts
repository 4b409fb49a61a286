import { clock } from '../../common/clock.ts';
import { remark } from '../command.ts';

/** The first and the longest pause between attempts, in milliseconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2_500;

/** Returns the pause after so many failures in a row, in milliseconds. */
export const growingPause = (failures: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10), LONGEST_PAUSE_MS);

/** Attempts at one thing, with growing pauses between them. A failure is reported unless it is the one that was reported last. */
export class Attempts {
  readonly #signal: AbortSignal;
  readonly #note: (problem: string | undefined) => void;
  /** Undefined before the first attempt has ended. */
  #failures: number | undefined;
  #told: string | undefined;

  /** @param note is told of each failure that is reported, and of the first success after it or at all */
  constructor(signal: AbortSignal, note: (problem: string | undefined) => void = () => undefined) {
    this.#signal = signal;
    this.#note = note;
  }

  async failed(problem: string): Promise<void> {
    if (problem !== this.#told) {
      remark(`${problem} Trying again.`);
      this.#note(problem);
    }
    this.#told = problem;
    this.#failures = (this.#failures ?? 0) + 1;
    await rest(growingPause(this.#failures), this.#signal);
  }

  succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#told = undefined;
    this.#note(undefined);
  }
}

/** Waits. Ends early if the signal is aborted. */
export const rest = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  clock.sleep(milliseconds, { signal }).catch(() => undefined);
