import { ambient } from './ambient.ts';
import { fieldOf, mutationField } from './documents.ts';
import { changeIntents, type Intent, type IntentStore, isSameInput, randomKey } from './intents.ts';
import { Pause } from './pause.ts';
import { ask, Refused, refusalOf, retryAfterOf, type Source, type TypedDocument } from './source.ts';

/** How long one call may take before it is taken for lost, in milliseconds: longer than the gateway takes for an operation. */
const ANSWER_MS = 35_000;
/** How long an unclear payment is asked about before `pay` says that it is unknown. */
const PATIENCE_MS = 60_000;
const DAY_MS = 86_400_000;
/** The gateway knows a key for 30 days. A day is left for clocks that are wrong: past this, nothing is sent again. */
const KNOWN_MS = 29 * DAY_MS;
/** How long a payment that is over is kept. */
const OVER_MS = 3_600_000;

export interface PayOptions {
  /** Where the intent and its key are kept, so that they outlive the app. */
  readonly store: IntentStore;
  /** How long to go on asking while it is unclear whether money has moved, in milliseconds; default 60,000. */
  readonly patienceMs?: number;
  /** How long one call may take, in milliseconds; default 35,000. */
  readonly answerMs?: number;
  /** Makes an idempotency key; where the platform has no `crypto`: `randomUUID` of expo-crypto. */
  readonly newKey?: () => string;
}

/** A result of one of the four mutations that move money. */
interface PaymentResult {
  readonly __typename: string;
}

/** How a payment ended. `result` is the mutation's own. */
export type Outcome<Result extends PaymentResult> = Settled<Result> & {
  readonly intent: Intent;
  /**
   * To be called once the person has seen how it ended. Until then the same input is the same payment, also after a
   * restart: it is answered, and not paid again. A payment that is unknown keeps its key all the same, until `forget`.
   */
  acknowledge(): Promise<void>;
};

/** The successes among a mutation's results; each result, where its type does not tell them apart. */
type SuccessOf<Result> = [Extract<Result, { __typename: `${string}Success` }>] extends [never]
  ? Result
  : Extract<Result, { __typename: `${string}Success` }>;

type Settled<Result extends PaymentResult> =
  | { readonly status: 'done'; readonly result: SuccessOf<Result> }
  /** Nothing has moved. `code` is a `UserErrorCode`, or what the gateway said before it looked at the payment. */
  | { readonly status: 'refused'; readonly code: string; readonly message: string }
  /** It may have happened. With `safeToRetry`, the same call goes on asking; without, nothing is sent: look, then `forget`. */
  | {
      readonly status: 'unknown';
      readonly safeToRetry: boolean;
      readonly message: string;
      /** What broke the connection, where that is why. */
      readonly cause?: unknown;
    };

/**
 * Pays once. The idempotency key is made and kept before anything is sent, and every repetition bears it: on a bad network,
 * after a restart of the app, when the person presses the button again, and in another tab.
 *
 * Ends in done, refused or unknown. Throws what `store` throws; before anything was sent where it cannot keep the intent.
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
      // An input is an object of the fields that the schema gives it.
      input: input as Readonly<Record<string, unknown>>,
      createdAt: isoNow(),
      unanswered: 0,
    },
    isEntered: false,
    ask: ({ input: fields, idempotencyKey }) =>
      // The fields are those that the caller gave, and the key that they lacked.
      ask(source, mutation, { input: { ...fields, idempotencyKey } as Input }, answerMs),
  };
  const settled = await ended(payment, ambient.now() + patienceMs);
  return {
    // What settled it is a result of this very mutation.
    ...(settled as Settled<Extract<ResultOf<Data>, PaymentResult>>),
    intent: payment.intent,
    acknowledge: async () => {
      // What is shown as unknown has not been seen to be done, whatever is known by now.
      if (!isClear(settled)) return;
      const acknowledgedAt = isoNow();
      await keep(payment, (kept) => ({ ...kept, acknowledgedAt }));
    },
  };
}

type ResultOf<Data> = Exclude<Data[Exclude<keyof Data, '__typename'>], null | undefined>;

/**
 * The payments of which the app has not yet shown how they ended: for its next start. `pay` with their input tells how they
 * ended, or goes on asking where that is safe.
 */
