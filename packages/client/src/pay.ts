import { ambient } from './ambient.ts';
import { fieldOf, mutationField, PAYMENT, type PaymentLook } from './documents.ts';
import { ended, isKnown, isNeeded, isOpen, isSent } from './intent-states.ts';
import { changeIntents, type Intent, type IntentStore, isSameInput, randomKey } from './intents.ts';
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
import { ask, type Refused, refusalOf, retryAfterOf, type Source, type TypedDocument } from './source.ts';

/** How long one call may take before it counts as lost, in milliseconds: longer than the gateway takes for an operation. */
const ANSWER_MS = 35_000;
/** How long `pay` goes on asking about an unclear payment before it returns `unknown`, in milliseconds. */
const PATIENCE_MS = 60_000;

export interface PayOptions {
  /** Where the intent and its key are kept, so that they outlive the app. */
  readonly store: IntentStore;
  /** How long to go on asking while it is unclear if money has moved, in milliseconds; default 60,000. */
  readonly patienceMs?: number;
  /** How long one call may take, in milliseconds; default 35,000. */
  readonly answerMs?: number;
  /**
   * Makes an idempotency key, for platforms without `crypto`: `randomUUID` of expo-crypto. One that derives the key, such as
   * from the credit that a refund returns, has to give another key for each other payment, and every browser has to send the
   * same input with it. `pay` throws before it sends anything if a payment of another input has the key in this store.
   */
  readonly newKey?: () => string;
}

/** How a payment ended. `result` is the mutation's own. */
export type Outcome<Result extends PaymentResult> = Settled<Result> & {
  readonly intent: Intent;
  /**
   * To be called once the person has seen how it ended. Until then the same input is the same payment, also after a restart:
   * `pay` returns its outcome, and does not pay again. A payment that is unknown keeps its key even then, until `forget`.
   */
  acknowledge(): Promise<void>;
};

/**
 * Pays once. It makes and keeps the idempotency key before it sends anything, and every repetition has that key: on a bad
 * network, after a restart of the app, when the person presses the button again, and in another tab.
 *
 * Ends in done, refused or unknown. If it throws, such as the error of a store that cannot keep the intent, this call has sent
 * nothing. If the store fails later, the key is kept already: what the gateway has told stands, and the same input is still the
 * same payment. A refusal that could not be kept is told only if the gateway says that it is final.
 */
export async function pay<
  Data extends { [Key in keyof Data]: PaymentResult | 'Mutation' | null | undefined },
  Input extends { readonly idempotencyKey: string },
>(
  source: Source,
  mutation: TypedDocument<Data, { readonly input: Input }>,
  input: Omit<Input, 'idempotencyKey'>,
  options: PayOptions,
): Promise<Outcome<Extract<ResultOf<Data>, PaymentResult>>> {
  const { store, patienceMs = PATIENCE_MS, answerMs = ANSWER_MS, newKey = randomKey } = options;
  const payment: Payment = {
    store,
    intent: {
      idempotencyKey: newKey(),
      mutation: mutationField(mutation) ?? 'mutation',
      // A copy: a form may go on with the same object. Proxies can be copied only so.
      input: JSON.parse(JSON.stringify(input)) as Readonly<Record<string, unknown>>,
      createdAt: isoNow(),
      unanswered: 0,
    },
    isEntered: false,
    over: undefined,
    look: (idempotencyKey) => ask(source, PAYMENT, { idempotencyKey }),
    ask: ({ input: fields, idempotencyKey }) =>
      // The fields of the caller, with the key that they lacked.
      ask(source, mutation, { input: { ...fields, idempotencyKey } as Input }, answerMs),
  };
  const settled = await askUntilClear(payment, ambient.now() + patienceMs);
  return {
    // The result that settled it is one of this mutation.
    ...(settled as Settled<Extract<ResultOf<Data>, PaymentResult>>),
    intent: payment.intent,
    acknowledge: async () => {
      // The app has shown `unknown`. The person has not seen another end, even if one is known by now.
      if (settled.status === 'unknown') return;
      const acknowledgedAt = isoNow();
      await keep(payment, settled, (kept) => ({ ...kept, acknowledgedAt }));
    },
  };
}

type ResultOf<Data> = Exclude<Data[Exclude<keyof Data, '__typename'>], null | undefined>;

