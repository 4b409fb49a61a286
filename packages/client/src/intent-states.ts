import { ambient } from './ambient.ts';
import { changeIntents, type Intent, type IntentStore } from './intents.ts';
import { settle } from './outcome.ts';

const DAY_MS = 86_400_000;
/**
 * After this time, in milliseconds, nothing is sent again. The gateway knows a key for 30 days (`RETENTION_DAYS` of
 * src/money/record.ts); a day is left for wrong clocks. It stays for intents that are kept already, where a later gateway knows keys for
 * longer: CONTRIBUTING.md, "How long a record of a payment is kept".
 */
const KNOWN_MS = 29 * DAY_MS;
/** How long a payment that is over is kept, in milliseconds. */
const OVER_MS = 3_600_000;
/** After this time, in milliseconds, a payment without an answer is sent where a person presses, and no more by itself (P8 of PROTOCOL.md). */
const LATE_MS = 23 * 3_600_000;

/** How far a payment has come whose end nobody has seen. */
export type Standing =
  /** It has moved nothing. `finish` returns that, and sends nothing: before any other, because what is sent drops refusals of over an hour. */
  | 'refused'
  /** It is done. `finish` returns that, and sends nothing. */
  | 'done'
  /** It may have moved money. `finish` goes on asking. */
  | 'unknown'
  /** The same, and no answer came within 23 hours. A call that has never arrived would pay now: `finish` it as a person presses. */
  | 'late'
  /** No call of it has moved money, and none is made by itself: `finish` it as a person presses. */
  | 'unpaid';

/**
 * Returns how far a payment has come, and so what a start of the app may do with it: of each that `store.load()` has. Undefined where nothing is left
 * to be shown: its end was seen, or it was never paid and is over 29 days old. Ask just before you act: it changes with the time.
 */
export function standingOf(kept: Intent): Standing | undefined {
  const end = settle(kept.result)?.status;
  if (kept.acknowledgedAt !== undefined) return undefined;
  if (end === 'done' || end === 'refused') return end;
  if (!isSent(kept)) return isKnown(kept) ? 'unpaid' : undefined;
  const isLate = kept.result === undefined && ambient.now() - Date.parse(kept.createdAt) > LATE_MS;
  return isLate ? 'late' : 'unknown';
}

/**
 * Returns the payments that may have moved money, and whose ends the app has not shown, for its next start and after an outage.
 * `finish` with each and its mutation returns how it ended, or goes on asking. One that was refused is not among them: nothing
 * has moved.
 */
export const unsettled = async (store: IntentStore): Promise<readonly Intent[]> =>
  (await store.load()).filter((kept) => isSent(kept) && isOpen(kept));

/** Forgets the payments whose ends are known and shown, or refused, as at sign-out. Each other one keeps its key. */
export const forgetSettled = (store: IntentStore): Promise<void> =>
  changeIntents(store, (intents) => intents.filter(isOpen));

/**
 * Forgets a payment that stays unknown, once the provider has said that it was not made and will not be. The next `pay` with its
 * input is a new payment. A `pay` of it that is still running sends nothing more.
 */
export const forget = (store: IntentStore, idempotencyKey: string): Promise<void> =>
  changeIntents(store, (intents) => intents.filter((kept) => kept.idempotencyKey !== idempotencyKey));

/**
 * Returns an intent with the result of a call. A refusal may depend on the moment: while another call may be under way, that
 * one may still move money, unless the refusal is final.
 */
export function ended(kept: Intent, result: unknown, isFinal: boolean): Intent {
  const before = settle(kept.result)?.status;
  const isDone = settle(result)?.status === 'done';
  if (before === 'done' || (before === 'refused' && !isDone)) return kept;
  if (!isFinal && kept.unanswered > 1) return { ...kept, unanswered: kept.unanswered - 1 };
  // Nobody has seen this end yet.
  const { acknowledgedAt: _, ...unseen } = kept;
  return { ...unseen, result };
}

/**
 * True if the same input goes on with an intent. An intent is over if it was refused, if nothing of it was sent within 29 days, or if the
 * person has seen its end.
 */
export const isOpen = (kept: Intent): boolean =>
  kept.acknowledgedAt === undefined &&
  settle(kept.result)?.status !== 'refused' &&
  (isSent(kept) || isKnown(kept));

/** True if money may have moved. */
export const isSent = ({ unanswered, result }: Intent): boolean => unanswered !== 0 || result !== undefined;

/** True if an intent must be kept. One that is over is kept for a while, for a `pay` that is still running. */
export const isNeeded = (kept: Intent): boolean =>
  isOpen(kept) || ambient.now() - Date.parse(kept.acknowledgedAt ?? kept.createdAt) < OVER_MS;

/** True if the gateway still knows a key of this time. A clock that was set back shows nothing. */
export const isKnown = ({ createdAt, keySince = createdAt }: Intent): boolean => {
  const age = ambient.now() - Date.parse(keySince);
  return age > -DAY_MS && age < KNOWN_MS;
};
