import { type Attempt, type UpstreamAnswer, verdictOf } from '../../common/attempt.ts';
import { clock } from '../../common/clock.ts';
import type { Ambient } from '../ambient.ts';
import { askedToWaitMs, backoff, RETRY_WINDOW_MS } from '../backoff.ts';
import { begunAs } from '../begun.ts';
import { isRepeatable, type RecordName } from '../intent.ts';
import { type AnswerReading, outcomeOf } from '../outcome.ts';
import { isStopped } from '../payments-off.ts';
import type { Persistence } from '../persist.ts';
import type { MoneyRecords, StoredAnswer } from '../record.ts';
import type { UnreadLog } from '../unread-log.ts';
import { LOOKED_FOR_MS, type OpenPayment } from './open-records.ts';

/** How long the settler takes one payment for, in ms. The calls of {@link SettlingCalls} end sooner. */
export const SETTLING_LEASE_MS = 20_000;
/** A look that has taken longer than this settles nothing, in ms: its lease may end before what it found is stored. */
const LONGEST_LOOK_MS = 15_000;

/** What the settler saw of a payment that is still open. */
export type Seen =
  /** It was to be sent again, and no answer came that settles it: it may not have left, or the service turned it away. */
  | 'no-answer'
  /** It was to be sent again, and payments were stopped. */
  | 'stopped'
  /** The service says that the first request is under way. */
  | 'still-processing'
  /** The service's answer is not the answer to this order. */
  | 'mismatch'
  /** All that may be it was read, and none of it is. */
  | 'nothing'
  /** The look has ended before all that may be it was read: the next one reads on. */
  | 'unread'
  /** A movement like it was found, but it could be another payment's; or several such movements were found. */
  | 'alike'
  /** A movement like it was found that was made or named before the payment was sent. */
  | 'early'
  /** A movement like it was found that has come back, and nothing shows when it was made. */
  | 'undated'
  /** Events name more transactions, or the record has more payments, than are compared. */
  | 'too-many'
  /** The credit does not read REFUNDED. */
  | 'not-refunded'
  /** The credit reads REFUNDED, but another refund of the record may have done that. */
  | 'other-refund'
  /** Looking for it failed, or not all that may be it could be read. */
  | 'unreadable'
  /** Evidence of it was found, and the record was put back since it was sent: it could be of a payment that is forgotten. */
  | 'put-back'
  /** The event log no longer holds every event since the payment was sent. */
  | 'out-of-reach';

/** The result of looking for evidence. */
export type Found =
  | { readonly kind: 'done'; readonly text: string; readonly transactionId: string | undefined }
  | { readonly kind: 'open'; readonly seen: Seen };

/** The part of the record that tells payments from each other. */
export type PaymentBook = Pick<MoneyRecords, 'search' | 'readByTransactions'>;

/**
 * The calls to the upstream and to the event log by which open payments are settled. Each ends well within {@link
 * SETTLING_LEASE_MS}.
 */
export interface SettlingCalls {
  /** Sends the exact text of money out once more, under its own key. */
  repeat(payment: OpenPayment, upstreamKey: string): Promise<Attempt>;
  reading(payment: OpenPayment): AnswerReading;
  /** Returns the code that callers get for a refusal of money out. */
  codeOf(refusal: UpstreamAnswer): string;
  /** Looks for evidence. Sends nothing that could move money. Throws if it cannot look now. */
  look(payment: OpenPayment, book: PaymentBook): Promise<Found>;
  /**
   * True if the service has refused a credential of these calls. A payment that is remembered with its caller's credential is
   * then forgotten; the gateway's own credential is renewed, and goes on.
   */
  isOver(): boolean;
}

/** The result of one try: `away` if the service did not answer (`isAway`), or if looking for evidence failed. */
export type SettlingResult = 'settled' | 'open' | 'away';

export interface SettlingParts {
  readonly records: MoneyRecords;
  readonly persistence: Persistence;
  readonly ambient: Ambient;
  readonly onSettled: (payment: OpenPayment, kind: 'done' | 'refused', by: 'repeat' | 'evidence') => void;
  /** Called when the service's answer is not the answer to this order, with the fields that differ. */
  readonly onMismatch: (payment: OpenPayment, fields: readonly string[]) => void;
  readonly onUnread: UnreadLog;
  readonly onLookFailed: (payment: OpenPayment, error: unknown) => void;
  /** Called when a payment has been looked for to the end, and is not looked for again by itself. */
  readonly onGivenUp: (payment: OpenPayment, seen: Seen) => void;
}

