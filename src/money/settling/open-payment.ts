import { type Attempt, type UpstreamAnswer, verdictOf } from '../../common/attempt.ts';
import type { Ambient } from '../ambient.ts';
import { backoff, RETRY_WINDOW_MS } from '../backoff.ts';
import { isRepeatable } from '../intent.ts';
import { type AnswerReading, outcomeOf } from '../outcome.ts';
import { isStopped } from '../payments-off.ts';
import type { Persistence } from '../persist.ts';
import type { MoneyRecords, StoredAnswer } from '../record.ts';
import type { OpenPayment } from './open-records.ts';

/** How long one payment is taken for, in ms. What {@link SettlingCalls} do ends sooner. */
export const SETTLING_LEASE_MS = 20_000;

/** What was seen of a payment that is still open. */
export type Seen =
  /** It was sent again, and no answer came that settles it. */
  | 'no-answer'
  /** The service says that the first request is under way. */
  | 'still-processing'
  /** The service's answer is not the answer to this order. */
  | 'mismatch'
  /** Nothing was found that shows that it has happened. */
  | 'nothing'
  /** A movement like it was found, and more than one payment that it could be; or several movements. */
  | 'alike'
  /** The credit does not read REFUNDED. */
  | 'not-refunded'
  /** The credit reads REFUNDED, by another refund of the record or by one of several. */
  | 'other-refund'
  /** It could not be looked for. */
  | 'unreadable';

/** What looking for a payment has found. */
export type Found =
  | { readonly kind: 'done'; readonly text: string; readonly transactionId: string | undefined }
  | { readonly kind: 'open'; readonly seen: Seen };

/** What tells one payment from another. */
export type PaymentBook = Pick<MoneyRecords, 'search' | 'readByTransaction'>;

/** The upstream and the log of events, as open payments are settled by them. Each call ends well within {@link SETTLING_LEASE_MS}. */
export interface SettlingCalls {
  /** Sends the very text of money out once more, under its own key. */
  repeat(payment: OpenPayment, upstreamKey: string): Promise<Attempt>;
  reading(payment: OpenPayment): AnswerReading;
  /** What callers are told of a refusal of money out in one word. */
  codeOf(refusal: UpstreamAnswer): string;
  /** Looks for what shows that it has happened; sends nothing that could move money. Throws where it cannot look now. */
  look(payment: OpenPayment, book: PaymentBook): Promise<Found>;
  /** Whether a credential that they were made under has been refused. One that is renewed goes on all the same. */
  isOver(): boolean;
}

/** How it went: `away` where the service did not answer, or did not want to. */
export type SettlingResult = 'settled' | 'open' | 'away';

export interface SettlingParts {
  readonly records: MoneyRecords;
  readonly persistence: Persistence;
  readonly ambient: Ambient;
  readonly onSettled: (payment: OpenPayment, kind: 'done' | 'refused', by: 'repeat' | 'evidence') => void;
  /** The service answered with what is not the answer to this order, in the fields that are named. */
  readonly onMismatch: (payment: OpenPayment, fields: readonly string[]) => void;
  readonly onLookFailed: (payment: OpenPayment, error: unknown) => void;
}

/**
 * Does for a payment that was taken what is safe: money out is sent again while the upstream knows its key; anything else is looked
 * for, and never sent. What shows nothing certain stays open.
 */
export async function settleOpen(
  payment: OpenPayment,
  calls: SettlingCalls,
  parts: SettlingParts,
): Promise<SettlingResult> {
  const key = repeatableKey(payment, parts.ambient.now());
  return key === null ? seek(payment, calls, parts) : repeat(payment, key, calls, parts);
}

