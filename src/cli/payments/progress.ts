import { clock } from '../../common/clock.ts';

const CELLS = 24;
/** How often the bar is drawn, in ms. */
const DRAWN_EVERY_MS = 100;

/** A progress bar on standard error. If that is no terminal, nothing is drawn. */
export class Progress {
  readonly #unit: string;
  readonly #stream: NodeJS.WriteStream;
  readonly #began = clock.monotonic();
  #drawnAt = Number.NEGATIVE_INFINITY;
  #isDrawn = false;

  /** @param unit the word for the counted things, in the plural */
  constructor(unit: string, stream: NodeJS.WriteStream = process.stderr) {
    this.#unit = unit;
    this.#stream = stream;
  }

  show(done: number, all: number): void {
    const now = clock.monotonic();
    if (!this.#stream.isTTY || now - this.#drawnAt < DRAWN_EVERY_MS) return;
    this.#drawnAt = now;
    this.#isDrawn = true;
    this.#stream.write(`\r${barOf(done, all, this.#unit, now - this.#began)}\u001b[K`);
  }

  /** Removes the bar, to make room for the next message. */
  end(): void {
    if (this.#isDrawn) this.#stream.write('\r\u001b[K');
    this.#isDrawn = false;
  }
}

/** @param elapsedMs since the work began */
export function barOf(done: number, all: number, unit: string, elapsedMs: number): string {
  const share = all === 0 ? 1 : Math.min(1, done / all);
  const full = Math.round(share * CELLS);
  const rate = elapsedMs === 0 ? 0 : Math.round((done * 1_000) / elapsedMs);
  const counts = `${count(done)} of ${count(all)} ${unit}, ${count(rate)} a second`;
  return `[${'#'.repeat(full)}${' '.repeat(CELLS - full)}] ${Math.floor(share * 100)} %  ${counts}`;
}

const count = (number: number): string => number.toLocaleString('en-US');
