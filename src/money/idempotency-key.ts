import { v5 } from 'uuid';
import type { MoneyIntent } from './intent.ts';

/** Made once for this gateway. A different value would give every payment that is still being settled another key. */
const NAMESPACE = '6a7a8d0e-53a1-4f0c-9d0c-5a4b1f6f2c11';

/**
 * The `Idempotency-Key` of money out (docs/upstream-api.md, endpoint 11): a UUID v5 from the client's id, the method and the caller's
 * key. Not from the body: two equal payments that are meant as two must not collapse into one, and the same key with
 * another body must meet the upstream's 409. A caller narrowed to a customer has keys of its own, so the customer's id
 * counts too; and the key's owner, where its record has a name of its own (intent.ts).
 */
export function upstreamIdempotencyKey(
  { clientId, customerId, key }: Pick<MoneyIntent, 'clientId' | 'customerId' | 'key'>,
  ownerDigest?: string,
): string {
  const owned = ownerDigest === undefined ? [] : [ownerDigest];
  return v5(JSON.stringify([clientId, 'money_out', customerId ?? null, key, ...owned]), NAMESPACE);
}
