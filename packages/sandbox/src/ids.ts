import { v4 } from 'uuid';

/**
 * Deterministic identifiers: the same seed yields the same ids. Each kind of thing has a stream of its own, so that
 * how many deliveries ran does not change the id of the next transaction.
 */
export class Ids {
  readonly #seed: number;
  #run = '';
  readonly #streams = new Map<string, () => number>();

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** From here on ids are those of this run: another run of the same seed makes others. */
  beginRun(run: string): void {
    this.#run = `${run}:`;
    this.#streams.clear();
  }

  /** A UUID of version 4 shape (RFC 9562). */
  uuid(stream: string): string {
    const random = new Uint8Array(16);
    const words = new DataView(random.buffer);
    for (let offset = 0; offset < 16; offset += 4) words.setUint32(offset, this.#next(stream));
    return v4({ random });
  }

  /** `count` decimal digits. */
  digits(stream: string, count: number): string {
    let text = '';
    while (text.length < count) text += String(this.#next(stream) % 10);
    return text;
  }

  /** A secret of 48 hexadecimal characters with a prefix that says what it is. */
  secret(stream: string, prefix: string): string {
    let text = prefix;
    for (let word = 0; word < 6; word += 1) text += this.#next(stream).toString(16).padStart(8, '0');
    return text;
  }

  #next(stream: string): number {
    let generator = this.#streams.get(stream);
    if (generator === undefined) {
      generator = sfc32(`${this.#seed}:${this.#run}${stream}`);
      this.#streams.set(stream, generator);
    }
    return generator();
  }
}

/** Chris Doty-Humphrey's sfc32, seeded by an FNV-1a hash of the text; 32 unsigned bits a call. */
function sfc32(text: string): () => number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  let a = 0x9e3779b9;
  let b = hash;
  let c = Math.imul(hash, 0x85ebca6b) >>> 0;
  let counter = 1;
  const next = () => {
    const sum = (a + b + counter) >>> 0;
    counter = (counter + 1) >>> 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) >>> 0;
    c = ((c << 21) | (c >>> 11)) >>> 0;
    c = (c + sum) >>> 0;
    return sum;
  };
  for (let round = 0; round < 15; round += 1) next();
  return next;
}
