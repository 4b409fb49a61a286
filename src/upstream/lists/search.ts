import type { UpstreamError } from '../call/errors.ts';
import { present } from '../call/json.ts';
import { changesTooFast } from './envelope.ts';
import { comparable, type Question } from './listing.ts';
import { isOfAnswer } from './page-range.ts';
import type { ListPlaces, Moment } from './places.ts';
import type { ListReader } from './reader.ts';
import type { ListSlice } from './slice.ts';

/** A look-up. Its comparison may be its own, because a key may differ from `value` in case. */
export interface Sought<T> extends Question<T> {
  readonly matches?: (item: T) => boolean;
}

/** How many rounds a look-up makes if the list changes in between. */
const ROUNDS = 6;

/**
 * Answers questions from the pages on which the index has seen their items. An item that is not there has moved: it is looked
 * for at the offset by which its neighbours moved, then by a new index.
 *
 * @param since when the questions were asked. An item counts as absent only if an index was complete at that time or later.
 */
export async function search<T extends object>(
  reader: ListReader<T>,
  places: ListPlaces<T>,
  questions: readonly Sought<T>[],
  since: Moment,
): Promise<readonly (readonly T[])[]> {
  const answers = new Map<Sought<T>, readonly T[]>();
  let open = questions;
  await places.index(reader);
  for (let round = 0; round < ROUNDS; round += 1) {
    const { version } = places;
    // Only a complete index shows that there are no further items. It is confirmed beside the reads.
    const [{ missing, refusal }] = await Promise.all([
      new Round(reader, places, answers).look(open),
      open.some(({ all }) => all) ? places.ensureComplete(reader, since) : undefined,
    ]);
    open = open.filter((question) => question.all || !answers.has(question));
    if (open.length > 0 && missing.length === 0) await places.ensureComplete(reader, since);
    if (open.length === 0 || (missing.length === 0 && places.version === version)) {
      return questions.map((question) => answers.get(question) ?? []);
    }
    if (missing.length > 0 && places.version === version) {
      const isConfirmed = refusal !== undefined && (await places.confirm(reader));
      // The list ends where it did: it has the page that does not come.
      if (isConfirmed && places.version === version) throw refusal;
      // The index has positions that are wrong.
      if (!isConfirmed) await places.walk(reader);
    }
    for (const question of open) answers.delete(question);
  }
  throw changesTooFast(reader.route);
}

/** A question, and the places at which the index has its items. */
interface Placed<T> {
  readonly question: Sought<T>;
  readonly at: readonly number[];
}

/** What a round has not found, and why. */
interface Looked<T> {
  readonly missing: readonly Sought<T>[];
  readonly refusal: UpstreamError | undefined;
}

/** One round of reading the pages that hold the items of the questions. */
class Round<T extends object> {
  readonly #reader: ListReader<T>;
  readonly #places: ListPlaces<T>;
  readonly #answers: Map<Sought<T>, readonly T[]>;
  /** The version of the index when the round began. */
  readonly #version: number;
  /** Items that have been read, by position. */
  readonly #read = new Map<number, T>();
  /** How far items were found from their places in the index. */
  readonly #shifts: { readonly place: number; readonly by: number }[] = [];
  #refusal: UpstreamError | undefined;

  constructor(reader: ListReader<T>, places: ListPlaces<T>, answers: Map<Sought<T>, readonly T[]>) {
    this.#reader = reader;
    this.#places = places;
    this.#answers = answers;
    this.#version = places.version;
  }

