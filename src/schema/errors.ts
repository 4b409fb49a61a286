import {
  ConflictError,
  NotFoundError,
  OutcomeUnknown,
  PreconditionError,
  RefusedError,
  type UserError,
  ValidationError,
} from '../resolvers/errors.ts';
import { paymentByKey } from '../resolvers/payments/payment-list.ts';
import type { Refusal } from '../upstream/call/errors.ts';
import { builder, ENTERS_GRAPH, withPaymentsScope } from './builder.ts';
import { PaymentType, TransactionType } from './refs.ts';

const UserErrorCodeType = builder.enumType('UserErrorCode', {
  description: 'What went wrong, for a program to branch on.',
  values: {
    INVALID_INPUT: { description: 'A field of the input is malformed; `field` names it, where it is known.' },
    AMOUNT_NOT_POSITIVE: { description: 'The amount is zero or negative.' },
    CURRENCY_UNSUPPORTED: { description: 'The currency is not `MXN`.' },
    DESCRIPTION_INVALID: {
      description: 'The description is too long, or has characters that are not allowed.',
    },
    EXTERNAL_REFERENCE_INVALID: {
      description: 'The reference is not numeric, or has more than seven digits.',
    },
    ACCOUNT_NOT_ACTIVE: {
      description: 'An account is inactive or blocked: of a payment its source or its destination.',
    },
    INSUFFICIENT_FUNDS: { description: 'The source does not hold the amount.' },
    PRECONDITION_FAILED: { description: 'The state of what is named forbids it, in another way.' },
    NOT_FOUND: { description: 'Something that the input names does not exist, or is not yours.' },
    DESTINATION_NOT_FOUND: {
      description: 'The destination does not exist, is not assigned, or is not yours.',
    },
    EXTERNAL_TRANSFER_NOT_ALLOWED: {
      description: 'The destination of an internal transaction is external. Use `createMoneyOut`.',
    },
    IDEMPOTENCY_KEY_REUSED: {
      description:
        'The key was used before, for other contents. This call has sent nothing; the payment of the key may have moved money.',
    },
    IDEMPOTENCY_IN_PROGRESS: {
      description: 'An earlier call with this key is still running. Ask again with the same key.',
    },
    REFUND_NOT_ALLOWED: {
      description: 'The transaction cannot be refunded, for example because it already is.',
    },
    REFUSED: {
      description:
        'The upstream refused, and no other code says why: such as a 409 whose reason is not documented. `upstream` carries its words.',
    },
  },
});

const UpstreamErrorDetailType = builder.objectRef<Refusal>('UpstreamErrorDetail').implement({
  description:
    "The upstream's own words about a refusal. A part is null when its answer did not carry it: all but `httpStatus`, where that was a page or a text.",
  fields: (t) => ({
    httpStatus: t.exposeInt('httpStatus', {
      nullable: false,
      description: 'Status of the REST answer, such as 400.',
    }),
    message: t.exposeString('message', { description: 'The headline, such as `API Error`.' }),
    reason: t.exposeString('reason', { description: 'The kind of refusal, such as `FAILED_PRECONDITION`.' }),
    errorCode: t.exposeString('errorCode', { description: "The upstream's own code, such as `10-E4120`." }),
    detail: t.exposeString('detail', {
      description: 'The explanation for people, such as `The account does not have sufficient funds.`',
    }),
    module: t.exposeString('module', {
      description: 'Part of the upstream that refused, such as `Transactions`.',
    }),
    methodName: t.exposeString('methodName', {
      description: 'Operation of the upstream that refused, such as `InternalTransaction`.',
    }),
    code: t.exposeInt('code', {
      description: '`code` of the answer, such as 9. What it means is not documented.',
    }),
    details: t.expose('details', {
      type: ['JSONObject'],
      nullable: false,
      description:
        'Each item of `details`, as the service sends it: `@type`, `reason`, `domain` and `metadata`. Empty where its answer has none. The fields above are of the first item that explains the refusal.',
    }),
  }),
});

