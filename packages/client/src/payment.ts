import { ambient } from './ambient.ts';
import { fieldOf, type PaymentLook } from './documents.ts';
import { ended, isKnown, isNeeded, isOpen, isSent } from './intent-states.ts';
import { changeIntents, type Intent, type IntentStore, isSameInput } from './intents.ts';
import {
  hasMovedNothing,
  incomplete,
  isUnclear,
  lost,
  type PaymentResult,
  type Settled,
  settle,
  unknown,
} from './outcome.ts';
import { Pause } from './pause.ts';
import { refusalOf, retryAfterOf, throwIfLeft, within } from './source.ts';

/** A payment that is under way in this process. */
export interface Payment {
  readonly store: IntentStore;
  /** Aborted once nobody waits for the payment any more. */
  readonly signal: AbortSignal | undefined;
  /** The intent as it was last kept. Before that, the one that is used unless one is known already. */
  intent: Intent;
  /** The names that its mutation may have in the store. Undefined where the store has listed this very payment: no other one is made in its place. */
  readonly names: readonly string[] | undefined;
  /** True once the store was read for this call: the call has been entered, or the store had the end of the payment. */
  isEntered?: boolean;
  /** `DONE` or `REFUSED`, if the gateway has said that the payment has ended so. */
  over?: string | undefined;
  /** Asks what became of a key. That sends no payment. Rejects once the payment is left, as `ask` does. */
  look(idempotencyKey: string): Promise<PaymentLook>;
  ask(intent: Intent): Promise<object>;
}

/**
 * The last call may begin a pause later than the time is over, in milliseconds. Later the machine has slept, or the app was frozen, perhaps for
 * days: nobody waits any more, and a call that pays then is none that somebody has asked for.
 */
const LATEST_MS = 30_000;

/**
 * Asks until the outcome is clear, or until some milliseconds are over. Throws the store's error if nothing was sent.
 */
export async function askUntilClear(payment: Payment, patienceMs: number): Promise<Settled<PaymentResult>> {
  const pause = new Pause();
  let leftMs = patienceMs;
  let readAt = ambient.now();
  const countDown = (): number => {
    const now = ambient.now();
    // A clock that is set back shows no time that has passed.
    leftMs -= Math.max(0, now - readAt);
    readAt = now;
    return leftMs;
  };
  for (;;) {
    const told = await send(payment).catch((cause: unknown) => {
      if (!payment.isEntered) throw cause;
      return lost(cause);
    });
    if (!isUnclear(told) || payment.signal?.aborted) return told;
    const waitMs = retryAfterOf(told.cause);
    let isOver = refusalOf(told.cause) !== undefined || waitMs > countDown();
    if (!isOver) {
      // The timer of a pause that was left would go on.
      await within(undefined, () => pause.next(waitMs), payment.signal).catch(() => pause.wake(true));
      isOver = !payment.signal?.aborted && countDown() < -LATEST_MS;
    }
    if (isOver) {
      // Without a code it is an error of the app's store.
      const { code = 'STORE_UNAVAILABLE', cause } = told;
      const result = { __typename: 'Refused', code, message: Object(cause).message };
      // Nothing has moved if each call was answered so.
      return keep(payment, told, (kept) => (isSent(kept) ? kept : { ...kept, result })).catch(() => told);
    }
  }
}

/** Sends the payment once, unless its end is known. The store keeps that it is under way before it is sent. */
async function send(payment: Payment): Promise<Settled<PaymentResult>> {
  let known = await enter(payment);
  if (known?.status === 'unknown' && (await hasEnded(payment)) !== undefined) known = await enter(payment);
  if (known !== undefined) return known;
  const { intent } = payment;
  let told: Settled<PaymentResult>;
  let change: (kept: Intent) => Intent;
  try {
    const result: unknown = fieldOf(await payment.ask(intent));
    const read = settle(result);
    if (read === undefined) return result == null ? lost() : incomplete();
    told = read;
    let isFinal = told.status !== 'refused';
    if (told.status === 'refused') {
      const { code, message } = told;
      if (code === 'IDEMPOTENCY_IN_PROGRESS') return lost();
      // The key is that of another input: of an app with a defect, or of another device that makes the same key.
      const isReused = code === 'IDEMPOTENCY_KEY_REUSED';
      // Of a refund, such as of another amount than the credit's. Neither amount changes, so that no other call with this input moves money
      // either, also of another device. What the gateway has called unknown it has sent: that input was in order.
      const isInput = intent.mutation === 'refundTransaction' && code === 'INVALID_INPUT';
      if (isInput && intent.result === undefined) isFinal = true;
      else if (isReused || intent.unanswered > 1) {
        isFinal = (await hasEnded(payment)) === 'REFUSED';
        // It says nothing of earlier calls, nor of the payment that the key belongs to.
        if (!isFinal && isReused) return unknown(message, false, { code });
        if (!isFinal) told = unknown(message, true, { code });
      }
    }
    change = (kept) => ended(kept, result, isFinal);
  } catch (cause) {
    if (!hasMovedNothing(cause)) return lost(cause);
    told = lost(cause, cause.code);
    change = (kept) => ({ ...kept, unanswered: kept.unanswered - 1 });
  }
  const kept = told.status === 'refused' ? lost() : told;
  return keep(payment, kept, change).catch(async () =>
    // A store that fails now still holds the key. It does not tell whether another call has been entered.
    kept === told || (await hasEnded(payment)) === 'REFUSED' ? told : kept,
  );
}

