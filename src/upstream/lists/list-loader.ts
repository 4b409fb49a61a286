import DataLoader from 'dataloader';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import { UpstreamError } from '../call/errors.ts';
import { present } from '../call/json.ts';
import type { Rest } from '../call/rest.ts';
import type { ClientLists } from './client-lists.ts';
import { coverWindow } from './page-cover.ts';
import {
  isWhole,
  type ListDefinition,
  type Paging,
  readFirst,
  readSlice,
  readWindow,
  type Slice,
} from './paging.ts';
import type { ListPlaces } from './places.ts';
import { Listing } from './whole-list-loader.ts';

/** A window of a list, and how many items the service says that the list holds. */
export interface ListWindow<T> {
  readonly items: readonly T[];
  readonly total: number;
}

/** A list of the client's within one operation: windows of it and look-ups in it, read as few times as may be. */
export interface ClientList<T> {
  /** The items at `offset` to `offset + limit - 1`; at most 100. */
  window(offset: number, limit: number): MaybePromise<ListWindow<T>>;
  /** Begins to read what look-ups are going to need; resolves once the list has arrived, or does not come as a whole. */
  begin(): Promise<unknown>;
  /**
   * The item whose key is `value`, or null. Once the list has arrived as a whole the answer is no promise, so that a
   * hundred rows cost no hundred turns of the microtask queue.
   *
   * @param key one of the keys of the list's definition.
   */
  find(key: keyof T & string, value: string): MaybePromise<T | null>;
  /** All items whose key is `value`, in the order of the list; like `find` in all else. */
  where(key: keyof T & string, value: string): MaybePromise<readonly T[]>;
  /** How many questions it has answered so far. */
  lookUps(): number;
}

export interface ListLoader<T> extends ClientList<T> {
  /** `where` for each of many values, before anybody asks. */
  prefetch(key: keyof T & string, values: readonly string[]): void;
  /** Tells of ids that are looked up, in batches, so that what belongs to them can be read beside them. */
  onLookUps(take: (ids: readonly string[]) => void): void;
  /** Like `where`, with a comparison of its own: keys may differ from `value` in case. */
  matching(key: keyof T & string, value: string, matches: (item: T) => boolean): MaybePromise<readonly T[]>;
}

interface Question<T> {
  readonly key: keyof T & string;
  readonly value: string;
  readonly matches: (item: T) => boolean;
  /** Whether all items are wanted, or the first that is found. */
  readonly all: boolean;
}

/** How often what has been looked up is looked up again where the list has changed in between. */
const ROUNDS = 6;

/**
 * Makes the loader of one list within one operation. A list that comes in one answer is read whole. Of any other the pages
 * are read that a window or a look-up needs: where an item stands is known from a walk (places.ts), and what is shown of it
 * is read from there, under the caller's own credential.
 */
export function createListLoader<T extends object>(
  rest: Rest,
  list: ListDefinition<T>,
  lists: ClientLists,
  now: () => number,
): ListLoader<T> {
  return new Loader(rest, list, lists, now);
}

class Loader<T extends object> implements ListLoader<T> {
  readonly #rest: Rest;
  readonly #list: ListDefinition<T>;
  readonly #paging: Paging;
  readonly #places: ListPlaces<T>;
  readonly #now: () => number;
  readonly #questions: DataLoader<Question<T>, readonly T[], string>;
  #whole: Promise<Listing<T> | undefined> | undefined;
  #arriving: Promise<Listing<T> | undefined> | undefined;
  #arrived: Listing<T> | undefined;
  #tell: ((ids: readonly string[]) => void) | undefined;
  /** What has been read once is not read again within the operation, nor what could not be read. */
  readonly #windows = new Map<string, Promise<ListWindow<T>>>();
  #lookUps = 0;

