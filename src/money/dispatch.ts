import {
  type Attempt,
  type Failed,
  GivenUpError,
  type UpstreamAnswer,
  verdictOf,
} from '../common/attempt.ts';
import { parsed, readable, storedOutcome } from './answers.ts';
import { askedToWaitMs, backoff, RETRY_WINDOW_MS } from './backoff.ts';
import type { Call, MoneyResult, RefundCalls } from './call.ts';
import type { UnknownReason } from './outcome.ts';
import { isStopped } from './payments-off.ts';
import { RecordsUnavailableError, type Sent, type StoredAnswer } from './record.ts';
import { OtherRefundError } from './record-parts.ts';
import { type Dispatch, NOTHING_MORE, unknown, withoutRetry } from './unknown-result.ts';

/**
 * How often a request is repeated after a first 409, or after answers that are not the answer to its order (`repeat-briefly`): for about
 * 3 s, in which another request with the key may end.
 */
const MOST_BRIEF_REPEATS = 4;

const REPEAT_BACKOFF = { first: 200, most: 4_000 };

/**
 * Carries out an intent that this call has claimed, and under which nothing has been sent.
 *
 * @returns undefined if the claim was lost before anything was sent.
 * @throws {RecordsUnavailableError} if the record cannot be reached: nothing was sent.
 */
export async function begin(call: Call): Promise<MoneyResult | undefined> {
  const { order } = call;
  let original: UpstreamAnswer | undefined;
  if (order.mutation === 'refundTransaction') {
    const read = await readOriginal(call, order.calls);
    original = asTransaction(call, order.calls, read);
    if (original === undefined) return releaseKey(call, { kind: 'nothing-moved', because: read });
    if (order.calls.isRefunded(original)) return releaseKey(call, notAllowed('refunded', original));
  }
  const refused = await check(call, () => order.calls.check?.());
  if (refused !== undefined) return releaseKey(call, refused);
  return sendFirst(call, original);
}

/** @param original the credit, of a refund */
async function sendFirst(call: Call, original: UpstreamAnswer | undefined): Promise<MoneyResult | undefined> {
  const { order, ambient } = call;
  if (isOver(call)) return releaseKey(call, tooLate(call));
  const sent: Dispatch = { body: order.body, sentAt: ambient.now() };
  const mark = await markSent(call, sent, original);
  if (mark !== true) return mark;
  // Writing the record may have taken what was left of the time.
  if (isOver(call)) return giveUp(call, sent, tooLate(call));
  if (order.mutation === 'refundTransaction') {
    const refused = await check(call, () => order.calls.checkAgain());
    if (refused !== undefined) return giveUp(call, sent, refused);
  }
  return sendUntilKnown(call, sent, true);
}

/**
 * Goes on with a request that an earlier call sent before it died or reached its deadline.
 *
 * The store's clock and this process's clock each give an age of the request, and the greater one counts. So a clock that is
 * wrong, or leaps, never makes money out be repeated after the upstream has forgotten its key.
 *
 * @param askedAt when the store was asked, by this process's clock
 */
export async function takeUp(
  call: Call,
  { body, sentAt, ageMs }: Sent,
  askedAt: number,
): Promise<MoneyResult> {
  const { order } = call;
  const sent: Dispatch = { body, sentAt: Math.min(sentAt, askedAt - ageMs) };
  switch (order.mutation) {
    case 'createMoneyOut':
      return mayRepeat(call, sent, 0) ? sendUntilKnown(call, sent, false) : unknown(call, sent, {});
    case 'refundTransaction':
      return unknown(call, sent, { original: await originalNow(call, order.calls) });
    case 'createInternalTransaction':
    case 'createPennyValidation':
      return unknown(call, sent, {});
  }
}

/** Returns the answer of an earlier call. */
export async function replay(call: Call, { kind, status, text }: StoredAnswer): Promise<MoneyResult> {
  const { order } = call;
  const answer: UpstreamAnswer = { status, text, body: parsed(text) };
  // Earlier versions also stored answers of proxies as refusals.
  const isKnown = kind === 'done' || (kind === 'refused' && order.calls.isServiceError(answer));
  if (isKnown) return { kind, answer, replayed: true };
  const last: Attempt = { kind: 'answered', ...answer, retryAfterMs: undefined };
  const report = { ...NOTHING_MORE, reason: reasonOf(kind, status), last };
  if (order.mutation !== 'refundTransaction') return report;
  return { ...report, original: await originalNow(call, order.calls) };
}

