/** Chance from a seed: Chris Doty-Humphrey's sfc32, seeded by an FNV-1a hash of a text. */
export class Chance {
  #a = 0x9e3779b9;
  #b = 0;
  #c = 0;
  #counter = 1;

  constructor(seed: string) {
    let hash = 0x811c9dc5;
    for (const character of seed) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
    this.#b = hash;
    this.#c = Math.imul(hash, 0x85ebca6b) >>> 0;
    for (let round = 0; round < 15; round += 1) this.#next();
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) >>> 0;
    this.#counter = (this.#counter + 1) >>> 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) >>> 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) >>> 0;
    return sum;
  }

  /** In [0, 1). */
  number(): number {
    return this.#next() / 2 ** 32;
  }

  /** In [low, high). */
  between(low: number, high: number): number {
    return low + this.number() * (high - low);
  }

  /** A whole number in [0, count). */
  below(count: number): number {
    return Math.floor(this.number() * count);
  }

  happens(probability: number): boolean {
    return this.number() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }

  bytes(count: number): Buffer {
    const bytes = Buffer.alloc(count);
    for (let at = 0; at < count; at += 1) bytes[at] = this.#next() & 0xff;
    return bytes;
  }

  /** A UUID of version 4. */
  uuid(): string {
    const bytes = this.bytes(16);
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    const text = bytes.toString('hex');
    return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join(
      '-',
    );
  }
}