  constructor(rest: Rest, list: ListDefinition<T>, lists: ClientLists, now: () => number) {
    this.#rest = rest;
    this.#list = list;
    this.#paging = lists.paging(list.route);
    this.#places = lists.of(rest.clientId, list);
    this.#now = now;
    this.#questions = new DataLoader((questions) => this.#answer(questions), {
      cacheKeyFn: ({ key, value, all }) => `${all} ${key} ${value}`,
    });
  }

  begin(): Promise<unknown> {
    return this.#arrive();
  }

  find(key: keyof T & string, value: string): MaybePromise<T | null> {
    this.#lookUps += 1;
    if (this.#arrived !== undefined) return this.#arrived.find(key, value);
    return this.#arrive().then((whole) => {
      if (whole !== undefined) return whole.find(key, value);
      const question = { ...this.#allOf(key, value), all: false };
      return this.#questions.load(question).then(([item]) => item ?? null);
    });
  }

  where(key: keyof T & string, value: string): MaybePromise<readonly T[]> {
    this.#lookUps += 1;
    if (this.#arrived !== undefined) return this.#arrived.where(key, value);
    return this.#arrive().then(
      (whole) => whole?.where(key, value) ?? this.#questions.load(this.#allOf(key, value)),
    );
  }

  matching(key: keyof T & string, value: string, matches: (item: T) => boolean): MaybePromise<readonly T[]> {
    return this.#arrive().then(
      (whole) => whole?.items.filter(matches) ?? this.#questions.load({ key, value, matches, all: true }),
    );
  }

  prefetch(key: keyof T & string, values: readonly string[]): void {
    const ask = (value: string) => this.#questions.load(this.#allOf(key, value));
    // What fails, fails where it is looked up.
    void this.#arrive().then(
      (whole) => (whole === undefined ? Promise.allSettled(values.map(ask)) : undefined),
      () => undefined,
    );
  }

  onLookUps(take: (ids: readonly string[]) => void): void {
    this.#tell = take;
  }

  window(offset: number, limit: number): Promise<ListWindow<T>> {
    this.#lookUps += 1;
    const key = `${offset} ${limit}`;
    let window = this.#windows.get(key);
    if (window === undefined) {
      window = this.#readWindow(offset, limit);
      this.#windows.set(key, window);
    }
    return window;
  }

  async #readWindow(offset: number, limit: number): Promise<ListWindow<T>> {
    if (this.#whole !== undefined || this.#places.comesWhole === true) {
      const whole = await this.#readOnce();
      if (whole !== undefined) {
        return { items: whole.items.slice(offset, offset + limit), total: whole.items.length };
      }
    }
    const { items, total } = await readWindow(this.#rest, this.#list, this.#paging, offset, limit);
    this.#places.observe(total);
    return { items, total };
  }

  lookUps(): number {
    return this.#lookUps;
  }

  #allOf(key: keyof T & string, value: string): Question<T> {
    return { key, value, matches: (item) => item[key] === value, all: true };
  }

  /** The list as a whole; undefined where it does not come in one answer, and where its items stand is known instead. */
  #arrive(): Promise<Listing<T> | undefined> {
    this.#arriving ??= this.#readOnce().then(async (whole) => {
      if (whole === undefined) await this.#places.places(this.#rest);
      return whole;
    });
    return this.#arriving;
  }

  /** The list as a whole; undefined where it does not come in one answer. */
  #readOnce(): Promise<Listing<T> | undefined> {
    this.#whole ??= this.#readWhole().then((items) => {
      if (items !== undefined) this.#arrived = new Listing(items);
      return this.#arrived;
    });
    return this.#whole;
  }

  async #readWhole(): Promise<readonly T[] | undefined> {
    const places = this.#places;
    if (places.index !== undefined && places.comesWhole !== true) return undefined;
    if (places.comesWhole !== false || this.#paging.firstPage === undefined) {
      const first = await readFirst(this.#rest, this.#list, this.#paging);
      places.comesWhole = isWhole(first);
      if (places.comesWhole) return first.items;
      if (first.total > this.#paging.largest) return undefined;
    }
    // It may still fit in a page of the largest size.
    const page = await readSlice(this.#rest, this.#list, this.#paging, 0, this.#paging.largest);
    return isWhole(page) ? page.items : undefined;
  }

  /**
   * Answers questions from the pages on which the index has seen what they ask for. What is not found there has moved: it is
   * looked for as far from its place as its neighbours are from theirs, then in an index made new.
   */
  async #answer(questions: readonly Question<T>[]): Promise<(readonly T[] | Error)[]> {
    const [id] = this.#list.keys;
    this.#tell?.(questions.filter(({ key }) => key === id).map(({ value }) => value));
    try {
      const found = await new Search(this.#rest, this.#list, this.#paging, this.#places, this.#now).run(
        questions,
      );
      return questions.map((question) => found.get(question) ?? []);
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      return questions.map(() => failure);
    }
  }
}

/** One batch of questions to a list that is indexed. */
class Search<T extends object> {
  readonly #rest: Rest;
  readonly #list: ListDefinition<T>;
  readonly #paging: Paging;
  readonly #places: ListPlaces<T>;
  readonly #since: number;
  /** What has been read, by position. */
  #read = new Map<number, T>();
  /** How far items were found from where the index has them, by the place of the index. */
  #shifts: { readonly place: number; readonly by: number }[] = [];

  constructor(rest: Rest, list: ListDefinition<T>, paging: Paging, places: ListPlaces<T>, now: () => number) {
    this.#rest = rest;
    this.#list = list;
    this.#paging = paging;
    this.#places = places;
    this.#since = now();
  }

  async run(questions: readonly Question<T>[]): Promise<ReadonlyMap<Question<T>, readonly T[]>> {
    const answers = new Map<Question<T>, readonly T[]>();
    let open = questions;
    await this.#places.places(this.#rest);
    for (let round = 0; round < ROUNDS; round += 1) {
      const { version } = this.#places;
      // Whether what is found is all, or nothing, only an index that holds all items tells. It is asked beside the reads.
      const [missing] = await Promise.all([
        this.#look(open, answers),
        open.some(({ all }) => all) ? this.#places.complete(this.#rest, this.#since) : undefined,
      ]);
      const needing = open.filter((question) => question.all || !answers.has(question));
      if (needing.length === 0) return answers;
      if (missing.length === 0) {
        await this.#places.complete(this.#rest, this.#since);
        if (this.#places.version === version) {
          for (const question of needing) if (!answers.has(question)) answers.set(question, []);
          return answers;
        }
      } else if (this.#places.version === version) {
        // The index has them where they are not: it is made new.
        await this.#places.renew(this.#rest);
      }
      for (const question of needing) answers.delete(question);
      open = needing;
      this.#read = new Map();
      this.#shifts = [];
    }
    throw new UpstreamError(
      'UPSTREAM_UNAVAILABLE',
      `The service's list GET ${this.#list.route} changes faster than it can be read.`,
    );
  }