export const unsettled = async (store: IntentStore): Promise<readonly Intent[]> =>
  (await store.load()).filter(
    ({ result, unanswered, acknowledgedAt }) =>
      acknowledgedAt === undefined &&
      (result === undefined ? unanswered !== 0 : settle(result)?.status !== 'refused'),
  );

/**
 * Lets go of a payment that stays unknown, once a person has looked whether it happened: the next `pay` with its input is a new
 * payment. A `pay` of it that is still running sends nothing more.
 */
export const forget = (store: IntentStore, idempotencyKey: string): Promise<void> =>
  changeIntents(store, (intents) => intents.filter((kept) => kept.idempotencyKey !== idempotencyKey));

interface Payment {
  readonly store: IntentStore;
  /** As it was last kept; before that, the one that it is unless one is known already. */
  intent: Intent;
  /** Whether a call has been entered. */
  isEntered: boolean;
  ask(intent: Intent): Promise<object>;
}

/** Asks until it is clear, or until there is no more patience. */
async function ended(payment: Payment, until: number): Promise<Settled<PaymentResult>> {
  const pause = new Pause();
  for (;;) {
    const told = await send(payment);
    if (isClear(told) || (told.status === 'unknown' && !told.safeToRetry)) return told;
    const waitMs = retryAfterOf(told.cause);
    if (refusalOf(told.cause) !== undefined || ambient.now() + waitMs > until) {
      return told.status === 'nothing' ? giveUp(payment, told.cause) : told;
    }
    await pause.next(waitMs);
  }
}

/** Top-level errors that do not say how far the call came. Each other one says that it has moved nothing. */
const UNCLEAR: readonly string[] = ['INTERNAL', 'UNKNOWN'];

type SendOutcome =
  | Settled<PaymentResult>
  /** This call has moved nothing; another one may have. */
  | { readonly status: 'nothing'; readonly cause: Refused };

/** Sends the payment once, unless it is known how it ended. That it is under way is kept before it leaves. */
async function send(payment: Payment): Promise<SendOutcome> {
  const known = await enter(payment);
  if (known !== undefined) return known;
  const { intent } = payment;
  try {
    const result: unknown = fieldOf(await payment.ask(intent));
    const told = settle(result);
    if (told === undefined) {
      return result == null ? lost() : unknown('The mutation has to select `__typename`.');
    }
    if (told.status === 'refused') {
      if (told.code === 'IDEMPOTENCY_IN_PROGRESS') return lost();
      // Every call has sent the same: the gateway, which takes them for different, says nothing of the ones before.
      if (told.code === 'IDEMPOTENCY_KEY_REUSED' && intent.unanswered > 1) return unknown(told.message);
    }
    const stands = await keep(payment, (kept) => (isClear(settle(kept.result)) ? kept : { ...kept, result }));
    return isClear(stands) ? stands : told;
  } catch (cause) {
    if (!(cause instanceof Refused) || UNCLEAR.includes(cause.code)) return lost(cause);
    const stands = await keep(payment, (kept) => ({ ...kept, unanswered: kept.unanswered - 1 }));
    return isClear(stands) ? stands : { status: 'nothing', cause };
  }
}

/**
 * Enters a call with the intent, which is made where there is none. All that decides whether to send is read in that one step:
 * another `pay` of the same input may stand at any other.
 *
 * @returns how the payment ended, where nothing is to be sent.
 */
