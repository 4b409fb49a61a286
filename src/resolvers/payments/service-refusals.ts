import { ConflictError, NotFoundError, PreconditionError, RefusedError, ValidationError } from '../errors.ts';
import type { FieldPaths, RefusalRules, Refusals } from '../service-refusal.ts';

const MEMBERS: Refusals = [ValidationError, PreconditionError, NotFoundError, ConflictError, RefusedError];

const TRANSFER_FIELDS: FieldPaths = {
  AMOUNT_NOT_POSITIVE: ['input', 'amount'],
  CURRENCY_UNSUPPORTED: ['input', 'currency'],
  DESCRIPTION_INVALID: ['input', 'description'],
  EXTERNAL_REFERENCE_INVALID: ['input', 'externalReference'],
  DESTINATION_NOT_FOUND: ['input', 'destinationInstrumentId'],
  EXTERNAL_TRANSFER_NOT_ALLOWED: ['input', 'destinationInstrumentId'],
};

/** How the service's refusals of movements between instruments are told. */
export const TRANSFER_RULES: RefusalRules = { members: MEMBERS, fields: TRANSFER_FIELDS };

/** How the service's refusals of refunds are told. */
export const REFUND_RULES: RefusalRules = {
  members: MEMBERS,
  fields: {
    AMOUNT_NOT_POSITIVE: ['input', 'as', 'amount', 'amount'],
    DESCRIPTION_INVALID: ['input', 'as', 'amount', 'description'],
    NOT_FOUND: ['input', 'transactionId'],
    REFUND_NOT_ALLOWED: ['input', 'transactionId'],
  },
  precondition: 'REFUND_NOT_ALLOWED',
};
