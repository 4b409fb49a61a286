import { v5 } from 'uuid';
import type { MoneyIntent } from './intent.ts';

/** The UUID namespace, chosen once. Another value would give every payment that is still being settled another key. */
const NAMESPACE = '6a7a8d0e-53a1-4f0c-9d0c-5a4b1f6f2c11';

/**
 * Returns the `Idempotency-Key` of money out (docs/upstream-api.md, endpoint 11): a UUID v5 of the client's id, the method
 * and the caller's key. The body is no part of it: two equal payments that are meant as two must stay two, and the same key
 * with another body must meet the upstream's 409. The customer's id is a part, because a caller narrowed to a customer has
 * keys of its own. So is the key's owner, if its record has a name of its own (intent.ts).
 */
export function upstreamIdempotencyKey(
  { clientId, customerId, key }: Pick<MoneyIntent, 'clientId' | 'customerId' | 'key'>,
  ownerDigest?: string,
): string {
  const owned = ownerDigest === undefined ? [] : [ownerDigest];
  return v5(JSON.stringify([clientId, 'money_out', customerId ?? null, key, ...owned]), NAMESPACE);
}
