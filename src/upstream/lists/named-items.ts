import { Lru } from '../../common/lru.ts';

/** Items that are remembered. */
const MAX_ITEMS = 1_000;
/** For how long a list is not doubted again for the same item, in milliseconds: the service may list it to nobody. */
const REMEMBERED_MS = 10_000;

/** The items for which a list has been doubted a short while ago, because an event named them and the index lacked them. */
export class NamedItems {
  /** When the list was last doubted for an item, by key and value. */
  readonly #doubtedAt = new Lru<number>(MAX_ITEMS);

  /**
   * @param now milliseconds of a monotonic clock.
   * @returns true if the list has to be doubted for the item; it is remembered as doubted then.
   */
  note(key: string, value: string, now: number): boolean {
    const name = `${key} ${value}`;
    if (now - (this.#doubtedAt.get(name) ?? Number.NEGATIVE_INFINITY) < REMEMBERED_MS) return false;
    this.#doubtedAt.set(name, now);
    return true;
  }
}
