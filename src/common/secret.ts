import { inspect } from 'node:util';

const MASK = '[secret]';

/**
 * A text that does not print: wherever a value is logged, joined into a message, inspected or written as JSON, this one
 * says `[secret]`. It is read in the one place that uses it, by `reveal()`.
 */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}