/**
 * Tries to settle a payment that was taken, by what is safe. It sends money out again while the upstream knows its key. For
 * anything else it looks for evidence, and sends nothing. Without certain evidence the payment stays open.
 */
export async function settleOpen(
  payment: OpenPayment,
  calls: SettlingCalls,
  parts: SettlingParts,
): Promise<SettlingResult> {
  const key = repeatableKey(payment, parts.ambient.now());
  return key === null ? seek(payment, calls, parts) : repeat(payment, key, calls, parts);
}

/** Returns the key under which the same request may be sent once more; null if it may not. */
function repeatableKey(
  { asked, upstreamKey, closed, ageMs, sentAt, body }: OpenPayment,
  now: number,
): string | null {
  const isYoung = ageMs < RETRY_WINDOW_MS && now - sentAt < RETRY_WINDOW_MS;
  return isRepeatable(asked.operation) && closed === null && body !== '' && isYoung ? upstreamKey : null;
}

async function repeat(
  payment: OpenPayment,
  key: string,
  calls: SettlingCalls,
  parts: SettlingParts,
): Promise<SettlingResult> {
  const { records, ambient } = parts;
  // Nobody waits for it: what may be stopped is not sent.
  if (await isStopped(records, true)) {
    await records.putOff(payment, repeatPause(payment, 'stopped', ambient), 'stopped');
    return 'open';
  }
  const attempt = await calls.repeat(payment, key);
  if (attempt.kind === 'answered' || attempt.error.dispatched) {
    // Nothing depends on this count, so nothing waits for it.
    void records.sentAgain(payment.name).catch(() => undefined);
  }
  const outcome = outcomeOf(payment.asked.operation, false, attempt, alarming(payment, calls, parts));
  if (outcome.kind === 'done' || outcome.kind === 'refused') {
    const { status, text, body } = outcome.answer;
    const id = outcome.kind === 'done' ? Object(body)['id'] : undefined;
    const transactionId = typeof id === 'string' ? id : undefined;
    const code = outcome.kind === 'refused' ? calls.codeOf(outcome.answer) : undefined;
    const answer = { kind: outcome.kind, status, text } as const;
    const told: Settlement = { answer, transactionId, code, by: 'repeat', isTooLate: () => false };
    const written = await store(payment, told, parts);
    if (written !== 'anothers') return written;
  }
  if (outcome.kind === 'unknown' && outcome.unread !== undefined) {
    parts.onUnread({ mutation: payment.asked.operation, name: payment.name }, outcome.unread);
  }
  const isAnothers = outcome.kind === 'done';
  const reason =
    outcome.kind === 'unknown' ? outcome.reason : isAnothers ? 'ANSWER_DOES_NOT_MATCH' : 'NO_ANSWER';
  const seen =
    reason === 'STILL_PROCESSING' ? 'still-processing' : reason === 'NO_ANSWER' ? 'no-answer' : 'mismatch';
  const asked = Math.min(askedToWaitMs(attempt), LONGEST_ASKED_MS);
  await records.putOff(payment, Math.max(repeatPause(payment, seen, ambient), asked), seen);
  return isAway(attempt) ? 'away' : 'open';
}

/** Returns how the service's answers are read. Reports an answer that is not the answer to its order. */
function alarming(payment: OpenPayment, calls: SettlingCalls, parts: SettlingParts): AnswerReading {
  const reading = calls.reading(payment);
  return {
    isServiceError: (answer) => reading.isServiceError(answer),
    compare(answer) {
      const found = reading.compare(answer);
      if (found.kind === 'differs') parts.onMismatch(payment, found.fields);
      return found;
    },
  };
}

async function seek(
  payment: OpenPayment,
  calls: SettlingCalls,
  parts: SettlingParts,
): Promise<SettlingResult> {
  const { records, ambient } = parts;
  let found: Found;
  let isUnanswered = false;
  const begunAt = clock.monotonic();
  const isTooLate = () => clock.monotonic() - begunAt > LONGEST_LOOK_MS;
  try {
    found = await calls.look(payment, records);
    // Another process may have taken it, and look at it by now: the next look of either settles it.
    if (isTooLate()) found = { kind: 'open', seen: 'unread' };
  } catch (error) {
    parts.onLookFailed(payment, error);
    isUnanswered = true;
    found = { kind: 'open', seen: 'unreadable' };
  }
  // A record that was put back meanwhile may have forgotten the payment that the movement was.
  if (found.kind === 'done' && (await records.isPutBack(payment.name.clientId)))
    found = { kind: 'open', seen: 'unread' };
  // One that was put back before has forgotten some, too: an operator says whether the movement may be this payment's.
  if (found.kind === 'done' && !payment.isCurrent) found = { kind: 'open', seen: 'put-back' };
  if (found.kind === 'done') {
    const { text, transactionId } = found;
    // A transaction that was read: what the service would have answered the request.
    const answer = { kind: 'done', status: 200, text, by: 'evidence' } as const;
    const written = await store(payment, { answer, transactionId, by: 'evidence', isTooLate }, parts);
    if (written !== 'anothers') return written;
  }
  // The movement was stored for another payment at the same moment, so it is not this one's.
  const seen = found.kind === 'open' ? found.seen : 'alike';
  const pauseMs = lookPause(payment, seen, ambient);
  await records.putOff(payment, pauseMs, seen);
  if (pauseMs === undefined) parts.onGivenUp(payment, seen);
  return isUnanswered ? 'away' : 'open';
}