  /** Reads where the index has what is asked for, and then where it may have moved. Returns what is not there. */
  async #look(
    questions: readonly Question<T>[],
    answers: Map<Question<T>, readonly T[]>,
  ): Promise<readonly Question<T>[]> {
    const index = await this.#places.places(this.#rest);
    const asked = questions.map((question) => ({
      question,
      places: index.places(question.key, question.value),
    }));
    await this.#readPlaces(
      asked.flatMap(({ places }) => places),
      false,
    );
    let missing = this.#settle(asked, answers);
    for (const around of [false, true]) {
      if (missing.length === 0) break;
      const places = missing.flatMap((one) => one.places);
      await this.#readPlaces(
        places.map((place) => Math.max(0, place + this.#shiftNear(place))),
        around,
      );
      missing = this.#settle(asked, answers);
    }
    return missing.map(({ question }) => question);
  }

  /** Answers what can be answered by now. Returns the questions whose items have not been read, with their places. */
  #settle(
    asked: readonly { readonly question: Question<T>; readonly places: readonly number[] }[],
    answers: Map<Question<T>, readonly T[]>,
  ): { readonly question: Question<T>; readonly places: readonly number[] }[] {
    const missing: { readonly question: Question<T>; readonly places: readonly number[] }[] = [];
    const positions = [...this.#read].sort(([one], [other]) => one - other);
    const byKey = new Map<string, Map<string, T[]>>();
    for (const { question } of asked) {
      if (byKey.has(question.key)) continue;
      const groups = new Map<string, T[]>();
      for (const [, item] of positions) {
        const value = present(item[question.key])?.toLowerCase() ?? '';
        const group = groups.get(value);
        if (group === undefined) groups.set(value, [item]);
        else group.push(item);
      }
      byKey.set(question.key, groups);
    }
    for (const one of asked) {
      const { question, places } = one;
      if (places.length === 0) continue;
      const candidates = byKey.get(question.key)?.get(question.value.toLowerCase()) ?? [];
      const items = this.#distinct(candidates.filter(question.matches));
      if (question.all ? items.length >= places.length : items.length > 0) answers.set(question, items);
      else if (candidates.length < places.length) missing.push(one);
    }
    return missing;
  }

  #distinct(items: readonly T[]): readonly T[] {
    const ids = new Set<string>();
    return items.length < 2
      ? items
      : items.filter((item) => !ids.has(this.#idOf(item)) && ids.add(this.#idOf(item)));
  }

  /** How far what stood near a place was found from its own. */
  #shiftNear(place: number): number {
    let nearest: { readonly place: number; readonly by: number } | undefined;
    for (const shift of this.#shifts) {
      if (nearest === undefined || Math.abs(shift.place - place) < Math.abs(nearest.place - place)) {
        nearest = shift;
      }
    }
    return nearest?.by ?? 0;
  }

  /**
   * Reads what stands at these places, with as few pages as hold them, each as small as that allows.
   *
   * @param around whether to read full pages, so that what has moved a little is on them.
   */
  async #readPlaces(places: readonly number[], around: boolean): Promise<void> {
    const size = this.#places.pageSize;
    const wanted = new Map<number, { least: number; most: number }>();
    for (const place of places) {
      if (!around && this.#read.has(place)) continue;
      const page = Math.floor(place / size);
      const range = wanted.get(page);
      if (range === undefined) wanted.set(page, { least: place, most: place });
      else {
        range.least = Math.min(range.least, place);
        range.most = Math.max(range.most, place);
      }
    }
    await Promise.all(
      Array.from(wanted, ([page, { least, most }]) =>
        around ? this.#readPage(page, size) : this.#readRange(least, most - least + 1),
      ),
    );
  }

  async #readRange(offset: number, length: number): Promise<void> {
    const cover = coverWindow(offset, length, this.#paging);
    await Promise.all(cover.pages.map((page) => this.#readPage(page - 1, cover.size)));
  }

  async #readPage(page: number, size: number): Promise<void> {
    this.#take(await readSlice(this.#rest, this.#list, this.#paging, page, size));
  }

  #take({ start, items, total }: Slice<T>): void {
    this.#places.observe(total);
    const { index } = this.#places;
    for (const [at, item] of items.entries()) {
      this.#read.set(start + at, item);
      const place = index?.placeOf(this.#idOf(item));
      if (place !== undefined && place !== start + at) this.#shifts.push({ place, by: start + at - place });
    }
  }

  #idOf(item: T): string {
    // The id of a list's items is a string: `identified` has seen to it.
    return String(Reflect.get(item, this.#list.keys[0] ?? ''));
  }
}