  /**
   * Reads the places of the index, then the places to which items may have moved. @returns the questions whose items are at neither,
   * and the error that the service answered with where the index has a page: the list may have lost it.
   */
  async look(questions: readonly Sought<T>[]): Promise<Looked<T>> {
    const index = await this.#places.index(this.#reader);
    const asked = questions.map((question) => ({ question, at: index.places(question.key, question.value) }));
    await this.#readRanges(asked.flatMap(({ at }) => at));
    let missing = this.#answer(asked);
    // What comes later is an answer to a guess, which may lie beyond the end.
    const refusal = this.#refusal;
    for (const read of [this.#readRanges, this.#readFullPages]) {
      if (missing.length === 0 || refusal !== undefined) break;
      await read.call(this, this.#moved(missing.flatMap(({ at }) => at)));
      missing = this.#answer(asked);
    }
    return { missing: missing.map(({ question }) => question), refusal };
  }

  /** Answers the questions that can be answered now. @returns the questions whose items have not been read. */
  #answer(asked: readonly Placed<T>[]): readonly Placed<T>[] {
    const items = [...this.#read].sort(([one], [other]) => one - other).map(([, item]) => item);
    const groups = new Map<string, Map<string, T[]>>();
    const groupsBy = (key: keyof T & string): Map<string, T[]> => {
      const known = groups.get(key) ?? Map.groupBy(items, (item) => present(item[key])?.toLowerCase() ?? '');
      groups.set(key, known);
      return known;
    };
    return asked.filter(({ question, at }) => {
      if (at.length === 0) return false;
      const {
        key,
        value,
        all,
        matches = (item: T) => comparable(item[key]) === comparable(value),
      } = question;
      // If an item moves between two reads, it is seen twice, and another item not at all.
      const candidates = this.#distinct(groupsBy(key).get(value.toLowerCase()) ?? []);
      const found = candidates.filter(matches);
      const isEach = candidates.length >= at.length;
      const isAnswered = all ? isEach : found.length > 0;
      if (isAnswered) this.#answers.set(question, found);
      return !isAnswered && !isEach;
    });
  }

  #distinct(items: readonly T[]): readonly T[] {
    const ids = new Set<string>();
    return items.filter((item) => ids.size < ids.add(this.#reader.idOf(item)).size);
  }

  /**
   * Returns where the items of these places may be now: each moved as far as the item nearest to it was found from its own place. A customer
   * may have 50,000 accounts that all have moved, so it goes through places and shifts side by side, once.
   */
  #moved(places: readonly number[]): readonly number[] {
    const shifts = this.#shifts.toSorted((one, other) => one.place - other.place);
    const distance = (at: number, place: number) =>
      Math.abs((shifts[at]?.place ?? Number.POSITIVE_INFINITY) - place);
    let at = 0;
    return places
      .toSorted((one, other) => one - other)
      .map((place) => {
        while (at + 1 < shifts.length && distance(at + 1, place) <= distance(at, place)) at += 1;
        return Math.max(0, place + (shifts[at]?.by ?? 0));
      });
  }

  /** Reads the items at these places with as few pages as possible, each as small as possible. */
  async #readRanges(places: readonly number[]): Promise<void> {
    const ranges = this.#byPage(places.filter((place) => !this.#read.has(place)));
    await Promise.all(
      ranges.map(({ least, most }) => this.#takeAll(this.#reader.range(least, most - least + 1))),
    );
  }

  /** Reads the full pages of these places, so that items that have moved a little are on them. */
  async #readFullPages(places: readonly number[]): Promise<void> {
    const size = this.#places.pageSize(this.#reader);
    await Promise.all(
      this.#byPage(places).map(({ page }) => this.#takeAll(this.#reader.page(page, size).then((it) => [it]))),
    );
  }

  /** Takes a page that is answered with an error for one without items. */
  async #takeAll(reading: Promise<readonly ListSlice<T>[]>): Promise<void> {
    try {
      for (const slice of await reading) this.#take(slice);
    } catch (error) {
      if (!isOfAnswer(error)) throw error;
      this.#refusal ??= error;
    }
  }

  /** Returns, for each page of the index that has some of the places, the least and the greatest of them. */
  #byPage(places: readonly number[]): readonly { page: number; least: number; most: number }[] {
    const size = this.#places.pageSize(this.#reader);
    const ranges = new Map<number, { page: number; least: number; most: number }>();
    for (const place of places) {
      const page = Math.floor(place / size);
      const { least, most } = ranges.get(page) ?? { least: place, most: place };
      ranges.set(page, { page, least: Math.min(least, place), most: Math.max(most, place) });
    }
    return [...ranges.values()];
  }

  #take({ start, items, total }: ListSlice<T>): void {
    this.#places.noteTotal(total, this.#version);
    for (const [at, item] of items.entries()) {
      const position = start + at;
      this.#read.set(position, item);
      const place = this.#places.known?.placeOf(this.#reader.idOf(item));
      if (place !== undefined && place !== position) this.#shifts.push({ place, by: position - place });
    }
  }
}
