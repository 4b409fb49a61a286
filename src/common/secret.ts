import { inspect } from 'node:util';

const MASK = '[secret]';

/**
 * A text that does not print: logged, joined into a message, inspected or written as JSON, it reads `[secret]`. The one place
 * that uses it reads it by `reveal()`.
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
