import type { Reader } from '../../helpers/reader.ts';

type Taken = Pick<Reader, 'take'>;

/** What has been seen of one reader. */
interface Progress {
  readonly reader: Taken;
  /** Its place in the order of events that it has reached. */
  position: number;
}

interface Count {
  /** Events that the reader that is least far, and the one that is farthest, have had. */
  readonly least: number;
  readonly most: number;
  readonly lost: number;
  readonly repeated: number;
  /** Events that came at another place than for the reader that had them first. */
  readonly misplaced: number;
}

/**
 * Compares what readers are given: there is one order, that in which the reader who is farthest has had the events, and
 * each reader has to be given all of it, once.
 */
export class Tally {
  readonly #order: string[] = [];
  readonly #places = new Map<string, number>();
  readonly #readers: readonly Progress[];
  #lost = 0;
  #repeated = 0;
  #misplaced = 0;

  constructor(readers: readonly Taken[]) {
    this.#readers = readers.map((reader) => ({ reader, position: 0 }));
  }

  /** Takes in what has come since it was called last. */
  update(): Count {
    for (const progress of this.#readers) {
      for (const id of progress.reader.take()) this.#see(progress, id);
    }
    const positions = this.#readers.map(({ position }) => position);
    return {
      least: Math.min(...positions),
      most: Math.max(...positions),
      lost: this.#lost,
      repeated: this.#repeated,
      misplaced: this.#misplaced,
    };
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  #see(progress: Progress, id: string): void {
    const place = this.#places.get(id);
    if (place === undefined && progress.position === this.#order.length) {
      this.#places.set(id, this.#order.length);
      this.#order.push(id);
      progress.position += 1;
    } else if (place === undefined) {
      this.#misplaced += 1;
    } else if (place < progress.position) {
      this.#repeated += 1;
    } else {
      this.#lost += place - progress.position;
      progress.position = place + 1;
    }
  }
}
