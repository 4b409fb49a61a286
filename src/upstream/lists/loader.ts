import DataLoader from 'dataloader';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { Query } from '../call/rest.ts';
import type { Listing, Question } from './listing.ts';

/** A window of a list, and how many items the service says that the list holds. */
export interface ListWindow<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/** How a list is read within one operation: whole, by the index of places, or item by item. */
export interface ListSource<T> {
  /** The whole list once it has arrived; undefined before that, and if it is not read whole. */
  readonly listing: Listing<T> | undefined;
  /** Begins to read what look-ups are going to need. */
  begin(): Promise<unknown>;
  /**
   * Answers the questions of one tick, in their order: each with its items, which may be none, or with an error. Rejects if
   * all of them fail.
   */
  answer(questions: readonly Question<T>[]): Promise<readonly (readonly T[] | Error)[]>;
  window(offset: number, limit: number): Promise<ListWindow<T>>;
}

/** The filter of a list for which the service documents no filter parameter. */
export type NoFilter = Readonly<Record<string, undefined>>;

/** Gives the items of one noun within one operation: windows of its list, and look-ups in it. Each read is made once. */
export interface Loader<T, Filter extends Query = NoFilter> {
  /**
   * Returns the first item whose key is `value`, or null. Once the whole list has arrived, the result is no promise, so that
   * a hundred rows cost no hundred turns of the microtask queue. Until then DataLoader batches the look-ups of a tick.
   */
  find(key: keyof T & string, value: string): MaybePromise<T | null>;
  /** Returns all items whose key is `value`, in the order of the list. Otherwise like `find`. */
  where(key: keyof T & string, value: string): MaybePromise<readonly T[]>;
  /**
   * Returns the items at `offset` to `offset + limit - 1` of the list, or of the part that the filter selects.
   *
   * @param limit from 1 to 100.
   */
  window(offset: number, limit: number, filter?: Filter): Promise<ListWindow<T>>;
  /**
   * Begins to read what look-ups are going to need. Resolves once the whole list has arrived, or is known not to come whole.
   */
  begin(): Promise<unknown>;
  /** Begins `where` for each of these values, before a resolver asks. One that fails, fails where it is looked up. */
  prefetch(key: keyof T & string, values: readonly string[]): void;
  /** How many windows and look-ups it was asked for so far. */
  lookUps(): number;
}

/**
 * The loader of a noun in one operation. Every operation has one for each noun and uses few, so it makes nothing before it is
 * asked.
 */
export class ListLoader<T, Filter extends Query = NoFilter> implements Loader<T, Filter> {
  readonly #open: (filter: Filter | undefined) => ListSource<T>;
  #source: ListSource<T> | undefined;
  /** The sources of the parts that filters select, by the filter's text. */
  #parts: Map<string, ListSource<T>> | undefined;
  #questions: DataLoader<Question<T>, readonly T[], string> | undefined;
  /** Windows by their arguments. One that failed is not read again within the operation. */
  #windows: Map<string, Promise<ListWindow<T>>> | undefined;
  #lookUps = 0;

  /** @param open returns the source of the list, or of the part that a filter selects: each part is a list of its own. */
  constructor(open: (filter: Filter | undefined) => ListSource<T>) {
    this.#open = open;
  }

  find(key: keyof T & string, value: string): MaybePromise<T | null> {
    this.#lookUps += 1;
    const { listing } = this.#whole;
    if (listing !== undefined) return listing.find(key, value);
    return this.#ask({ key, value, all: false }).then(([first]) => first ?? null);
  }

  where(key: keyof T & string, value: string): MaybePromise<readonly T[]> {
    this.#lookUps += 1;
    const { listing } = this.#whole;
    return listing?.where(key, value) ?? this.#ask({ key, value, all: true });
  }

  window(offset: number, limit: number, filter?: Filter): Promise<ListWindow<T>> {
    this.#lookUps += 1;
    const part = filterKey(filter);
    const key = `${offset} ${limit} ${part}`;
    this.#windows ??= new Map();
    const window = this.#windows.get(key) ?? this.#partOf(filter, part).window(offset, limit);
    this.#windows.set(key, window);
    return window;
  }

  begin(): Promise<unknown> {
    return this.#whole.begin();
  }

  prefetch(key: keyof T & string, values: readonly string[]): void {
    if (this.#whole.listing !== undefined) return;
    void Promise.allSettled(values.map((value) => this.#ask({ key, value, all: true })));
  }

  lookUps(): number {
    return this.#lookUps;
  }

  #ask(question: Question<T>): Promise<readonly T[]> {
    this.#questions ??= new DataLoader<Question<T>, readonly T[], string>(
      (asked) => this.#whole.answer(asked).catch((error: unknown) => asked.map(() => asError(error))),
      { cacheKeyFn: ({ key, value, all }) => `${all} ${key} ${value}` },
    );
    return this.#questions.load(question);
  }

  /** The source of the list without a filter. */
  get #whole(): ListSource<T> {
    this.#source ??= this.#open(undefined);
    return this.#source;
  }

  #partOf(filter: Filter | undefined, key: string): ListSource<T> {
    if (key === '') return this.#whole;
    this.#parts ??= new Map();
    const part = this.#parts.get(key) ?? this.#open(filter);
    this.#parts.set(key, part);
    return part;
  }
}

/** Returns the parameters of a filter as one text, which no other parameters have; empty if it selects all. */
export const filterKey = (filter: Query = {}): string =>
  Object.entries(filter)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join('&');

export const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));
