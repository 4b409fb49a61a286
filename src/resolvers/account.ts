import { toAmount } from '../common/amounts.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Context } from '../operation/context.ts';
import type { Account } from '../upstream/accounts.ts';
import * as upstream from '../upstream/accounts.ts';
import { identified, isObject } from '../upstream/call/json.ts';
import {
  BadInputError,
  ConflictError,
  NotFoundError,
  PreconditionError,
  RefusedError,
  ValidationError,
} from './errors.ts';
import { argumentId, inputId } from './ids.ts';
import { type SendOnce, successOf } from './outcome.ts';
import { invalid, textOf } from './values.ts';

/** Exactly one of these is given. */
export interface AccountBy {
  readonly id?: string | null | undefined;
  readonly instrumentId?: string | null | undefined;
  readonly accountNumber?: string | null | undefined;
  readonly clabe?: string | null | undefined;
}

/**
 * The account that one of its four names finds in the client's list.
 *
 * @throws BadInputError for a malformed id.
 */
export function account(by: AccountBy, context: Context): MaybePromise<Account | null> {
  const { accounts } = context.reads.session;
  if (by.id != null) return accounts.find('id', argumentId('by.id', 'uuid', by.id));
  if (by.instrumentId != null) {
    return accounts.find('instrumentId', argumentId('by.instrumentId', 'id', by.instrumentId));
  }
  if (by.accountNumber != null) return accounts.find('accountNumber', by.accountNumber);
  if (by.clabe != null) return accounts.find('clabeNumber', by.clabe);
  throw new BadInputError('Argument "by" must name one of id, instrumentId, accountNumber and clabe.');
}

/**
 * CLABE of an account, which is always there (docs/upstream-api.md, "PrivateAccount").
 *
 * @throws UpstreamError `UPSTREAM_INVALID` where it is not: a search by no CLABE finds the credits to all.
 */
export function accountClabe({ clabeNumber }: Account): string {
  const clabe = textOf(clabeNumber, 'clabeNumber');
  if (clabe === null) throw invalid('clabeNumber', 'is missing');
  return clabe;
}

export interface CreatePrivateAccountInput {
  readonly bankId: string;
  readonly ownerId: string;
  readonly clientBankAdapterId: string;
  readonly accountId: string;
}

/** Which of the optional ones are needed is not shown (docs/upstream-api.md, endpoint 6): absent ones are left out. */
export interface CreateCustomerPrivateAccountInput {
  readonly customerId: string;
  readonly bankId?: string | null | undefined;
  readonly ownerId?: string | null | undefined;
  readonly clientBankAdapterId?: string | null | undefined;
}

const ACCOUNT_RULES: SendOnce = {
  members: [ValidationError, PreconditionError, NotFoundError, ConflictError, RefusedError],
  unclear: 'data',
};

const readAccount = (body: unknown): Account | undefined =>
  isObject(body) &&
  [
    'id',
    'accountId',
    'ownerId',
    'clientBankAdapterId',
    'accountNumber',
    'clabeNumber',
    'accountType',
    'accountStatus',
  ].every((field) => typeof body[field] === 'string') &&
  toAmount(body['availableBalance']) !== undefined
    ? identified<Account>(body, 'an account')
    : undefined;

/** Creates an account of the client (docs/upstream-api.md, endpoint 5). It is sent again only after a documented 401. */
export async function createPrivateAccount(
  input: CreatePrivateAccountInput,
  context: Context,
): Promise<{ readonly account: Account }> {
  const uuid = (field: keyof CreatePrivateAccountInput) => inputId(['input', field], 'uuid', input[field]);
  const { rest, clientId } = context.reads.session;
  const attempt = await upstream.createPrivateAccount(rest, {
    bank_id: uuid('bankId'),
    owner_id: uuid('ownerId'),
    client_bank_adapter_id: uuid('clientBankAdapterId'),
    client_id: clientId,
    account_id: uuid('accountId'),
  });
  context.reads.forgetLists();
  return { account: successOf(attempt, readAccount, ACCOUNT_RULES) };
}

/** Creates an account of one of the client's customers (docs/upstream-api.md, endpoint 6). It is sent again only after a documented 401. */
export async function createCustomerPrivateAccount(
  input: CreateCustomerPrivateAccountInput,
  context: Context,
): Promise<{ readonly account: Account }> {
  const uuid = (field: keyof CreateCustomerPrivateAccountInput) => {
    const value = input[field];
    return value == null ? undefined : inputId(['input', field], 'uuid', value);
  };
  const [bankId, ownerId, adapterId] = [uuid('bankId'), uuid('ownerId'), uuid('clientBankAdapterId')];
  const { rest, clientId } = context.reads.session;
  const attempt = await upstream.createCustomerPrivateAccount(
    rest,
    inputId(['input', 'customerId'], 'uuid', input.customerId),
    {
      client_id: clientId,
      ...(adapterId === undefined ? {} : { client_bank_adapter_id: adapterId }),
      ...(bankId === undefined ? {} : { bank_id: bankId }),
      ...(ownerId === undefined ? {} : { owner_id: ownerId }),
    },
  );
  context.reads.forgetLists();
  return { account: successOf(attempt, readAccount, ACCOUNT_RULES) };
}
