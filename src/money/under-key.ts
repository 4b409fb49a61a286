import { backoff } from './backoff.ts';
import { begunBy } from './begun.ts';
import type { Call, MoneyResult } from './call.ts';
import { begin, replay, replayCustomers, takeUp } from './dispatch.ts';
import { ownerDigest, type RecordName, recordName } from './intent.ts';
import type { Claimed } from './record.ts';

const POLL_BACKOFF = { first: 25, most: 500 };

/**
 * Claims the key of a call, then does what the state of its record requires: sends, repeats, or returns the stored answer.
 * While another call holds the key, this one asks again, with backoff. It asks because a message from the holder could get
 * lost.
 *
 * @param leaseMs how long a claim or a renewal holds the key, in ms
 * @param onName is called with the name of the record, if that is not the first one
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
      call = renamed(call);
      onName(call.name);
      continue;
    }
    if (found.state === 'other-input') return { kind: 'conflict', code: 'IDEMPOTENCY_KEY_REUSED' };
    if (found.state === 'answered') return replay(call, found.answer);
    if (found.state === 'customers') return replayCustomers(call, found.answer);
    if (found.state === 'passed-over') return replayCustomers(call, undefined);
    if (found.state === 'sent') return withLease(call, leaseMs, () => takeUp(call, found, askedAt));
    if (found.state === 'claimed') {
      const result = await withLease(call, leaseMs, () => begin(call));
      if (result !== undefined) return result;
    }
    if (found.state === 'busy') await ambient.sleep(backoff(POLL_BACKOFF, looks, ambient.random), waiting);
    if (waiting.aborted) return { kind: 'conflict', code: 'IDEMPOTENCY_IN_PROGRESS' };
  }
}

/** Returns the call under the other name that its key may have: that for its owner alone, or the first owner's. */
function renamed(call: Call): Call {
  const digest = call.ownerDigest === undefined ? ownerDigest(call.order) : undefined;
  return { ...call, ownerDigest: digest, name: recordName(call.order, digest) };
}

async function claim(call: Call, leaseMs: number): Promise<Claimed> {
  const { name, owner, order, records } = call;
  const { inputHash } = order;
  const other = { hash: renamed(call).name.hash, isFirst: call.ownerDigest !== undefined };
  try {
    return await records.claim(name, { owner, inputHash, leaseMs, other, ...begunBy(order) });
  } catch (error) {
    // The claim may have been made, and only its reply lost. It may even have taken over a request that another call had
    // sent, so it must not be released. But it need not hold up the next call. Tried once, because the lease ends by itself
    // soon.
    void records.renew(name, owner, 0).catch(() => undefined);
    throw error;
  }
}

/** Renews the lease while `work` runs. If the outcome is unknown, ends the lease, so that the next call need not wait. */
async function withLease<T extends MoneyResult | undefined>(
  { name, owner, records, ambient }: Call,
  leaseMs: number,
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  // If the lease cannot be changed, a waiting call waits longer, and nothing else happens.
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