/** The key under which the same may leave once more; null where it may not. */
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
  if (await isStopped(records)) {
    await records.putOff(payment, repeatPause(payment, 'no-answer', ambient), 'no-answer');
    return 'open';
  }
  const attempt = await calls.repeat(payment, key);
  if (attempt.kind === 'answered' || attempt.error.dispatched) {
    // Nothing hangs on the number, so that nothing waits for it.
    void records.sentAgain(payment.name).catch(() => undefined);
  }
  const outcome = outcomeOf(payment.asked.operation, false, attempt, alarming(payment, calls, parts));
  if (outcome.kind === 'done' || outcome.kind === 'refused') {
    const { status, text, body } = outcome.answer;
    const id = outcome.kind === 'done' ? Object(body)['id'] : undefined;
    const transactionId = typeof id === 'string' ? id : undefined;
    const code = outcome.kind === 'refused' ? calls.codeOf(outcome.answer) : undefined;
    const told = { answer: { kind: outcome.kind, status, text }, transactionId, code, by: 'repeat' } as const;
    const written = await store(payment, told, parts);
    if (written !== 'anothers') return written;
  }
  const isAnothers = outcome.kind === 'done';
  const reason =
    outcome.kind === 'unknown' ? outcome.reason : isAnothers ? 'ANSWER_DOES_NOT_MATCH' : 'NO_ANSWER';
  const seen =
    reason === 'STILL_PROCESSING' ? 'still-processing' : reason === 'NO_ANSWER' ? 'no-answer' : 'mismatch';
  await records.putOff(payment, repeatPause(payment, seen, ambient), seen);
  return isAway(attempt) ? 'away' : 'open';
}

/** Reads the service's answers, and tells of one that is not the answer to its order. */
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
  try {
    found = await calls.look(payment, records);
  } catch (error) {
    parts.onLookFailed(payment, error);
    isUnanswered = true;
    found = { kind: 'open', seen: 'unreadable' };
  }
  if (found.kind === 'done') {
    const { text, transactionId } = found;
    const answer = { kind: 'done', status: 200, text } as const;
    const written = await store(payment, { answer, transactionId, by: 'evidence' }, parts);
    if (written !== 'anothers') return written;
  }
  // What was found in the same moment for another payment is not this one's.
  const seen = found.kind === 'open' ? found.seen : 'alike';
  await records.putOff(payment, lookPause(payment, ambient), seen);
  return isUnanswered ? 'away' : 'open';
}

/** What settles a payment. */
interface Settlement {
  readonly answer: StoredAnswer & { readonly kind: 'done' | 'refused' };
  readonly transactionId: string | undefined;
  readonly code?: string | undefined;
  readonly by: 'repeat' | 'evidence';
}

/**
 * Stores what settles a payment. That it is settled is told once the store has it: it alone knows whose the transaction is.
 *
 * @returns `anothers` where the transaction is known to be another payment's, and nothing was stored; `open` where the store is away: it is
 *   stored later
 */
async function store(
  payment: OpenPayment,
  { answer, transactionId, code, by }: Settlement,
  { persistence, records, onSettled, onMismatch }: SettlingParts,
): Promise<'settled' | 'anothers' | 'open'> {
  let isOwn = true;
  const isKnown = await persistence.persist('answer', async () => {
    isOwn = await records.answer(payment.name, payment.inputHash, answer, transactionId, code);
    if (isOwn) onSettled(payment, answer.kind, by);
    else if (by === 'repeat') onMismatch(payment, ['id']);
  });
  if (!isKnown) return 'open';
  return isOwn ? 'settled' : 'anothers';
}

/** Whether the service, or what stands before it, can do nothing for anybody now. */
function isAway(attempt: Attempt): boolean {
  if (attempt.kind === 'failed') return true;
  const verdict = verdictOf(attempt.status);
  return verdict === 'unclear' || verdict === 'turned-away';
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const FIRST_PAUSE_MS = 2 * SECOND;
/** An answer that is not the answer to the order is the same a moment later. */
const MISMATCH_PAUSE_MS = 10 * MINUTE;
/** Evidence comes late, by webhooks that are delivered again; receipts take three hours. After this nobody looks any more. */
const LOOKED_FOR_MS = 48 * HOUR;

function repeatPause({ tries, ageMs }: OpenPayment, seen: Seen, { random }: Ambient): number {
  const most = seen === 'mismatch' ? MISMATCH_PAUSE_MS : ageMs < HOUR ? 20 * SECOND : 2 * MINUTE;
  return backoff({ first: seen === 'mismatch' ? MINUTE : FIRST_PAUSE_MS, most }, tries, random);
}

function lookPause({ tries, ageMs }: OpenPayment, { random }: Ambient): number | undefined {
  if (ageMs > LOOKED_FOR_MS) return undefined;
  const most = ageMs < 15 * MINUTE ? 20 * SECOND : ageMs < 4 * HOUR ? 5 * MINUTE : HOUR;
  return backoff({ first: FIRST_PAUSE_MS, most }, tries, random);
}