/** Returns why nothing may be sent any more, by the stored answer. */
export function reasonOf(kind: StoredAnswer['kind'], status: number): UnknownReason {
  if (kind === 'refused') return 'NO_ANSWER';
  return status === 409 ? 'STILL_PROCESSING' : 'ANSWER_DOES_NOT_MATCH';
}

/** Sends the request. Repeats money out until the outcome is known or the time is up. */
async function sendUntilKnown(call: Call, sent: Dispatch, fresh: boolean): Promise<MoneyResult> {
  const { order, ambient } = call;
  let previous: Attempt | undefined;
  let closed = false;
  let brief = 0;
  for (let repeat = 0; ; repeat += 1) {
    const attempt = repeat + (fresh ? 1 : 2);
    if (attempt > 1 && (await isStopped(call.records, false))) {
      const open = unknown(call, sent, {});
      return closed ? withoutRetry(open) : open;
    }
    // Only the journal needs this, so the payment does not wait for it.
    if (attempt > 1) void call.records.sentAgain(call.name, order.requestId).catch(() => undefined);
    const happened = await send(call, sent.body, attempt);
    if (mayHaveLeft(happened)) call.onSent();
    // Stored before the repeats, so that a process which dies among them leaves no permission to go on with what is closed.
    const outcome = await storedOutcome(call, fresh && repeat === 0, happened);
    if (outcome.kind === 'nothing-moved') {
      return giveUp(call, sent, { kind: 'nothing-moved', because: happened });
    }
    if (outcome.kind !== 'unknown') return { ...outcome, replayed: false };
    if (outcome.close !== undefined) closed = true;
    if (outcome.unread !== undefined) {
      call.onUnread({ mutation: order.mutation, name: call.name }, outcome.unread);
    }
    const seen = { reason: outcome.reason, last: happened, sameAnswerAgain: isSame(previous, happened) };
    const open = unknown(call, sent, seen);
    const report = closed ? withoutRetry(open) : open;
    if (order.mutation === 'refundTransaction' && outcome.next === 'read-original') {
      return { ...report, original: await originalNow(call, order.calls) };
    }
    if (closed || outcome.next === 'repeat-briefly') brief += 1;
    const isRepeated = outcome.next === 'repeat' || outcome.next === 'repeat-briefly';
    const pause = Math.max(backoff(REPEAT_BACKOFF, repeat, ambient.random), askedToWaitMs(happened));
    if (!isRepeated || brief > MOST_BRIEF_REPEATS || !mayRepeat(call, sent, pause)) return report;
    await ambient.sleep(pause, call.waiting);
    if (call.waiting.aborted) return report;
    previous = happened;
  }
}

/**
 * Returns the outcome of a customer's payment to a caller for the whole client that has sent the same input under the same
 * key.
 */
export const replayCustomers = (call: Call, answer: StoredAnswer | undefined): Promise<MoneyResult> =>
  answer === undefined ? Promise.resolve(NOTHING_MORE) : replay(call, answer);

/**
 * True if the same bytes may be sent once more after a pause in ms: within this call's time, and while the upstream knows
 * their key.
 */
function mayRepeat({ ambient, deadline, waiting }: Call, { sentAt }: Dispatch, pause: number): boolean {
  const next = ambient.now() + pause;
  return next < deadline && next < sentAt + RETRY_WINDOW_MS && !waiting.aborted;
}

/**
 * Marks the record as sent. If the step fails, it may still have been done. This call has sent nothing, so it gives the key
 * back as soon as it can. Until then the gateway itself may send money out that is recorded.
 *
 * @returns true if it is marked; the result for the caller if it is not; undefined if the claim was lost.
 * @throws {RecordsUnavailableError} if it is certain that nothing will be sent.
 */
async function markSent(
  call: Call,
  sent: Dispatch,
  credit: UpstreamAnswer | undefined,
): Promise<true | MoneyResult | undefined> {
  const { records, name, owner, order, ownerDigest } = call;
  try {
    const upstreamKey = order.calls.upstreamKey?.(ownerDigest) ?? null;
    const original = order.mutation === 'refundTransaction' ? order.calls.originalId : null;
    const isMarked = await records.markSent(name, owner, sent.body, { upstreamKey, original });
    return isMarked || undefined;
  } catch (error) {
    if (error instanceof OtherRefundError && credit !== undefined)
      return releaseKey(call, notAllowed('other-refund', credit));
    const isUndone = error instanceof RecordsUnavailableError && error.isUndone;
    const isFree = release(call);
    if (isUndone || order.calls.upstreamKey === undefined || (await isFree)) throw error;
    return unknown(call, sent, {});
  }
}

