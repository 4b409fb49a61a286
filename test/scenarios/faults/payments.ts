import type { Sandbox } from '../../../packages/sandbox/src/index.ts';
import type { MoneyMutation } from '../../../src/money/intent.ts';
import { control } from '../../helpers/gateway.ts';

export const MUTATIONS: readonly MoneyMutation[] = [
  'createMoneyOut',
  'createInternalTransaction',
  'createPennyValidation',
  'refundTransaction',
];

/** The field of a success that holds what was moved. */
const MOVED: Readonly<Record<MoneyMutation, string>> = {
  createMoneyOut: 'transaction',
  createInternalTransaction: 'transaction',
  createPennyValidation: 'transaction',
  refundTransaction: 'refund',
};

/** What the names of a mutation's types begin with. */
export const typeOf = (mutation: MoneyMutation): string =>
  `${mutation[0]?.toUpperCase()}${mutation.slice(1)}`;

/**
 * The document of a mutation. Its field is called `result`, and what was moved `moved`.
 *
 * @param selection of the transaction that moved the money.
 * @param beside what else is selected of the success.
 */
export function documentOf(mutation: MoneyMutation, selection = 'id', beside = ''): string {
  const type = typeOf(mutation);
  return `mutation ($input: ${type}Input!) { result: ${mutation}(input: $input) { __typename
    ... on UserError { code field upstream { httpStatus } }
    ... on OutcomeUnknown { reason safeToRetry retryUntil }
    ... on ${type}Success { replayed moved: ${MOVED[mutation]} { ${selection} } ${beside} } } }`;
}

export interface Payable {
  readonly mutation: MoneyMutation;
  /** With a key of its own. */
  readonly input: Readonly<Record<string, unknown>>;
  /** The same key for something else. */
  readonly otherInput: Readonly<Record<string, unknown>>;
  /** The description of its movement, which no other payment has. */
  readonly tag: string;
  /** Where its POST goes. */
  readonly path: string;
  /** The same, as the sandbox counts it. */
  readonly route: string;
}

/**
 * What a mutation is given to pay something that has not been paid yet.
 *
 * @param tag letters, digits and spaces, at most 39.
 * @param refusable whether the upstream's rules, or for a refund the gateway's, refuse it.
 */
export async function payable(
  sandbox: Sandbox,
  mutation: MoneyMutation,
  tag: string,
  refusable = false,
): Promise<Payable> {
  const world = await control(sandbox, 'GET', '/sandbox');
  const idempotencyKey = `the key of ${tag}`;
  const sourceInstrumentId = world.centralizingInstrumentId;
  if (mutation === 'refundTransaction') {
    const credit = { clabe: world.accounts[0].clabe, amount: '5.00' };
    const transactionId = refusable
      ? world.transactions.refundedCreditId
      : (await control(sandbox, 'POST', '/sandbox/spei-credits', credit)).transaction.id;
    const input = { idempotencyKey, transactionId, as: { reason: tag } };
    return {
      mutation,
      tag,
      input,
      otherInput: { ...input, as: { amount: { amount: '5.00', description: tag } } },
      path: `/v1/clients/${sandbox.clientId}/transactions/${transactionId}/refund`,
      route: 'POST /v1/clients/{clientId}/transactions/{transactionId}/refund',
    };
  }
  if (mutation === 'createPennyValidation') {
    const [destinationInstrumentId] = refusable ? world.cardInstrumentIds : world.clabeInstrumentIds;
    const input = { idempotencyKey, sourceInstrumentId, destinationInstrumentId, description: tag };
    const path = '/v1/transactions/penny_validation';
    const otherInput = { ...input, destinationInstrumentId: world.clabeInstrumentIds[1] };
    return { mutation, tag, input, otherInput, path, route: `POST ${path}` };
  }
  const isOut = mutation === 'createMoneyOut';
  const input = {
    idempotencyKey,
    sourceInstrumentId,
    destinationInstrumentId: isOut ? world.cardInstrumentIds[0] : world.internalInstrumentIds[1],
    amount: refusable ? '999999999999.00' : '1.00',
    description: tag,
    externalReference: '1',
  };
  const path = `/v1/transactions/${isOut ? 'money_out' : 'internal_transaction'}`;
  return { mutation, tag, input, otherInput: { ...input, amount: '1.01' }, path, route: `POST ${path}` };
}

/** A movement of the sandbox's ledger. */
export interface Movement {
  readonly transactionId: string;
  readonly amount: string;
}

/** The movements whose transactions carry this description. */
export async function movementsOf(sandbox: Sandbox, description: string): Promise<readonly Movement[]> {
  const { movements } = await control(sandbox, 'GET', '/sandbox/ledger');
  return movements.filter((movement: { description: string }) => movement.description === description);
}

/** How often the sandbox has been asked on a route, such as `POST /v1/transactions/money_out`. */
export async function requestsOf(sandbox: Sandbox, route: string): Promise<number> {
  const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
  return counts[route] ?? 0;
}

/** Misbehaves on these requests from now on, so many times or for good. */
export const inject = (
  sandbox: Sandbox,
  match: { readonly method?: string; readonly path?: string },
  fault: unknown,
  times?: number,
): Promise<unknown> => control(sandbox, 'POST', '/sandbox/faults', { match, fault, times });
