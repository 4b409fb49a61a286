const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * A text with more bytes is parsed while it comes. 23 MB then block the process for 8 ms at a time, not once for 71 ms
 * (decision 9).
 */
const LONG_BYTES = 1024 * 1024;
const BYTE_ORDER_MARK = 0xfeff;

/** A body that has been read. */
export interface ReadJson {
  /** The parsed value; undefined for what is not JSON. */
  readonly body: unknown;
  /** The text as it came; empty for a long one. */
  readonly text: string;
  /** The length of the text, in bytes. */
  readonly bytes: number;
}

/**
 * Reads JSON that comes in chunks. Parsing a long text at once would block the process, so the lists of a long object are
 * parsed chunk by chunk as they come, and only their values are kept.
 */
export class JsonReader {
  readonly #longBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;
  #long: LongObject | undefined;

  /** @param longBytes a text with more bytes is parsed while it comes. */
  constructor(longBytes = LONG_BYTES) {
    this.#longBytes = longBytes;
  }

  push(chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#long !== undefined) {
      this.#long.push(chunk);
      return;
    }
    this.#chunks.push(chunk);
    if (this.#length <= this.#longBytes) return;
    this.#long = new LongObject();
    for (const one of this.#chunks) this.#long.push(one);
    this.#chunks = [];
  }

  end(): ReadJson {
    const bytes = this.#length;
    if (this.#long !== undefined) return { body: orUndefined(() => this.#long?.end()), text: '', bytes };
    const [first] = this.#chunks;
    if (first === undefined) return { body: undefined, text: '', bytes };
    const text = withoutMark((this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)).toString());
    return { body: orUndefined(() => JSON.parse(text)), text, bytes };
  }
}

/** The text of an object whose own members that are arrays, its lists, have been taken out and parsed. */
class LongObject {
  /** The text without the items of its lists. In place of its items each list holds its number. */
  #rest = '';
  readonly #lists: unknown[][] = [];
  /** Chunks that have come and are not parsed yet: text of the rest, or of the open list. */
  #pending: Buffer[] = [];
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isObject = false;
  /** The list that is open. */
  #list: unknown[] | undefined;
  /** True if a comma stands before the next item of the open list. */
  #needsItem = false;
  #isBroken = false;

  push(chunk: Buffer): void {
    if (this.#isBroken) return;
    try {
      this.#scan(chunk);
    } catch {
      // It is not JSON, so later chunks are ignored.
      this.#isBroken = true;
      this.#pending = [];
    }
  }

  /** @throws SyntaxError for what is not JSON. */
  end(): unknown {
    if (this.#isBroken) throw new SyntaxError('This is no JSON.');
    this.#rest += Buffer.concat(this.#pending).toString();
    const value: unknown = JSON.parse(withoutMark(this.#rest));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    for (const [name, member] of Object.entries(value)) {
      if (Array.isArray(member)) define(value, name, this.#lists[Number(member[0])]);
    }
    return value;
  }

  #scan(chunk: Buffer): void {
    /** Where the unparsed text begins, and where the last comma between items of the open list is. */
    let start = 0;
    let comma = -1;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#inString = false;
        continue;
      }
      switch (byte) {
        case QUOTE:
          this.#inString = true;
          break;
        case OPEN_OBJECT:
          this.#depth += 1;
          if (this.#depth === 1) this.#isObject = true;
          break;
        case CLOSE_OBJECT:
          this.#depth -= 1;
          break;
        case COMMA:
          if (this.#list !== undefined && this.#depth === 2) comma = at;
          break;
        case OPEN_ARRAY:
          this.#depth += 1;
          if (this.#depth !== 2 || !this.#isObject) break;
          this.#rest += `${this.#text(chunk, start, at + 1)}${this.#lists.length}`;
          this.#list = [];
          this.#lists.push(this.#list);
          start = at + 1;
          break;
        case CLOSE_ARRAY:
          this.#depth -= 1;
          if (this.#list === undefined || this.#depth !== 1) break;
          this.#take(this.#text(chunk, start, at), false);
          this.#list = undefined;
          start = at;
          break;
      }
    }
    if (comma >= start) {
      this.#take(this.#text(chunk, start, comma), true);
      start = comma + 1;
    }
    if (start < chunk.length) this.#pending.push(start === 0 ? chunk : chunk.subarray(start));
  }

  /** Returns the pending text with part of a chunk after it. */
  #text(chunk: Buffer, start: number, end: number): string {
    if (this.#pending.length === 0) return chunk.toString('utf8', start, end);
    const text = Buffer.concat([...this.#pending, chunk.subarray(start, end)]).toString();
    this.#pending = [];
    return text;
  }

  /** Parses consecutive items, and adds them to the open list. */
  #take(text: string, isBeforeComma: boolean): void {
    const items: unknown[] = JSON.parse(`[${text}]`);
    if (items.length === 0 && (isBeforeComma || this.#needsItem))
      throw new SyntaxError('An item is missing.');
    this.#needsItem = isBeforeComma;
    for (const item of items) this.#list?.push(item);
  }
}

/** Sets a member, also one named `__proto__`. */
const define = (object: object, name: string, value: unknown): void => {
  Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
};

const withoutMark = (text: string): string => (text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);

function orUndefined(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return undefined;
  }
}
