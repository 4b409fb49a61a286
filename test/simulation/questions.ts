import { isDeepStrictEqual } from 'node:util';
import type { Caller, Callers } from './callers.ts';
import type { Chance } from './chance.ts';
import type { Asked, Told } from './raw.ts';
import type { Truth } from './truth.ts';

/** A query whose answer is known. */
export interface Question extends Asked {
  /** What is wrong with data that came without errors; undefined where nothing is. */
  wrong(data: NonNullable<Told['data']>): string | undefined;
}

/** Makes the same question in a form that a plan executes, or in one that graphql-js does. */
type Make = (caller: Caller, chance: Chance, truth: Truth, callers: Callers) => Question;

const equal =
  (expected: () => unknown): Question['wrong'] =>
  (data) =>
    isDeepStrictEqual(data, expected()) ? undefined : `not ${JSON.stringify(expected()).slice(0, 200)}`;

const idsIn = (nodes: readonly { readonly id: string }[]): readonly string[] =>
  nodes.map(({ id }) => id).sort();

/** The one of somebody: mostly the caller's own, sometimes another's, sometimes nobody's. */
const someone = (caller: Caller, chance: Chance, callers: Callers): Caller =>
  chance.happens(0.7) ? caller : chance.pick(callers.all);

const MAKES: readonly Make[] = [
  (caller) => ({
    query: '{ client { id } }',
    wrong: equal(() => ({ client: { id: caller.client.clientId } })),
  }),
  (_caller, _chance, truth) => ({
    query: '{ banks { id } }',
    wrong: ({ banks }) =>
      isDeepStrictEqual(idsIn(banks as { id: string }[]), [...truth.banks()].sort())
        ? undefined
        : 'not the banks',
  }),
  (caller, chance, truth, callers) => {
    const id = chance.pick(someone(caller, chance, callers).client.customerIds);
    return {
      query: 'query ($id: ID!) { customer(id: $id) { id name } }',
      variables: { id },
      wrong: equal(() => ({ customer: truth.customer(caller, id) })),
    };
  },
  (caller, chance, truth, callers) => {
    const id = chance.happens(0.1)
      ? chance.uuid()
      : chance.pick(someone(caller, chance, callers).client.accountIds);
    return {
      query: 'query ($id: ID!) { account(by: { id: $id }) { id clabe } }',
      variables: { id },
      wrong: equal(() => ({ account: truth.account(caller, id) })),
    };
  },
  (caller, chance, truth, callers) => {
    const { moneyOutId, refundableCreditId, internalTransactionId } = someone(caller, chance, callers).client
      .transactions;
    const id = chance.pick([moneyOutId, refundableCreditId, internalTransactionId]);
    return {
      query: 'query ($id: ID!) { transaction(id: $id) { id } }',
      variables: { id },
      wrong: equal(() => ({ transaction: truth.transaction(caller, id) })),
    };
  },
  (caller, _chance, truth) => ({
    query: '{ client { id customers(first: 50) { nodes { id } } accounts(first: 50) { nodes { id } } } }',
    wrong: ({ client }) => {
      const { customers, accounts } = client as Record<'customers' | 'accounts', { nodes: { id: string }[] }>;
      const isRight =
        isDeepStrictEqual(idsIn(customers.nodes), idsIn(truth.customers(caller))) &&
        isDeepStrictEqual(idsIn(accounts.nodes), idsIn(truth.accounts(caller)));
      return isRight ? undefined : 'not the customers and accounts';
    },
  }),
  (caller, chance, truth, callers) => {
    const ids = [caller, chance.pick(callers.all), caller].map(({ client }) =>
      chance.pick(client.customerIds),
    );
    return {
      query: 'query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on Customer { name } } }',
      variables: { ids },
      wrong: equal(() => ({ nodes: ids.map((id) => truth.customer(caller, id)) })),
    };
  },
  (caller) => ({
    query:
      '{ events(last: 20, types: [MONEY_IN]) { nodes { id type ... on MoneyInEvent { ownerId beneficiary { account } } } } }',
    wrong: ({ events }) => {
      const { nodes } = events as { nodes: { id: string; ownerId: string | null }[] };
      if (new Set(idsIn(nodes)).size !== nodes.length) return 'an event twice';
      const { customerId } = caller;
      return customerId !== undefined && nodes.some(({ ownerId }) => ownerId !== customerId)
        ? "another's credit"
        : undefined;
    },
  }),
];

/** A question of the seed's choice. */
export function questionFor(caller: Caller, chance: Chance, truth: Truth, callers: Callers): Question {
  const made = chance.pick(MAKES)(caller, chance, truth, callers);
  if (chance.happens(0.5)) return made;
  // A condition by a variable is for graphql-js to decide.
  const query = made.query
    .replace(/^query \(/, 'query ($yes: Boolean!, ')
    .replace(/^\{/, 'query ($yes: Boolean!) {');
  return {
    ...made,
    query: query.replace(/\{ id(?!:)/, '{ id @include(if: $yes)'),
    variables: { ...made.variables, yes: true },
  };
}
