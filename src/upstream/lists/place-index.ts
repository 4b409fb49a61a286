import { entropy } from '../../common/entropy.ts';

/** The part of a table's slots that may be taken before the table grows. */
const LOAD = 0.7;
const GROWTH = 1.5;
const MIN_CAPACITY = 16;
const UINT32 = 2 ** 32;

/** Random in each process, so that nobody can construct values that collide. */
const SEED_HIGH = entropy.bytes(4).readUInt32LE() | 1;
const SEED_LOW = entropy.bytes(4).readUInt32LE() | 1;

/** The two halves of the latest hash. Two variables cost less than an object for each value. */
let hashHigh = 0;
let hashLow = 0;

/**
 * Hashes a value to 64 bits. Upper and lower case have the same hash. So do some other characters, but those occur in no key.
 */
function hash(value: string): void {
  let high = SEED_HIGH;
  let low = SEED_LOW;
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at) | 0x20;
    high = Math.imul(high ^ code, 0x85ebca6b);
    high = (high << 13) | (high >>> 19);
    low = Math.imul(low ^ code, 0xc2b2ae35);
    low = (low << 15) | (low >>> 17);
  }
  high = Math.imul(high ^ (high >>> 16) ^ low, 0x7feb352d);
  low = Math.imul(low ^ (low >>> 15) ^ high, 0x846ca68b);
  hashHigh = (high ^ (high >>> 15)) >>> 0;
  hashLow = (low ^ (low >>> 16)) >>> 0;
}

const grownTo = <T extends Uint32Array | Int32Array>(
  make: (length: number) => T,
  old: T,
  length: number,
): T => {
  const grown = make(length);
  grown.set(old);
  return grown;
};
const uint32 = (length: number) => new Uint32Array(length);
const int32 = (length: number) => new Int32Array(length);

/**
 * Leads from the hash of a value to the items that have it, by open addressing and a chain of the items with the same value.
 * An item of five keys takes 110 bytes; Maps of the same keys would take 434 (decision 9).
 */
class KeyTable {
  #high: Uint32Array;
  #low: Uint32Array;
  /** By slot: the item that was added last, plus 1; 0 for a free slot. */
  #head: Uint32Array;
  /** By item: the one that was added before it with the same value, plus 1; 0 for none. */
  #next: Uint32Array;
  #values = 0;

  constructor(expected: number) {
    const capacity = Math.max(MIN_CAPACITY, Math.ceil(expected / LOAD));
    this.#high = uint32(capacity);
    this.#low = uint32(capacity);
    this.#head = uint32(capacity);
    this.#next = uint32(Math.max(MIN_CAPACITY, expected));
  }

  get bytes(): number {
    return this.#head.byteLength * 3 + this.#next.byteLength;
  }

  add(item: number, value: string): void {
    if (this.#values >= this.#head.length * LOAD) this.#grow();
    if (item >= this.#next.length) {
      this.#next = grownTo(uint32, this.#next, Math.ceil((item + 1) * GROWTH));
    }
    hash(value);
    const slot = this.#slot(hashHigh, hashLow);
    const head = this.#head[slot] ?? 0;
    if (head === 0) {
      this.#values += 1;
      this.#high[slot] = hashHigh;
      this.#low[slot] = hashLow;
    }
    this.#next[item] = head;
    this.#head[slot] = item + 1;
  }

  /** Calls back with each item that has the value, the one added last first. */
  forEach(value: string, take: (item: number) => void): void {
    hash(value);
    let at = this.#head[this.#slot(hashHigh, hashLow)] ?? 0;
    while (at !== 0) {
      take(at - 1);
      at = this.#next[at - 1] ?? 0;
    }
  }

  /** Returns the slot of a hash, or the free one that it would get. */
  #slot(high: number, low: number): number {
    const capacity = this.#head.length;
    let slot = Math.floor((high / UINT32) * capacity);
    while (this.#head[slot] !== 0 && (this.#high[slot] !== high || this.#low[slot] !== low)) {
      slot = slot + 1 === capacity ? 0 : slot + 1;
    }
    return slot;
  }