/**
 * Asks, until it is known, whether the gateway has learned how a payment ended. Only then is one that is not safe to repeat
 * sent again, and the gateway answers with that end. A null is no end: the gateway may have lost the record, and a repeat would
 * pay twice then.
 */
async function hasEnded(payment: Payment): Promise<string | undefined> {
  try {
    if (payment.over === undefined) {
      const { payment: found } = await payment.look(payment.intent.idempotencyKey);
      payment.over = ['DONE', 'REFUSED'].find((state) => state === found?.state);
    }
  } catch {
    // It stays unknown.
  }
  return payment.over;
}

/**
 * Enters a call in the intent, and makes the intent if there is none. All that decides if the call is sent is read in that
 * one step, because another `pay` of the same input may be at any other.
 *
 * @returns how the payment ended, if nothing is to be sent.
 */
async function enter(payment: Payment): Promise<Settled<PaymentResult> | undefined> {
  const { store, intent: own, names } = payment;
  const isKept = names === undefined || payment.isEntered;
  let known: Settled<PaymentResult> | undefined;
  // Called again if another tab or process was quicker.
  await changeIntents(store, (intents) => {
    throwIfLeft(payment.signal);
    const earlier = intents.find((kept) =>
      isKept ? isSame(kept, own) : isAlike(kept, own, names) && isOpen(kept),
    );
    // An intent that an earlier version of the app has made does not say since when its key could be used.
    const before =
      earlier === undefined ? own : { ...(own.keySince && { keySince: own.keySince }), ...earlier };
    if (!isKept && earlier === undefined && intents.some((kept) => isTaken(kept, own, names)))
      throw new Error(TAKEN);
    payment.intent = before;
    known = settle(before.result);
    if (isKept && earlier === undefined) known = unknown('It was let go of elsewhere.');
    // An intent that an earlier version has made has no date.
    else if ((payment.over !== undefined && known?.status === 'unknown') || isUnclear(known))
      known = isKnown(before) ? undefined : unknown('It is too long ago to ask again.');
    if (known !== undefined) return intents;
    payment.intent = { ...before, unanswered: before.unanswered + 1 };
    return [...intents.filter((kept) => !isSame(kept, before) && isNeeded(kept)), payment.intent];
  });
  payment.isEntered = true;
  return known;
}

/** True if two intents are payments of the same input. @param names those of the other's mutation */
const isAlike = (one: Intent, other: Intent, names: readonly string[] = [other.mutation]): boolean =>
  names.includes(one.mutation) && isSameInput(one.input, other.input);

/** True if they have the same key, too. A `newKey` that derives keys gives the same one for the next press. */
const isSame = (one: Intent, other: Intent): boolean =>
  one.idempotencyKey === other.idempotencyKey && isAlike(one, other);

/** True if the new key of a payment is that of another input, which has moved money or may. */
const isTaken = (kept: Intent, own: Intent, names: Payment['names']): boolean =>
  kept.idempotencyKey === own.idempotencyKey &&
  !isAlike(kept, own, names) &&
  isSent(kept) &&
  settle(kept.result)?.status !== 'refused';

const TAKEN = '`newKey` has to give each payment its own key. Nothing was sent.';

/**
 * Changes the intent that the store now holds, but not one that was made in its place with the same key.
 *
 * @returns how the payment ended by that intent, or else what was told
 */
export async function keep(
  payment: Payment,
  told: Settled<PaymentResult>,
  change: (kept: Intent) => Intent,
): Promise<Settled<PaymentResult>> {
  let stands: Settled<PaymentResult> | undefined;
  await changeIntents(payment.store, (intents) =>
    intents.map((one) => {
      if (!isSame(one, payment.intent) || one.createdAt !== payment.intent.createdAt) return one;
      payment.intent = change(one);
      stands = settle(payment.intent.result);
      return payment.intent;
    }),
  );
  return isUnclear(stands) ? told : stands;
}