/** @returns what the caller gets if the gateway refuses the order */
async function check(
  { order, logger }: Call,
  ask: () => Promise<Failed | undefined> | undefined,
): Promise<MoneyResult | undefined> {
  try {
    const because = await ask();
    return because && { kind: 'nothing-moved', because };
  } catch (cause) {
    logger.error({ err: cause, mutation: order.mutation }, 'the check before a payment threw');
    const error = new GivenUpError('the check before it threw', { dispatched: false, cause });
    return { kind: 'nothing-moved', because: { kind: 'failed', error } };
  }
}

async function send(call: Call, body: string, attempt: number): Promise<Attempt> {
  const { order, atDeadline, ownerDigest, logger } = call;
  try {
    return await order.calls.send(body, attempt, atDeadline, ownerDigest);
  } catch (cause) {
    logger.error({ err: cause, mutation: order.mutation }, 'a money request threw, and is taken for sent');
    return { kind: 'failed', error: new GivenUpError('the request threw', { dispatched: true, cause }) };
  }
}

const mayHaveLeft = (happened: Attempt): boolean =>
  happened.kind === 'answered' ? happened.synthesized !== true : happened.error.dispatched;

async function readOriginal({ waiting, logger }: Call, calls: RefundCalls): Promise<Attempt> {
  try {
    return await calls.readOriginal(waiting);
  } catch (cause) {
    logger.error({ err: cause }, 'reading the original of a refund threw');
    return {
      kind: 'failed',
      error: new GivenUpError('reading the original threw', { dispatched: true, cause }),
    };
  }
}

/** Reads the credit again; undefined if there is no time to read it, or if the answer is no transaction. */
async function originalNow(call: Call, calls: RefundCalls): Promise<UpstreamAnswer | undefined> {
  return call.waiting.aborted ? undefined : asTransaction(call, calls, await readOriginal(call, calls));
}

function asTransaction(call: Call, calls: RefundCalls, read: Attempt): UpstreamAnswer | undefined {
  if (read.kind !== 'answered' || verdictOf(read.status) !== 'accepted') return undefined;
  const { status, body, text } = read;
  const answer = { status, body, text };
  return readable(call, () => calls.isTransaction(answer), false) ? answer : undefined;
}

function isSame(previous: Attempt | undefined, happened: Attempt): boolean {
  return (
    previous?.kind === 'answered' &&
    happened.kind === 'answered' &&
    previous.status === happened.status &&
    previous.text === happened.text
  );
}

/** True if the time is over or the caller has left. Compares the clock too, because a timer may fire late. */
function isOver({ ambient, deadline, waiting }: Call): boolean {
  return waiting.aborted || ambient.now() >= deadline;
}

const notAllowed = (because: 'refunded' | 'other-refund', original: UpstreamAnswer): MoneyResult => ({
  kind: 'refund-not-allowed',
  because,
  original,
});

function tooLate({ ambient, deadline }: Call): MoneyResult {
  const reason = ambient.now() >= deadline ? 'the deadline was spent' : 'the caller went away';
  return {
    kind: 'nothing-moved',
    because: { kind: 'failed', error: new GivenUpError(reason, { dispatched: false }) },
  };
}

/** Gives back the key, which this call took first. Nothing moved, and the next call may try again. */
async function releaseKey<T extends MoneyResult>(call: Call, result: T): Promise<T> {
  await release(call);
  return result;
}

/**
 * Gives back the key of a payment that is recorded as sent, but was not. If that fails now and this process ends, the gateway
 * sends the payment later by itself; and if this call's lease has ended, another call may send it. The caller is then told
 * that it may yet happen.
 */
async function giveUp(call: Call, sent: Dispatch, result: MoneyResult): Promise<MoneyResult> {
  const isFree = await release(call);
  return isFree || call.order.calls.upstreamKey === undefined ? result : unknown(call, sent, {});
}

/** @returns true if nobody holds the key: neither this call, nor another one that has taken it over. */
async function release({ persistence, records, name, owner }: Call): Promise<boolean> {
  let isFree = false;
  const isDone = await persistence.persist('release', name, async () => {
    isFree = await records.release(name, owner);
  });
  return isDone && isFree;
}
