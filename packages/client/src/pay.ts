import { ambient } from './ambient.ts';
import { namesOf, PAYMENT } from './documents.ts';
import { type Intent, type IntentStore, randomKey } from './intents.ts';
import { type PaymentResult, type Settled, settle } from './outcome.ts';
import { askUntilClear, keep, type Payment } from './payment.ts';
import { ask, type Source, type TypedDocument } from './source.ts';

/** How long one call may take before it counts as lost, in milliseconds: longer than the gateway takes for an operation. */
const ANSWER_MS = 35_000;
/** How long `pay` asks again about an unclear payment, in milliseconds. Its last call may begin one pause later. Then it returns `unknown`. */
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
   * same input with it: give `sharedKey` too then. `pay` throws before it sends anything if a payment of another input has the
   * key in this store.
   */
  readonly newKey?: () => string;
  /**
   * True if another device may pay under the same key, from a store of its own. This payment is then refused only once the gateway's
   * `payment` says `REFUSED`; until then a refusal of this device's calls leaves it unknown, with `safeToRetry`. The exception is a refund with
   * `INVALID_INPUT`, such as of another amount than the credit's: no call with that input moves money, so it is refused at once.
   */
  readonly sharedKey?: boolean;
  /**
   * When what a derived key is made of began, such as a draft or a row of your backend: a `Date`, ISO 8601 text, or milliseconds. Nothing is
   * sent 29 days after that. Another device may have paid with the key then, and the gateway forgets a key after 30 days. Default: now.
   */
  readonly keySince?: Date | string | number;
  /**
   * Leaves the payment, and does not cancel it: nothing more is sent. Once a call is entered, this resolves with `unknown` and `safeToRetry`,
   * and the store keeps the intent for `finish` or the next `pay`. Before that this rejects with the signal's reason.
   */
  readonly signal?: AbortSignal;
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
 * Pays once, for all who share the store. It makes and keeps the idempotency key before it sends anything, and every repetition has that key: on a bad
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
  const { newKey = randomKey, sharedKey, keySince } = options;
  const names = namesOf(mutation);
  const intent: Intent = {
    idempotencyKey: newKey(),
    mutation: names[0] as string,
    // A copy: a form may go on with the same object. Proxies can be copied only so.
    input: JSON.parse(JSON.stringify(input)) as Readonly<Record<string, unknown>>,
    createdAt: isoNow(),
    ...(keySince !== undefined && { keySince: isoOf(keySince) }),
    // Another device's call counts as one without an answer.
    unanswered: sharedKey ? 1 : 0,
  };
  return end(source, mutation, intent, options, names);
}

/**
 * Finishes a payment that {@link unsettled} has listed: tells how it ended, or goes on asking with its key. It never makes
 * another payment. If another tab has been told meanwhile that it was refused, or has acknowledged it, this returns that end
 * and sends nothing. The store has such an end within an hour after it was acknowledged, or, if it was refused, within an hour
 * after the intent was made; the next call of a payment that is sent from this store drops it after that. If it was dropped or
 * forgotten meanwhile, or is too old to ask about, it is `unknown`, without `safeToRetry`.
 *
 * Throws if the store cannot be read: this call has sent nothing then.
 *
 * @param mutation the document of the field that `intent.mutation` names
 */
export async function finish<
  Data extends { [Key in keyof Data]: PaymentResult | 'Mutation' | null | undefined },
  Input extends { readonly idempotencyKey: string },
>(
  source: Source,
  mutation: TypedDocument<Data, { readonly input: Input }>,
  intent: Intent,
  options: Omit<PayOptions, 'newKey' | 'sharedKey' | 'keySince'>,
): Promise<Outcome<Extract<ResultOf<Data>, PaymentResult>>> {
  if (!namesOf(mutation).includes(intent.mutation))
    throw new Error(`Give \`finish\` the mutation of its intent, \`${intent.mutation}\`. Nothing was sent.`);
  return end(source, mutation, intent, options);
}

async function end<
  Data extends { [Key in keyof Data]: PaymentResult | 'Mutation' | null | undefined },
  Input extends { readonly idempotencyKey: string },
>(
  source: Source,
  mutation: TypedDocument<Data, { readonly input: Input }>,
  intent: Intent,
  { store, patienceMs = PATIENCE_MS, answerMs = ANSWER_MS, signal }: PayOptions,
  names?: readonly string[],
): Promise<Outcome<Extract<ResultOf<Data>, PaymentResult>>> {
  const payment: Payment = {
    store,
    signal,
    intent,
    names,
    look: (idempotencyKey) => ask(source, PAYMENT, { idempotencyKey }, undefined, signal),
    ask: ({ input: fields, idempotencyKey }) =>
      // The fields of the caller, with the key that they lacked.
      ask(source, mutation, { input: { ...fields, idempotencyKey } as Input }, answerMs, signal),
  };
  const settled = await askUntilClear(payment, patienceMs);
  return {
    // The result that settled it is one of this mutation.
    ...(settled as Settled<Extract<ResultOf<Data>, PaymentResult>>),
    intent: payment.intent,
    acknowledge: async () => {
      // The person has seen what the app has shown: not another end that is known by now.
      if (settled.status === 'unknown') return;
      const acknowledgedAt = isoNow();
      const isAnother = ({ result }: Intent) =>
        settled.status === 'refused' && settle(result)?.status === 'done';
      await keep(payment, settled, (kept) => (isAnother(kept) ? kept : { ...kept, acknowledgedAt }));
    },
  };
}

type ResultOf<Data> = Exclude<Data[Exclude<keyof Data, '__typename'>], null | undefined>;

const isoNow = (): string => new Date(ambient.now()).toISOString();

function isoOf(time: Date | string | number): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) throw new Error('`keySince` has to be a time. Nothing was sent.');
  return date.toISOString();
}
