import type { DocumentNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { PreparedDocument } from './prepared-operation.ts';

/** A cache of documents that are within the limits and valid, with all that is derived from them, as long as there is room. */
export class DocumentCache {
  readonly #kept: LRUCache<string, PreparedDocument>;
  readonly #sizes = new WeakMap<PreparedDocument, number>();

  /** @param maxBytes how much may be kept. */
  constructor(maxBytes: number) {
    this.#kept = new LRUCache({ maxSize: maxBytes, sizeCalculation: (document) => document.bytes });
  }

  /** The document of a text: it needs neither be parsed nor validated. Undefined where it is not kept. */
  find(text: string): DocumentNode | undefined {
    return this.#kept.peek(text)?.node;
  }

  /** Keeps a document, or notes that it was used and what it takes now. */
  keep(document: PreparedDocument): void {
    const { text, bytes } = document;
    if (this.#kept.get(text) === document && this.#sizes.get(document) === bytes) return;
    // A size is taken only of what is new.
    this.#kept.delete(text);
    this.#sizes.set(document, bytes);
    this.#kept.set(text, document);
  }
}
