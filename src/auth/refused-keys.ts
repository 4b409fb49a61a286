import { createHmac } from 'node:crypto';
import { entropy } from '../common/entropy.ts';
import { Lru } from '../common/lru.ts';

/** How long a refusal is remembered, in milliseconds. */
const REMEMBERED_MS = 60_000;
/** Refusals that one address may collect in that time. People behind one address mistype a key less often. */
const MAX_REFUSALS = 10;
/** How many keys are remembered, and how many addresses. */
const MAX_REMEMBERED = 10_000;

/** The credentials that a caller presents to the bootstrap. */
interface PresentedKey {
  readonly clientId: string;
  readonly apiKey: string;
  /** The client's secret; undefined if the key is presented alone. */
  readonly clientSecret?: string | undefined;
  /** Undefined where it is not known. */
  readonly address: string | undefined;
}

/**
 * Remembers which keys and pairs the upstream has refused, so that nobody can try one after the other. A key and a secret are
 * refused as a pair: the upstream does not say which of them was wrong, so the same key may come with another secret.
 */
export interface RefusedKeys {
  /** Returns undefined if the upstream may be asked; else whether the pair has been refused, or too many from its address. */
  find(presented: PresentedKey): 'pair' | 'address' | undefined;
  add(presented: PresentedKey): void;
}

export function createRefusedKeys(): RefusedKeys {
  const options = { ttl: REMEMBERED_MS };
  // Neither key nor secret is kept, only a keyed hash of the pair that this process alone can recompute.
  const hashKey = entropy.bytes(32);
  const pairs = new Lru<true>(MAX_REMEMBERED, options);
  const addresses = new Lru<number>(MAX_REMEMBERED, { ...options, noUpdateTTL: true });
  const recognised = ({ clientId, apiKey, clientSecret }: PresentedKey): string =>
    createHmac('sha256', hashKey)
      .update(JSON.stringify([clientId.toLowerCase(), apiKey, clientSecret]))
      .digest('base64url');

  return {
    find(presented) {
      if (pairs.has(recognised(presented))) return 'pair';
      const count = presented.address === undefined ? 0 : (addresses.get(presented.address) ?? 0);
      return count >= MAX_REFUSALS ? 'address' : undefined;
    },
    add(presented) {
      pairs.set(recognised(presented), true);
      const { address } = presented;
      if (address !== undefined) addresses.set(address, (addresses.get(address) ?? 0) + 1);
    },
  };
}
