import { createHmac } from 'node:crypto';
import { entropy } from '../common/entropy.ts';
import { Lru } from '../common/lru.ts';

/** How long a refusal is remembered, in milliseconds. */
const REMEMBERED_MS = 60_000;
/** Refusals that one address may collect in that time. People mistype a key less often, also behind one address. */
const MAX_REFUSALS = 10;
/** Keys, and addresses, that are remembered. */
const MAX_REMEMBERED = 10_000;

/** What is presented to the bootstrap. */
interface PresentedKey {
  readonly clientId: string;
  readonly apiKey: string;
  /** The client's secret, where it is presented too; undefined where the key stands alone. */
  readonly clientSecret?: string | undefined;
  /** Undefined where it is not known. */
  readonly address: string | undefined;
}

/**
 * Remembers what the upstream has refused, so that nobody can try one after the other. A key and a secret are refused as a
 * pair: the upstream does not say which of them was wrong, so the same key may come with another secret.
 */
export interface RefusedKeys {
  /** Undefined where the upstream may be asked; else whether it is for the pair, or for the address that it came from. */
  find(presented: PresentedKey): 'pair' | 'address' | undefined;
  add(presented: PresentedKey): void;
}

export function createRefusedKeys(): RefusedKeys {
  const options = { ttl: REMEMBERED_MS };
  // Neither key nor secret is kept, only what the pair can be recognised by, and by this process alone.
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