const UserErrorType = builder.interfaceRef<UserError>('UserError').implement({
  description:
    'Everything that a caller can correct or must accept. All other failures are top-level errors with `extensions.code`. `... on UserError { code message }` survives new members of the unions.',
  fields: (t) => ({
    message: t.exposeString('message', { nullable: false, description: 'What is wrong, for people.' }),
    code: t.expose('code', {
      type: UserErrorCodeType,
      nullable: false,
      description: 'What is wrong, for programs.',
    }),
    field: t.field({
      type: ['String'],
      nullable: true,
      description:
        'Path of the input field at fault, outermost first, such as `["input", "amount"]`; null when no single field is.',
      resolve: (error) => error.field,
    }),
    upstream: t.expose('upstream', {
      type: UpstreamErrorDetailType,
      nullable: true,
      description:
        'What the upstream said, when it was the upstream that refused; null when the gateway did.',
    }),
  }),
});

const userError = (
  type: new (...args: ConstructorParameters<typeof ValidationError>) => UserError,
  name: string,
  description: string,
) => builder.objectType(type, { name, description, interfaces: [UserErrorType] });

userError(
  ValidationError,
  'ValidationError',
  'The input is wrong. Correct it, and send it again; a payment with a new key, unless a call with the old one may have moved money.',
);
userError(PreconditionError, 'PreconditionError', 'The state of an account or a transaction forbids it.');
userError(NotFoundError, 'NotFoundError', 'Something that the input names does not exist, or is not yours.');
userError(ConflictError, 'ConflictError', 'It collides with something that is already there or under way.');
userError(
  RefusedError,
  'RefusedError',
  'The upstream refused in a way for which the union has no other type. `code` says why, as far as that is known.',
);

const OutcomeUnknownReasonType = builder.enumType('OutcomeUnknownReason', {
  description: 'Why an outcome is unknown, for a program to branch on.',
  values: {
    NO_ANSWER: {
      description:
        'No answer came that settles it: it was lost, came from something on the way, or has no form that the service documents.',
    },
    STILL_PROCESSING: {
      description:
        'The service answers that a request with this key is still under way, and goes on doing so.',
    },
    ANSWER_DOES_NOT_MATCH: { description: "The service's answer is not the answer to this order." },
    TOO_LATE_TO_ASK: { description: 'The key is older than the service remembers.' },
  },
});

builder.objectType(OutcomeUnknown, {
  name: 'OutcomeUnknown',
  description:
    'It may or may not have happened: the request was sent, and no clear answer came. Or it is money out of which nothing has left yet, and which the gateway may still send by itself. Neither success nor failure, so it is no `UserError`.',
  fields: (t) => ({
    message: t.exposeString('message', { nullable: false, description: 'What is known, for people.' }),
    reason: t.expose('reason', {
      type: OutcomeUnknownReasonType,
      nullable: false,
      description: 'Why it is unknown, for programs.',
    }),
    safeToRetry: t.exposeBoolean('safeToRetry', {
      nullable: false,
      description:
        'True where the same input with the same key is sent to the service again, which does it once. False: of a payment nothing is sent again, and a repeat tells what is known by then; of any other mutation a repeat is sent, and may do it twice unless the service refuses it.',
    }),
    retryUntil: t.expose('retryUntil', {
      type: 'DateTime',
      nullable: true,
      description: 'Until when that holds; null when `safeToRetry` is false.',
    }),
    original: t.expose('original', {
      type: TransactionType,
      rights: ENTERS_GRAPH,
      nullable: true,
      description: 'Of a refund: the credit as it reads now. Null elsewhere, and when it cannot be read.',
    }),
    payment: t.field({
      type: PaymentType,
      nullable: true,
      description:
        'The intent to pay, to be asked for later. Null where it is no payment, where it is one of a customer that a caller for the whole client has sent again, and where the record could not note that it was sent: most often nothing was then.',
      resolve: withPaymentsScope(({ key }, _args, context) =>
        key === undefined ? null : paymentByKey(key, context),
      ),
    }),
  }),
});
