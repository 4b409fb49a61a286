import type { ClientView } from '../../packages/sandbox/src/control-views.ts';
import { MONEY_MUTATIONS, type MoneyMutation } from '../../src/money/intent.ts';
import type { Chance } from './chance.ts';
import type { Service } from './service.ts';

/** A payment that a person wants. */
export interface Order {
  /** The description of its transaction, which no other has. */
  readonly tag: string;
  readonly mutation: MoneyMutation;
  readonly input: Readonly<Record<string, unknown>>;
  /** What the person was told, in order. */
  readonly told: {
    /** `nothing`: this call has moved nothing. */
    readonly status: 'done' | 'refused' | 'unknown' | 'nothing';
    readonly safeToRetry: boolean;
    readonly at: number;
  }[];
  /** Whether the app asks no more. */
  isOver: boolean;
}

/** The transaction of a success, and what else is selected of it. */
const MOVED: Readonly<Record<MoneyMutation, string>> = {
  createMoneyOut: 'transaction { id status }',
  createInternalTransaction: 'transaction { id status }',
  createPennyValidation: 'transaction { id status }',
  refundTransaction: 'refund { id status } original { id }',
};

/** What the names of a mutation's types begin with. */
export const typeOf = (mutation: MoneyMutation): string =>
  `${mutation[0]?.toUpperCase()}${mutation.slice(1)}`;

/** A field that pays, under another name, with the input that a variable brings. */
export const fieldOf = (mutation: MoneyMutation, name: string, variable: string): string =>
  `${name}: ${mutation}(input: $${variable}) { __typename
    ... on UserError { code field message } ... on OutcomeUnknown { reason safeToRetry retryUntil message }
    ... on ${typeOf(mutation)}Success { replayed ${MOVED[mutation]} } }`;

/** Makes orders of each kind. */
export class Orders {
  readonly #service: Service;
  readonly #client: ClientView;
  /** Credits that are returned by an order already: two that return the same one cannot be told apart by it. */
  readonly #returned = new Set<string>();

  constructor(service: Service, client: ClientView) {
    this.#service = service;
    this.#client = client;
  }

  /** @param tag letters, digits and spaces, at most 39 */
  make(chance: Chance, tag: string): Order {
    const drawn = chance.pick([...MONEY_MUTATIONS, 'createMoneyOut', 'createInternalTransaction'] as const);
    const credit = drawn === 'refundTransaction' ? this.#credit() : undefined;
    const mutation = drawn === 'refundTransaction' && credit === undefined ? 'createMoneyOut' : drawn;
    const isRefusable = chance.happens(0.1);
    const input =
      credit === undefined
        ? this.#inputOf(mutation, chance, tag, isRefusable)
        : {
            transactionId: isRefusable ? this.#client.transactions.refundedCreditId : credit,
            as: { reason: tag },
          };
    return { tag, mutation, input, told: [], isOver: false };
  }

  #inputOf(mutation: MoneyMutation, chance: Chance, tag: string, isRefusable: boolean) {
    const { centralizingInstrumentId, cardInstrumentIds, clabeInstrumentIds, internalInstrumentIds } =
      this.#client;
    const from = { sourceInstrumentId: centralizingInstrumentId, description: tag, externalReference: '1' };
    if (mutation === 'createPennyValidation')
      return {
        ...from,
        destinationInstrumentId: chance.pick(isRefusable ? cardInstrumentIds : clabeInstrumentIds),
      };
    return {
      ...from,
      destinationInstrumentId: chance.pick(
        mutation === 'createMoneyOut' ? cardInstrumentIds : internalInstrumentIds.slice(1),
      ),
      amount: isRefusable ? '999999999999.00' : '1.00',
    };
  }

  /** A credit that can be returned, and that no order returns. */
  #credit(): string | undefined {
    const { transactions } = this.#service.made.world.state;
    const found = transactions
      .values()
      .find(
        ({ id, clientId, subCategory, status }) =>
          clientId === this.#client.clientId &&
          subCategory === 'SPEI_CREDIT' &&
          status === 'LIQUIDATED' &&
          !this.#returned.has(id),
      );
    if (found !== undefined) this.#returned.add(found.id);
    return found?.id;
  }
}
