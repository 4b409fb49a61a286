import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

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
  /** Undefined where it is not known. */
  readonly address: string | undefined;
}

/** Remembers which API keys the upstream has refused, so that nobody can try one after the other. */
export interface RefusedKeys {
  /** Undefined where the upstream may be asked; else whether it is for the key, or for the address that it came from. */
  find(presented: PresentedKey): 'key' | 'address' | undefined;
  add(presented: PresentedKey): void;
}

export function createRefusedKeys(): RefusedKeys {
  const options = { max: MAX_REMEMBERED, ttl: REMEMBERED_MS };
  // No key is kept, only what it can be recognised by.
  const keys = new LRUCache<string, true>(options);
  const addresses = new LRUCache<string, number>({ ...options, noUpdateTTL: true });
  const recognised = ({ clientId, apiKey }: PresentedKey): string =>
    createHash('sha256').update(`${clientId} ${apiKey}`).digest('base64url');

  return {
    find(presented) {
      if (keys.has(recognised(presented))) return 'key';
      const count = presented.address === undefined ? 0 : (addresses.get(presented.address) ?? 0);
      return count >= MAX_REFUSALS ? 'address' : undefined;
    },
    add(presented) {
      keys.set(recognised(presented), true);
      const { address } = presented;
      if (address !== undefined) addresses.set(address, (addresses.get(address) ?? 0) + 1);
    },
  };
}
