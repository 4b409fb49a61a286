import { LRUCache } from 'lru-cache';

type Options<Value extends {}> = Pick<
  LRUCache.OptionsTTLLimit<string, Value, unknown>,
  'ttl' | 'ttlResolution' | 'noUpdateTTL' | 'dispose'
>;

/** Least-recently-used entries by text, which take memory as they come: `max` of LRUCache takes all of it at once. */
export class Lru<Value extends {}> extends LRUCache<string, Value> {
  /** @param max how many entries are kept. */
  constructor(max: number, options: Partial<Options<Value>> = {}) {
    super({ ...options, maxSize: max, sizeCalculation: () => 1 });
  }
}
