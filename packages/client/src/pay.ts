import { fieldOf, rootField } from './documents.ts';
import { changeIntents, type Intent, type IntentStore, isSameInput, randomKey } from './intents.ts';
import { Pause } from './pause.ts';
import { ask, isFinal, Refused, retryAfterOf, type Source, type TypedDocument } from './source.ts';

/** How long one call may take before it is taken for lost, in milliseconds: longer than the gateway takes for an operation. */
const ANSWER_MS = 35_000;
/** How long an unclear payment is asked about before `pay` says that it is unknown. */
const PATIENCE_MS = 60_000;

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
   * restart: it is answered, and not paid again.
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
  /** It may have happened. With `safeToRetry`, the same call goes on asking; without, look before paying again. */
  | { readonly status: 'unknown'; readonly safeToRetry: boolean; readonly message: string };

/**
 * Pays once. The idempotency key is made and kept before anything is sent, and every repetition bears it: on a bad network,
 * after a restart of the app, and when the person presses the button again.
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
  const { store, patienceMs = PATIENCE_MS, answerMs = ANSWER_MS } = options;
  const name = rootField(mutation, 'mutation') ?? 'mutation';
  // An input is an object of the fields that the schema gives it.
  const fields = input as Readonly<Record<string, unknown>>;
  // Called back before that resolves.
  let intent!: Intent;
  await changeIntents(store, (intents) => {
    const known = intents.find(
      (kept) =>
        kept.mutation === name &&
        isSameInput(kept.input, fields) &&
        settle(kept.result)?.status !== 'refused',
    );
    intent = known ?? {
      idempotencyKey: (options.newKey ?? randomKey)(),
      mutation: name,
      input: fields,
      inDoubt: false,
    };
    return known === undefined ? [...intents, intent] : intents;
  });
  const payment: Payment<Data, Input> = { source, mutation, store, answerMs, intent };
  const settled = await ended(payment, Date.now() + patienceMs);
  const { idempotencyKey } = payment.intent;
  return {
    // What settled it is a result of this very mutation.
    ...(settled as Settled<Extract<ResultOf<Data>, PaymentResult>>),
    intent: payment.intent,
    acknowledge: () =>
      changeIntents(store, (intents) => intents.filter((kept) => kept.idempotencyKey !== idempotencyKey)),
  };
}

type ResultOf<Data> = Exclude<Data[Exclude<keyof Data, '__typename'>], null | undefined>;

/** The payments of which the app has not yet shown how they ended: for its next start. `pay` with their input goes on. */
export const unsettled = async (store: IntentStore): Promise<readonly Intent[]> =>
  (await store.load()).filter(({ result }) => settle(result)?.status !== 'refused');

interface Payment<Data, Input> {
  readonly source: Source;
  readonly mutation: TypedDocument<Data, { readonly input: Input }>;
  readonly store: IntentStore;
  readonly answerMs: number;
  intent: Intent;
}

/** Asks until it is clear, or until there is no more patience. */
async function ended<Data, Input>(
  payment: Payment<Data, Input>,
  until: number,
): Promise<Settled<PaymentResult>> {
  const pause = new Pause();
  for (;;) {
    const known = settle(payment.intent.result);
    // A refund is told of by the same key later on; what cannot be repeated keeps its answer.
    if (known !== undefined && known.status !== 'unknown') return known;
    const before = payment.intent.inDoubt;
    const told = await send(payment);
    if (told.status === 'done' || told.status === 'refused') return told;
    if (told.status === 'unknown' && !told.safeToRetry) return told;
    const waitMs = told.status === 'nothing' ? retryAfterOf(told.cause) : 0;
    if (told.status === 'nothing' && (isFinal(told.cause) || Date.now() + waitMs > until)) {
      const { code, message } = told.cause;
      if (before) return { status: 'unknown', safeToRetry: true, message };
      await keep(payment, { result: { __typename: 'Refused', code, message } });
      return { status: 'refused', code, message };
    }
    if (Date.now() + waitMs > until) {
      return told.status === 'unknown'
        ? told
        : { status: 'unknown', safeToRetry: true, message: 'No answer came.' };
    }
    await pause.next(waitMs);
  }
}

/** Top-level errors that do not say how far the call came. Each other one says that it has moved nothing. */
const UNCLEAR: readonly string[] = ['INTERNAL', 'UNKNOWN'];

type Told =
  | Settled<PaymentResult>
  /** This call has moved nothing; one before it may have. */
  | { readonly status: 'nothing'; readonly cause: Refused }
  | { readonly status: 'lost' };

/** Sends the payment once. That it is under way is kept before it leaves, and what came of it before it is told. */
async function send<Data, Input>(payment: Payment<Data, Input>): Promise<Told> {
  const { source, mutation, intent, answerMs } = payment;
  const { idempotencyKey, input, inDoubt } = intent;
  if (!inDoubt) await keep(payment, { inDoubt: true });
  try {
    // The fields are those that the caller gave, and the key that they lacked.
    const variables = { input: { ...input, idempotencyKey } as Input };
    const result: unknown = fieldOf(await ask(source, mutation, variables, answerMs));
    const told = settle(result);
    if (told === undefined) return { status: 'lost' };
    if (told.status === 'refused' && told.code === 'IDEMPOTENCY_IN_PROGRESS') return { status: 'lost' };
    await keep(payment, { result });
    return told;
  } catch (cause) {
    if (!(cause instanceof Refused) || UNCLEAR.includes(cause.code)) return { status: 'lost' };
    if (!inDoubt) await keep(payment, { inDoubt: false });
    return { status: 'nothing', cause };
  }
}

async function keep(
  payment: { readonly store: IntentStore; intent: Intent },
  change: Partial<Intent>,
): Promise<void> {
  const intent = { ...payment.intent, ...change };
  await changeIntents(payment.store, (intents) =>
    intents.map((kept) => (kept.idempotencyKey === intent.idempotencyKey ? intent : kept)),
  );
  payment.intent = intent;
}

/** What a result says. Undefined where there is none, or one that this package does not know. */
function settle(result: unknown): Settled<PaymentResult> | undefined {
  if (typeof result !== 'object' || result === null) return undefined;
  const {
    __typename = '',
    code,
    message = '',
    safeToRetry,
    retryUntil,
  } = result as Readonly<Record<string, unknown>>;
  const name = String(__typename);
  if (name.endsWith('Success')) return { status: 'done', result: result as never };
  if (name === 'OutcomeUnknown') {
    const isOver = typeof retryUntil === 'string' && Date.parse(retryUntil) <= Date.now();
    return { status: 'unknown', safeToRetry: safeToRetry === true && !isOver, message: String(message) };
  }
  if (name !== '') return { status: 'refused', code: String(code ?? 'REFUSED'), message: String(message) };
  return undefined;
}