  #grow(): void {
    const [high, low, head] = [this.#high, this.#low, this.#head];
    const capacity = Math.ceil(head.length * GROWTH);
    this.#high = uint32(capacity);
    this.#low = uint32(capacity);
    this.#head = uint32(capacity);
    for (const [old, item] of head.entries()) {
      if (item === 0) continue;
      const slot = this.#slot(high[old] ?? 0, low[old] ?? 0);
      this.#high[slot] = high[old] ?? 0;
      this.#low[slot] = low[old] ?? 0;
      this.#head[slot] = item;
    }
  }
}

/**
 * Where the items of a list stood when they were last seen, by each key. It holds hashes of the keys, and positions, and
 * nothing that a caller is shown: a look-up reads the item from its position, and compares. A wrong place, or two keys of one
 * hash, cost a call and never an answer.
 *
 * An item takes about 25 bytes, and 21 for each further key.
 */
export class PlaceIndex {
  readonly keys: readonly string[];
  readonly #tables: ReadonlyMap<string, KeyTable>;
  readonly #idTable: KeyTable;
  /**
   * The position of each item, counted from `#origin`. When items are added at the head of the list, changing it moves all
   * others at once.
   */
  #places: Int32Array;
  #origin = 0;
  #size = 0;

  /**
   * @param keys names of the fields that are looked up, the id first.
   * @param expected about how many items are going to be added.
   */
  constructor(keys: readonly string[], expected: number) {
    this.keys = keys;
    this.#tables = new Map(keys.map((key) => [key, new KeyTable(expected)]));
    this.#idTable = this.#table(keys[0] ?? '');
    this.#places = int32(Math.max(MIN_CAPACITY, expected));
  }

  /** The number of items in the index. */
  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return [...this.#tables.values()].reduce((sum, table) => sum + table.bytes, this.#places.byteLength);
  }

  /**
   * Adds an item, or moves one that is known.
   *
   * @param item the fields of `keys`; a value that is no string cannot be looked up.
   * @returns true if its id was new.
   */
  add(position: number, item: Readonly<Record<string, unknown>>): boolean {
    const id = String(item[this.keys[0] ?? '']);
    const known = this.#itemOf(id);
    if (known !== undefined) {
      this.#places[known] = position - this.#origin;
      return false;
    }
    const added = this.#size;
    this.#size += 1;
    if (added >= this.#places.length) {
      this.#places = grownTo(int32, this.#places, Math.ceil((added + 1) * GROWTH));
    }
    this.#places[added] = position - this.#origin;
    for (const [key, table] of this.#tables) {
      const value = item[key];
      if (typeof value === 'string' && value !== '') table.add(added, value);
    }
    return true;
  }

  /** Returns the positions, in ascending order, at which items with this value of a key were last seen. */
  places(key: string, value: string): readonly number[] {
    const found: number[] = [];
    this.#table(key).forEach(value, (item) => found.push((this.#places[item] ?? 0) + this.#origin));
    return found.length < 2 ? found : found.sort((one, other) => one - other);
  }

  /** Returns the position at which the item with this id was last seen; undefined if it is not known. */
  placeOf(id: string): number | undefined {
    const item = this.#itemOf(id);
    return item === undefined ? undefined : (this.#places[item] ?? 0) + this.#origin;
  }

  /** Moves every item by `by` places. */
  shift(by: number): void {
    this.#origin += by;
  }

  #itemOf(id: string): number | undefined {
    let found: number | undefined;
    this.#idTable.forEach(id, (item) => {
      found = item;
    });
    return found;
  }

  #table(key: string): KeyTable {
    const table = this.#tables.get(key);
    if (table === undefined) throw new Error(`The list is not indexed by "${key}".`);
    return table;
  }
}
