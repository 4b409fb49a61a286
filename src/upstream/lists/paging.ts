import { MAX_PAGE } from './page-cover.ts';

/** How long the sizes that answers have shown are believed, in milliseconds. */
const SIZES_AGE_MS = 60_000;

/**
 * What answers have shown of the paging of one route. Every answer is checked against its own statements. A page of a size that
 * was not asked for corrects the sizes at once. As none is asked for that the service does not give, nothing shows when it gives
 * others again: so a minute later the sizes are found out anew, which takes one call.
 */
export class Paging {
  /** The number of the first page, as an answer to a call without parameters states it; undefined before the first such answer. */
  firstPage: number | undefined;
  readonly #now: () => number;
  #smallest = 1;
  #largest = MAX_PAGE;
  #learnedAt = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds of a monotonic clock. */
  constructor({ isPagingDocumented }: { readonly isPagingDocumented?: true }, now: () => number) {
    this.firstPage = isPagingDocumented ? 1 : undefined;
    this.#now = now;
  }

  /** The smallest page that the service gives. If asked for another size, it gives the nearest of this and the largest. */
  get smallest(): number {
    return this.#isKnown ? this.#smallest : 1;
  }

  get largest(): number {
    return this.#isKnown ? this.#largest : MAX_PAGE;
  }

  get #isKnown(): boolean {
    return this.#now() - this.#learnedAt <= SIZES_AGE_MS;
  }

  /** Notes the size of a page, and which size was asked for. */
  learnSize(asked: number, size: number): void {
    if (size === asked) return;
    const { smallest, largest } = this;
    this.#smallest = size < asked ? Math.min(smallest, size) : size;
    this.#largest = size < asked ? size : Math.max(largest, size);
    this.#learnedAt = this.#now();
  }
}
