import type { Answered, UpstreamAnswer } from '../common/attempt.ts';
import { type Refusal, readRefusal } from '../upstream/call/errors.ts';
import {
  ConflictError,
  NotFoundError,
  PreconditionError,
  RefusedError,
  type UserError,
  type UserErrorCode,
  ValidationError,
} from './errors.ts';

/** The members that a mutation's union has for refusals. `RefusedError` is one of every union. */
export type Refusals = readonly (abstract new (...args: never[]) => UserError)[];

/** Where the fields that a refusal can be about stand in the mutation's input. */
export type FieldPaths = Readonly<Partial<Record<UserErrorCode, readonly string[]>>>;

/** How a mutation tells what the service refuses. */
export interface RefusalRules {
  readonly members: Refusals;
  readonly fields?: FieldPaths;
  /** What a failed precondition is whose explanation is not documented; `PRECONDITION_FAILED` unless given. */
  readonly precondition?: UserErrorCode;
}

/** The documented explanations (docs/upstream-api.md, "Errors"), by the words that carry them. */
const PRECONDITIONS: readonly (readonly [RegExp, UserErrorCode])[] = [
  [/not (currently )?active/i, 'ACCOUNT_NOT_ACTIVE'],
  [/sufficient funds/i, 'INSUFFICIENT_FUNDS'],
];
const DATA_ERRORS: readonly (readonly [RegExp, UserErrorCode])[] = [
  [/external.?reference/i, 'EXTERNAL_REFERENCE_INVALID'],
  [/amount must be (higher|greater) than 0/i, 'AMOUNT_NOT_POSITIVE'],
  [/description/i, 'DESCRIPTION_INVALID'],
  [/currency/i, 'CURRENCY_UNSUPPORTED'],
];

const NOT_FOUND = {
  DESTINATION_NOT_FOUND: 'The destination does not exist or is not assigned.',
  NOT_FOUND: 'What the input names does not exist, or is not yours.',
};
const CONFLICT = {
  EXTERNAL_TRANSFER_NOT_ALLOWED: 'The destination is not an internal instrument.',
  REFUSED: 'It collides with something that is already there or under way.',
};

/** An identifier, such as `destination_not_found`, explains nothing to people. */
const explanation = (detail: string | null): string | null =>
  detail === null || /^\w+$/.test(detail) ? null : detail;

const codeIn = (
  table: readonly (readonly [RegExp, UserErrorCode])[],
  detail: string | null,
): UserErrorCode | undefined => table.find(([words]) => words.test(detail ?? ''))?.[1];

/**
 * What a refusal is to the caller: the table of docs/upstream-api.md, "Errors". The bodies of 404 and 409 are not shown, so their documented
 * identifiers are searched in whatever came (docs/assumptions.md). Pure.
 *
 * @param answer of the upstream; or a `synthesized` one, of which `upstream` tells nothing, because the upstream was not asked.
 * @returns a member of the mutation's union: a refusal of a kind that it lacks is a `RefusedError` of the same code.
 */
export function refusalError(
  answer: UpstreamAnswer & Pick<Answered, 'synthesized'>,
  rules: RefusalRules,
): UserError {
  const refusal = readRefusal(answer.status, answer.body);
  const told = answer.synthesized === true ? {} : { upstream: refusal };
  const error = documented(refusal, answer.text, rules, told);
  if (rules.members.some((member) => error instanceof member)) return error;
  return new RefusedError(error.code, error.message, told);
}

function documented(
  refusal: Refusal,
  text: string,
  { fields = {}, precondition }: RefusalRules,
  told: { readonly upstream?: Refusal },
): UserError {
  const { httpStatus, reason, detail } = refusal;
  const message = detail ?? refusal.message ?? `The service refused with status ${httpStatus}.`;
  const origin = (code: UserErrorCode) => ({ field: fields[code] ?? null, ...told });
  if (httpStatus === 404) {
    const code = text.includes('destination_not_found') ? 'DESTINATION_NOT_FOUND' : 'NOT_FOUND';
    return new NotFoundError(code, explanation(detail) ?? NOT_FOUND[code], origin(code));
  }
  if (httpStatus === 409) {
    const code = text.includes('external_transfer_not_allowed') ? 'EXTERNAL_TRANSFER_NOT_ALLOWED' : 'REFUSED';
    return new ConflictError(code, explanation(detail) ?? CONFLICT[code], origin(code));
  }
  if (reason === 'FAILED_PRECONDITION') {
    const code = codeIn(PRECONDITIONS, detail) ?? precondition ?? 'PRECONDITION_FAILED';
    return new PreconditionError(code, message, origin(code));
  }
  if (reason === 'DATA_ERROR') {
    const code = codeIn(DATA_ERRORS, detail) ?? 'INVALID_INPUT';
    return new ValidationError(code, message, origin(code));
  }
  return new RefusedError('REFUSED', message, told);
}
