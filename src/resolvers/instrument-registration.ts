import type { Context } from '../operation/context.ts';
import { identified, isObject, type JsonObject } from '../upstream/call/json.ts';
import {
  type Instrument,
  type InstrumentBody,
  registerInstrument as register,
} from '../upstream/instruments.ts';
import { ConflictError, NotFoundError, PreconditionError, RefusedError, ValidationError } from './errors.ts';
import { filled, inputId } from './ids.ts';
import { type SendOnce, successOf } from './outcome.ts';

export interface RegisterInstrumentInput {
  readonly sourceBankId: string;
  readonly customerId?: string | null | undefined;
  readonly alias: string;
  readonly rfc: string;
  readonly receiver: {
    readonly debitCard?: DebitCardInput | null | undefined;
    readonly virtualClabe?: JsonObject | null | undefined;
  };
}

interface DebitCardInput {
  readonly destinationBankId: string;
  readonly cardNumber: string;
  readonly holderName: string;
}

const RULES: SendOnce = {
  members: [ValidationError, PreconditionError, NotFoundError, ConflictError, RefusedError],
  unclear: 'data',
};

const CARD = ['input', 'receiver', 'debitCard'];
/** Spec, "Limits". */
const CARD_NUMBER = /^\d{16}$/;
const MAX_HOLDER_NAME = 40;

const invalid = (field: readonly string[], wanted: string): ValidationError =>
  new ValidationError('INVALID_INPUT', `${field.join('.')} must ${wanted}.`, { field });

function cardBody(card: DebitCardInput): InstrumentBody['debit_card'] & object {
  const destinationBankId = inputId([...CARD, 'destinationBankId'], 'uuid', card.destinationBankId);
  // What arrived is not repeated in the messages: a card number must reach no log.
  if (!CARD_NUMBER.test(card.cardNumber)) throw invalid([...CARD, 'cardNumber'], 'be 16 digits');
  if ([...card.holderName].length > MAX_HOLDER_NAME) {
    throw invalid([...CARD, 'holderName'], `have at most ${MAX_HOLDER_NAME} characters`);
  }
  return {
    destination_bank_id: destinationBankId,
    card_number: card.cardNumber,
    holder_name: card.holderName,
  };
}

/** Either form of the body. `instrumentKind` goes with the card alone, as the spec's sample has it (docs/assumptions.md). */
function receiverBody({
  debitCard,
  virtualClabe,
}: RegisterInstrumentInput['receiver']): Pick<
  InstrumentBody,
  'instrumentKind' | 'debit_card' | 'virtual_clabe'
> {
  if (debitCard != null) return { instrumentKind: 'debit_card', debit_card: cardBody(debitCard) };
  if (virtualClabe != null) return { virtual_clabe: virtualClabe };
  throw invalid(['input', 'receiver'], 'have one of debitCard and virtualClabe');
}

const readInstrument = (body: unknown): Instrument | undefined =>
  isObject(body) && ['id', 'alias', 'type', 'rfc'].every((field) => typeof body[field] === 'string')
    ? identified<Instrument>(body, 'an instrument')
    : undefined;

/** Registers a RECEIVER instrument (docs/upstream-api.md, endpoint 10). It is sent again only after a documented 401. */
export async function registerInstrument(
  input: RegisterInstrumentInput,
  context: Context,
): Promise<{ readonly instrument: Instrument }> {
  const { rest, clientId } = context.reads.session;
  // What a caller narrowed to a customer registers is that customer's.
  const customerId = input.customerId ?? context.identity.caller.customerId;
  const body: InstrumentBody = {
    source_bank_id: inputId(['input', 'sourceBankId'], 'uuid', input.sourceBankId),
    client_id: clientId,
    ...(customerId === undefined
      ? {}
      : { customer_id: inputId(['input', 'customerId'], 'uuid', customerId) }),
    type: 'RECEIVER',
    rfc: filled(['input', 'rfc'], input.rfc),
    alias: input.alias,
    ...receiverBody(input.receiver),
  };
  const attempt = await register(rest, body);
  context.reads.forget();
  return { instrument: successOf(attempt, readInstrument, RULES) };
}
