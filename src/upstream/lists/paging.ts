import { Lru } from '../../common/lru.ts';
import { MAX_PAGE } from './page-cover.ts';

/** How long it is believed what answers have shown of the sizes of pages, and of the number of the first one, in milliseconds. */
const BELIEVED_MS = 60_000;
/** Lists of one route whose last total is known: those of clients, and the parts that filters select. */
const MAX_TOTALS = 10_000;

/** The totals of two answers of one list, and the filter that selects it, as one text: empty for the whole list of the client. */
export type Totals = Readonly<Record<'before' | 'total', number> & { filter: string }>;

/**
 * What answers have shown of the paging of one route. Every answer is checked against its own statements. A page of a size that
 * was not asked for corrects the sizes at once. From then on the reader asks for these sizes alone, so that no answer shows when the
 * service gives others again. So the sizes are forgotten a minute later, and one call finds them out anew. No answer to a call for a page
 * shows that the service now gives its first page another number either, so a minute later that is asked for anew, beside the page.
 */
export class Paging {
  #firstPage: number | undefined;
  /** When a call without parameters was answered with a page last; never ends for a list whose paging is documented. */
  #firstAt = Number.NEGATIVE_INFINITY;
  readonly #now: () => number;
  #smallest = 1;
  #largest = MAX_PAGE;
  #learnedAt = Number.NEGATIVE_INFINITY;
  readonly #totals = new Lru<number>(MAX_TOTALS);
  readonly #onOtherTotal: (clientId: string, totals: Totals) => void;

  /**
   * @param now milliseconds of a monotonic clock.
   * @param onOtherTotal called when a list of this client has another total than before: pages from before do not go with it.
   */
  constructor(
    { isPagingDocumented }: { readonly isPagingDocumented?: true },
    now: () => number,
    onOtherTotal: (clientId: string, totals: Totals) => void = () => undefined,
  ) {
    if (isPagingDocumented) {
      this.#firstPage = 1;
      this.#firstAt = Number.POSITIVE_INFINITY;
    }
    this.#now = now;
    this.#onOtherTotal = onOtherTotal;
  }

  /** The number of the first page, as the latest page that came without parameters states it; undefined before the first such page. */
  get firstPage(): number | undefined {
    return this.#firstPage;
  }

  /** True if a call without parameters is to show how pages are counted: none has, or the latest one was too long ago. */
  get isFirstDue(): boolean {
    return this.#firstPage === undefined || this.#now() - this.#firstAt > BELIEVED_MS;
  }

  /** Notes the number of the page that a call without parameters was answered with. */
  learnFirst(page: number): void {
    this.#firstPage = page;
    this.#firstAt = Math.max(this.#firstAt, this.#now());
  }

  /** The smallest page that the service gives. If asked for another size, it gives the nearest of this and the largest. */
  get smallest(): number {
    return this.#isKnown ? this.#smallest : 1;
  }

  get largest(): number {
    return this.#isKnown ? this.#largest : MAX_PAGE;
  }

  get #isKnown(): boolean {
    return this.#now() - this.#learnedAt <= BELIEVED_MS;
  }

  /**
   * Notes the total that an answer shows.
   *
   * @param part the filter that selects part of the client's list, as one text.
   */
  noteTotal(clientId: string, part: string, total: number): void {
    const key = `${clientId} ${part}`;
    const before = this.#totals.get(key);
    this.#totals.set(key, total);
    if (before !== undefined && before !== total)
      this.#onOtherTotal(clientId, { before, total, filter: part });
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