interface Payment {
  readonly store: IntentStore;
  /** The intent as it was last kept. Before that, the one that is used unless one is known already. */
  intent: Intent;
  /** True if a call has been entered. */
  isEntered: boolean;
  /** `DONE` or `REFUSED`, if the gateway has said that the payment has ended so. */
  over: string | undefined;
  /** Asks what became of a key. That sends no payment. */
  look(idempotencyKey: string): Promise<PaymentLook>;
  ask(intent: Intent): Promise<object>;
}

/** Asks until the outcome is clear, or until the time is over. */
async function askUntilClear(payment: Payment, until: number): Promise<Settled<PaymentResult>> {
  const pause = new Pause();
  for (;;) {
    const told = await send(payment).catch((cause: unknown) => {
      if (!payment.isEntered) throw cause;
      return lost(cause);
    });
    if (!isUnclear(told)) return told;
    const waitMs = retryAfterOf(told.cause);
    if (refusalOf(told.cause) !== undefined || ambient.now() + waitMs > until) {
      // It may be an error of the app's store, which has no such code.
      const { code, message } = Object(told.cause) as Partial<Refused>;
      const known = typeof code === 'string' ? code : 'STORE_UNAVAILABLE';
      const result = { __typename: 'Refused', code: known, message };
      // Nothing has moved if each call was answered so.
      return keep(payment, told, (kept) => (isSent(kept) ? kept : { ...kept, result })).catch(() => told);
    }
    await pause.next(waitMs);
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
      if (isReused || intent.unanswered > 1) {
        isFinal = (await hasEnded(payment)) === 'REFUSED';
        // It says nothing of earlier calls, nor of the payment that the key belongs to.
        if (!isFinal && isReused) return unknown(message, false, { code });
        if (!isFinal) told = unknown(message, true, { code });
      }
    }
    change = (kept) => ended(kept, result, isFinal);
  } catch (cause) {
    told = lost(cause);
    if (!hasMovedNothing(cause)) return told;
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
 * sent again, and the gateway answers with that end.
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
  const { store, intent: own, isEntered } = payment;
  let known: Settled<PaymentResult> | undefined;
  // Called again if another tab or process was quicker.
  await changeIntents(store, (intents) => {
    const earlier = intents.find((kept) =>
      isEntered ? isSame(kept, own) : isAlike(kept, own) && isOpen(kept),
    );
    const before = earlier ?? own;
    if (!isEntered && earlier === undefined && intents.some((kept) => isTaken(kept, own)))
      throw new Error(TAKEN);
    payment.intent = before;
    known = settle(before.result);
    if (isEntered && earlier === undefined) known = unknown('It was let go of elsewhere.');
    // An intent that an earlier version has made has no date.
    else if ((payment.over !== undefined && known?.status === 'unknown') || isUnclear(known))
      known = isSent(before) && !isKnown(before) ? unknown('It is too long ago to ask again.') : undefined;
    if (known !== undefined) return intents;
    payment.intent = { ...before, unanswered: before.unanswered + 1 };
    return [...intents.filter((kept) => !isSame(kept, before) && isNeeded(kept)), payment.intent];
  });
  payment.isEntered = true;
  return known;
}

/** True if two intents are payments of the same input. */
const isAlike = (one: Intent, other: Intent): boolean =>
  one.mutation === other.mutation && isSameInput(one.input, other.input);

/** True if they have the same key, too. A `newKey` that derives keys gives the same one for the next press. */
const isSame = (one: Intent, other: Intent): boolean =>
  one.idempotencyKey === other.idempotencyKey && isAlike(one, other);

/** True if the new key of a payment is that of another input, which has moved money or may. */
const isTaken = (kept: Intent, own: Intent): boolean =>
  kept.idempotencyKey === own.idempotencyKey &&
  !isAlike(kept, own) &&
  isSent(kept) &&
  settle(kept.result)?.status !== 'refused';

const TAKEN = '`newKey` has to give each payment its own key. Nothing was sent.';

/** Changes the intent that the store now holds. @returns how the payment ended by that intent, or else what was told */
async function keep(
  payment: Payment,
  told: Settled<PaymentResult>,
  change: (kept: Intent) => Intent,
): Promise<Settled<PaymentResult>> {
  let stands: Settled<PaymentResult> | undefined;
  await changeIntents(payment.store, (intents) =>
    intents.map((one) => {
      if (!isSame(one, payment.intent)) return one;
      payment.intent = change(one);
      stands = settle(payment.intent.result);
      return payment.intent;
    }),
  );
  return isUnclear(stands) ? told : stands;
}

const isoNow = (): string => new Date(ambient.now()).toISOString();