/** The answer that settles a payment, and how it was found. */
interface Settlement {
  readonly answer: StoredAnswer & { readonly kind: 'done' | 'refused' };
  readonly transactionId: string | undefined;
  readonly code?: string | undefined;
  readonly by: 'repeat' | 'evidence';
  /** True once it may no longer be stored. */
  readonly isTooLate: () => boolean;
}

/**
 * Stores the answer that settles a payment. Reports it as settled once the store has it, because only the store knows if the
 * transaction is another payment's.
 *
 * @returns `anothers` if the transaction is another payment's, and nothing was stored; `open` if it is too late, or the store is away: the
 * answer is stored later, unless it is too late then
 */
async function store(
  payment: OpenPayment,
  { answer, transactionId, code, by, isTooLate }: Settlement,
  { persistence, records, onSettled, onMismatch }: SettlingParts,
): Promise<'settled' | 'anothers' | 'open'> {
  let isOwn = true;
  let isLate = false;
  let wasTried = false;
  let wasStored = false;
  const { name, inputHash } = payment;
  const isKnown = await persistence.persist('answer', name, async () => {
    // The store may have done a try that failed, and lost its reply alone. Then only this process tells that the payment is settled. Callers
    // may have read such an answer, and a failover may have lost it since: it is stored once more, however late.
    if (wasTried && !wasStored)
      wasStored = await isStored(records, name, answer).catch((error: unknown) => {
        if (isTooLate()) throw error;
        return false;
      });
    isLate = isTooLate() && !wasStored;
    if (isLate) return;
    wasTried = true;
    isOwn = await records.answer(name, inputHash, answer, transactionId, code, begunAs(payment));
    if (isOwn) onSettled(payment, answer.kind, by);
    else if (by === 'repeat') onMismatch(payment, ['id']);
  });
  if (!isKnown || isLate) return 'open';
  return isOwn ? 'settled' : 'anothers';
}

async function isStored(records: MoneyRecords, name: RecordName, answer: StoredAnswer): Promise<boolean> {
  const known = (await records.read(name))?.answer;
  return known?.kind === answer.kind && known.text === answer.text;
}

/**
 * True if no answer came, or one that says nothing of this payment: a 3xx, 408, 425 or 5xx, or one that turned the call away (401, 403,
 * 429). Other payments would fare the same.
 */
function isAway(attempt: Attempt): boolean {
  if (attempt.kind === 'failed') return true;
  const verdict = verdictOf(attempt.status);
  return verdict === 'unclear' || verdict === 'turned-away';
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const FIRST_PAUSE_MS = 2 * SECOND;
/** The longest pause that the service can ask for by `Retry-After`. */
const LONGEST_ASKED_MS = 10 * MINUTE;
/** The longest pause after an answer that is not the answer to the order: it would be the same a moment later. */
const MISMATCH_PAUSE_MS = 10 * MINUTE;
function repeatPause({ tries, ageMs }: OpenPayment, seen: Seen, { random }: Ambient): number {
  const most = seen === 'mismatch' ? MISMATCH_PAUSE_MS : ageMs < HOUR ? 20 * SECOND : 2 * MINUTE;
  return backoff({ first: seen === 'mismatch' ? MINUTE : FIRST_PAUSE_MS, most }, tries, random);
}

function lookPause({ tries, ageMs }: OpenPayment, seen: Seen, { random }: Ambient): number | undefined {
  const isUnread = seen === 'unread';
  if (ageMs > LOOKED_FOR_MS && !isUnread && seen !== 'unreadable') return undefined;
  const isSoon = isUnread || ageMs < 15 * MINUTE;
  const most = isSoon ? 20 * SECOND : ageMs < 4 * HOUR ? 5 * MINUTE : HOUR;
  return backoff({ first: FIRST_PAUSE_MS, most }, tries, random);
}
