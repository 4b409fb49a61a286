import { type MoneyIntent, ownerDigest, twinOf } from './intent.ts';
import type { Begun } from './record.ts';
import type { OpenPayment } from './settling/open-records.ts';

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

/** Returns what the record was told of an open payment as it began; undefined if the record of an earlier version names no owner. */
export function begunAs({ asked, keyOwner, twin }: OpenPayment): Begun | undefined {
  return keyOwner === null ? undefined : { asked, keyOwner, twin: twin ?? '', isCustomers: twin !== null };
}