async function enter(payment: Payment): Promise<Settled<PaymentResult> | undefined> {
  const { store, intent: own, isEntered } = payment;
  let known: Settled<PaymentResult> | undefined;
  // Asked again where another was quicker.
  await changeIntents(store, (intents) => {
    const earlier = intents.find((kept) =>
      isEntered
        ? kept.idempotencyKey === own.idempotencyKey
        : kept.mutation === own.mutation && isSameInput(kept.input, own.input) && isOpen(kept),
    );
    const before = earlier ?? own;
    payment.intent = before;
    known = settle(before.result);
    if (known?.status === 'unknown' && known.safeToRetry) known = undefined;
    if (isEntered && earlier === undefined) known = unknown('It was let go of elsewhere.');
    // An intent of an earlier version has no date.
    else if (before.unanswered !== 0 && !isKnown(before))
      known ??= unknown('It is too long ago to ask again.');
    if (known !== undefined) return intents;
    payment.intent = { ...before, unanswered: before.unanswered + 1 };
    return [...intents.filter((kept) => kept !== earlier && isNeeded(kept)), payment.intent];
  });
  payment.isEntered = true;
  return known;
}

/** Whether the same input goes on with an intent. One that was refused, or never left in time, is over, as one is whose end was seen. */
const isOpen = (kept: Intent): boolean =>
  kept.acknowledgedAt === undefined &&
  settle(kept.result)?.status !== 'refused' &&
  (kept.unanswered !== 0 || kept.result !== undefined || isKnown(kept));

/** What is over is kept for a while, for a `pay` of it that is still running. */
const isNeeded = (kept: Intent): boolean =>
  isOpen(kept) || ambient.now() - Date.parse(kept.acknowledgedAt ?? kept.createdAt) < OVER_MS;

/** Whether the gateway still knows a key of this time. A clock that was put back says nothing. */
const isKnown = ({ createdAt }: Intent): boolean => {
  const age = ambient.now() - Date.parse(createdAt);
  return age > -DAY_MS && age < KNOWN_MS;
};

/** Ends a payment that was refused before the gateway looked at it: nothing has moved, unless another call has. */
async function giveUp(payment: Payment, { code, message }: Refused): Promise<Settled<PaymentResult>> {
  const result = { __typename: 'Refused', code, message };
  const told = await keep(payment, (kept) =>
    kept.unanswered === 0 && kept.result === undefined ? { ...kept, result } : kept,
  );
  return told ?? unknown(message, true);
}

/** Changes the intent as it is kept by now. @returns how the payment stands by that. */
async function keep(
  { store, intent }: Payment,
  change: (kept: Intent) => Intent,
): Promise<Settled<PaymentResult> | undefined> {
  let kept: Intent | undefined;
  await changeIntents(store, (intents) => {
    kept = undefined;
    return intents.map((one) => {
      if (one.idempotencyKey !== intent.idempotencyKey) return one;
      kept = change(one);
      return kept;
    });
  });
  return settle(kept?.result);
}

const isoNow = (): string => new Date(ambient.now()).toISOString();

const unknown = (message: string, safeToRetry = false, cause?: unknown): Settled<PaymentResult> => ({
  status: 'unknown',
  safeToRetry,
  message,
  cause,
});

/** No answer came that says anything. @param cause what broke the connection, where that is why */
const lost = (cause?: unknown): Settled<PaymentResult> =>
  unknown(refusalOf(cause)?.message ?? 'No answer came.', true, cause);

const isClear = (
  told: SendOutcome | undefined,
): told is Extract<Settled<PaymentResult>, { readonly status: 'done' | 'refused' }> =>
  told?.status === 'done' || told?.status === 'refused';

type Fields = Readonly<Record<string, unknown>>;

/** What a result says. Undefined where there is none, or one that this package does not know. */
function settle(result: unknown): Settled<PaymentResult> | undefined {
  const { __typename = '', code, message = '', safeToRetry, retryUntil } = Object(result) as Fields;
  const name = String(__typename);
  if (name.endsWith('Success')) return { status: 'done', result: result as never };
  if (name === 'OutcomeUnknown') {
    const isOver = typeof retryUntil === 'string' && Date.parse(retryUntil) <= ambient.now();
    return unknown(String(message), safeToRetry === true && !isOver);
  }
  return name === ''
    ? undefined
    : { status: 'refused', code: String(code ?? 'REFUSED'), message: String(message) };
}
