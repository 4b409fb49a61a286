import { clock } from '../../common/clock.ts';
import { remark } from '../command.ts';

/** The first and the longest pause between attempts, in milliseconds. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 2_500;

/** Returns the pause after so many failures in a row, in milliseconds. */
export const growingPause = (failures: number): number =>
  Math.min(FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10), LONGEST_PAUSE_MS);

/** Attempts at one thing, with growing pauses between them. The first failure is reported. */
export class Attempts {
  readonly #signal: AbortSignal;
  #failures = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async failed(problem: string): Promise<void> {
    if (this.#failures === 0) remark(`${problem} Trying again.`);
    this.#failures += 1;
    await rest(growingPause(this.#failures), this.#signal);
  }

  succeeded(): void {
    this.#failures = 0;
  }
}

/** Waits. Ends early if the signal is aborted. */
export const rest = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  clock.sleep(milliseconds, { signal }).catch(() => undefined);
