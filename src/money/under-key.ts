import { backoff } from './backoff.ts';
import type { Call, MoneyResult } from './call.ts';
import { begin, replay, replayCustomers, takeUp } from './dispatch.ts';
import { ownerDigest, type RecordName, recordName, twinOf } from './intent.ts';
import type { Claimed } from './record.ts';

const POLL_BACKOFF = { first: 25, most: 500 };

/**
 * Claims the key of a call, then does what the state of its record asks for: sends, repeats, or gives the stored answer. While another
 * call holds the key, this one asks again, with backoff. A message from the holder could get lost, so asking is needed anyway.
 *
 * @param leaseMs how long the key is the call's, and is renewed for
 * @param onName is told of the name that the record has in the end, where it is not the first
 */
export async function runUnderKey(
  first: Call,
  leaseMs: number,
  onName: (name: RecordName) => void,
): Promise<MoneyResult> {
  const { ambient, waiting } = first;
  let call = first;
  for (let looks = 0; ; looks += 1) {
    const askedAt = ambient.now();
    const found = await claim(call, leaseMs);
    if (found.state === 'not-yours') {
      call = named(call);
      onName(call.name);
      continue;
    }
    if (found.state === 'other-input') return { kind: 'conflict', code: 'IDEMPOTENCY_KEY_REUSED' };
    if (found.state === 'answered') return replay(call, found.answer);
    if (found.state === 'customers') return replayCustomers(call, found.answer);
    if (found.state === 'sent') return withLease(call, leaseMs, () => takeUp(call, found, askedAt));
    if (found.state === 'claimed') {
      const result = await withLease(call, leaseMs, () => begin(call));
      if (result !== undefined) return result;
    }
    if (found.state === 'busy') await ambient.sleep(backoff(POLL_BACKOFF, looks, ambient.random), waiting);
    if (waiting.aborted) return { kind: 'conflict', code: 'IDEMPOTENCY_IN_PROGRESS' };
  }
}

/** The call under the name that its key has for its owner alone. */
function named(call: Call): Call {
  const digest = ownerDigest(call.order);
  return { ...call, ownerDigest: digest, name: recordName(call.order, digest) };
}

async function claim({ name, owner, order, records }: Call, leaseMs: number): Promise<Claimed> {
  const { inputHash, customerId, requestId } = order;
  const whose = { keyOwner: ownerDigest(order), twin: twinOf(order), isCustomers: customerId !== undefined };
  const asked = { operation: order.mutation, customerId: customerId ?? null, ...order.shown };
  try {
    return await records.claim(name, { owner, inputHash, leaseMs, asked, requestId, ...whose });
  } catch (error) {
    // The claim may have been made and only its reply lost. It may even have taken over what another call had sent, so
    // that it must not be released; but it need not hold up the next call. Tried once: the lease ends by itself soon.
    void records.renew(name, owner, 0).catch(() => undefined);
    throw error;
  }
}

/** Keeps the lease up while `work` runs. What is left unknown is there for the next call at once. */
async function withLease<T extends MoneyResult | undefined>(
  { name, owner, records, ambient }: Call,
  leaseMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  // A lease that cannot be moved costs a waiting call its patience, nothing else.
  const renew = (ms: number): Promise<void> => records.renew(name, owner, ms).catch(() => undefined);
  const beat = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await ambient.sleep(leaseMs / 3, over.signal);
      if (!over.signal.aborted) await renew(leaseMs);
    }
  };
  void beat();
  try {
    const result = await work();
    over.abort();
    if (result?.kind === 'unknown') await renew(0);
    return result;
  } finally {
    over.abort();
  }
}
