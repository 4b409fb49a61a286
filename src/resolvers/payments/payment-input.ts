import { inputHash, isIdempotencyKey, type MoneyMutation, type Shown } from '../../money/intent.ts';
import { ValidationError } from '../errors.ts';
import { filled, inputId } from '../ids.ts';

export interface TransferInput {
  readonly idempotencyKey: string;
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
  readonly amount: string;
  readonly currency: string;
  readonly description: string;
  readonly externalReference: string;
}

export interface PennyValidationInput {
  readonly idempotencyKey: string;
  readonly sourceInstrumentId: string;
  readonly destinationInstrumentId: string;
  readonly description?: string | null | undefined;
  readonly externalReference?: string | null | undefined;
}

export interface RefundInput {
  readonly idempotencyKey: string;
  readonly transactionId: string;
  readonly as: {
    readonly amount?: { readonly amount: string; readonly description: string } | null | undefined;
    readonly reason?: string | null | undefined;
  };
}

/** A request that has passed the gateway's own checks. */
export interface PreparedPayment {
  readonly mutation: MoneyMutation;
  readonly key: string;
  /** Tells a repeat of the intent from another use of its key. */
  readonly inputHash: string;
  /** The JSON text that leaves. */
  readonly body: string;
  /** What a list of payments shows of it. */
  readonly shown: Omit<Shown, 'requestedBy'>;
}

/** What a penny validation sends, in pesos. */
export const PENNY = '0.01';

const EXTERNAL_REFERENCE = /^\d{1,7}$/;
/** Of an internal transaction: fewer than 40 (docs/upstream-api.md, "Limits"). */
const INTERNAL_DESCRIPTION = /^.{0,39}$/su;
/** Of a penny validation: at most 40; letters, digits, spaces, ñ and Ñ only. */
const PENNY_DESCRIPTION = /^[A-Za-z0-9 ñÑ]{0,40}$/u;

function checkKey(key: string): void {
  if (isIdempotencyKey(key)) return;
  throw new ValidationError('INVALID_INPUT', 'input.idempotencyKey must be 8 to 128 printable characters.', {
    field: ['input', 'idempotencyKey'],
  });
}

/** Any amount of the scalar's form is positive unless it has a sign or no digit but zeros. */
function checkAmount(amount: string, field: readonly string[]): void {
  if (/[1-9]/.test(amount) && !amount.startsWith('-')) return;
  throw new ValidationError(
    'AMOUNT_NOT_POSITIVE',
    `${field.join('.')} must be more than 0.00; it is ${amount}.`,
    {
      field,
    },
  );
}

function checkReference(reference: string): void {
  if (EXTERNAL_REFERENCE.test(reference)) return;
  throw new ValidationError('EXTERNAL_REFERENCE_INVALID', 'input.externalReference must be 1 to 7 digits.', {
    field: ['input', 'externalReference'],
  });
}

function checkDescription(description: string, form: RegExp, wanted: string): void {
  if (form.test(description)) return;
  throw new ValidationError('DESCRIPTION_INVALID', `input.description must ${wanted}.`, {
    field: ['input', 'description'],
  });
}

/** Both ends of a movement, in the upstream's names; UUIDs, as docs/upstream-api.md, "Bodies of endpoints 11 to 13", has them. */
const ends = (clientId: string, input: TransferInput | PennyValidationInput) => ({
  client_id: clientId,
  source_instrument_id: inputId(['input', 'sourceInstrumentId'], 'uuid', input.sourceInstrumentId),
  destination_instrument_id: inputId(
    ['input', 'destinationInstrumentId'],
    'uuid',
    input.destinationInstrumentId,
  ),
});

/** What is shown of a movement between two instruments. */
const movement = (
  amount: string,
  { source_instrument_id, destination_instrument_id }: ReturnType<typeof ends>,
): PreparedPayment['shown'] => ({
  amount,
  source: source_instrument_id,
  destination: destination_instrument_id,
});

const payment = (
  mutation: MoneyMutation,
  key: string,
  body: object,
  shown: PreparedPayment['shown'],
  subject?: string,
): PreparedPayment => ({
  mutation,
  key,
  shown,
  inputHash: inputHash(mutation, subject === undefined ? body : { subject, body }),
  body: JSON.stringify(body),
});

/**
 * Money out or an internal transaction (docs/upstream-api.md, endpoints 11 and 12).
 *
 * @throws ValidationError for what the upstream documents that it refuses.
 */
export function transfer(
  mutation: 'createMoneyOut' | 'createInternalTransaction',
  clientId: string,
  input: TransferInput,
): PreparedPayment {
  checkKey(input.idempotencyKey);
  const between = ends(clientId, input);
  checkAmount(input.amount, ['input', 'amount']);
  if (input.currency !== 'MXN') {
    throw new ValidationError(
      'CURRENCY_UNSUPPORTED',
      `input.currency must be MXN; it is ${input.currency}.`,
      { field: ['input', 'currency'] },
    );
  }
  if (mutation === 'createInternalTransaction') {
    checkDescription(input.description, INTERNAL_DESCRIPTION, 'have fewer than 40 characters');
  }
  checkReference(input.externalReference);
  return payment(
    mutation,
    input.idempotencyKey,
    {
      ...between,
      transaction_request: {
        external_reference: input.externalReference,
        description: input.description,
        amount: input.amount,
        currency: input.currency,
      },
    },
    movement(input.amount, between),
  );
}

/** A penny validation (docs/upstream-api.md, endpoint 13). What is not given is left to the upstream's defaults. */
export function pennyValidation(clientId: string, input: PennyValidationInput): PreparedPayment {
  checkKey(input.idempotencyKey);
  const between = ends(clientId, input);
  const { externalReference } = input;
  // Nothing said is what the documented default is for.
  const description = input.description === '' ? undefined : input.description;
  if (description != null) {
    checkDescription(
      description,
      PENNY_DESCRIPTION,
      'have at most 40 characters, of letters without accents, digits, spaces, ñ and Ñ',
    );
  }
  if (externalReference != null) checkReference(externalReference);
  return payment(
    'createPennyValidation',
    input.idempotencyKey,
    {
      ...between,
      ...(description == null ? {} : { description }),
      ...(externalReference == null ? {} : { external_reference: externalReference }),
    },
    movement(PENNY, between),
  );
}

/** A refund in exactly one of the two shapes of the body (docs/upstream-api.md, endpoint 14). */
export function refund(input: RefundInput): PreparedPayment {
  checkKey(input.idempotencyKey);
  const transactionId = inputId(['input', 'transactionId'], 'uuid', input.transactionId);
  const { amount, reason } = input.as;
  if (amount != null) checkAmount(amount.amount, ['input', 'as', 'amount', 'amount']);
  const body =
    amount == null
      ? { refundReason: filled(['input', 'as', 'reason'], reason ?? '') }
      : { amount: amount.amount, description: amount.description };
  return payment(
    'refundTransaction',
    input.idempotencyKey,
    body,
    { amount: amount?.amount ?? null, source: null, destination: null },
    transactionId,
  );
}
