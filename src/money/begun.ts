import { type MoneyIntent, ownerDigest, twinOf } from './intent.ts';
import type { Begun } from './record.ts';

/** Returns what the record is told of a payment as it begins. */
export function begunBy(intent: MoneyIntent): Begun {
  const { mutation, customerId, requestId, shown } = intent;
  return {
    asked: { operation: mutation, customerId: customerId ?? null, ...shown },
    requestId,
    keyOwner: ownerDigest(intent),
    twin: twinOf(intent),
    isCustomers: customerId !== undefined,
  };
}
