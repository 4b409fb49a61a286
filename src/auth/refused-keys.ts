import { createHmac } from 'node:crypto';
import { entropy } from '../common/entropy.ts';
import { Lru } from '../common/lru.ts';

/** How long a refusal is remembered, in milliseconds. */
const REMEMBERED_MS = 60_000;
/** How many keys are remembered. */
const MAX_REMEMBERED = 10_000;

/** The credentials that a caller presents to the bootstrap. */
interface PresentedKey {
  readonly clientId: string;
  readonly apiKey: string;
  /** The client's secret; undefined if the key is presented alone. */
  readonly clientSecret?: string | undefined;
}

/**
 * Remembers which keys and pairs the upstream has just refused, so that it is not asked about them again. `guesses.ts` bounds how many an
 * address may try. A key and a secret are refused as a pair: the upstream does not say which of them was wrong, so the same key may
 * come with another secret.
 */
export interface RefusedKeys {
  has(presented: PresentedKey): boolean;
  add(presented: PresentedKey): void;
}

export function createRefusedKeys(): RefusedKeys {
  // Neither key nor secret is kept, only a keyed hash of the pair that this process alone can recompute.
  const hashKey = entropy.bytes(32);
  const pairs = new Lru<true>(MAX_REMEMBERED, { ttl: REMEMBERED_MS });
  const recognised = ({ clientId, apiKey, clientSecret }: PresentedKey): string =>
    createHmac('sha256', hashKey)
      .update(JSON.stringify([clientId.toLowerCase(), apiKey, clientSecret]))
      .digest('base64url');

  return {
    has: (presented) => pairs.has(recognised(presented)),
    add: (presented) => void pairs.set(recognised(presented), true),
  };
}
