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
  /** When somebody has last sent it, or been told of it. */
  touchedAt: number;
  /** Whether its record was put back to a time before it, so that its key may pay again once payments go on. */
  isForgotten: boolean;
  /** Whether the record, which still has it, was put back since: evidence alone does not settle it then. */
  isOfBefore: boolean;
  /** Orders that no movement tells from this one, as their inputs are the same; itself among them. */
  readonly alike: Order[];
}

const told = ({ told: all }: Order, status: Order['told'][number]['status']): boolean =>
  all.some((one) => one.status === status);

/**
 * What is wrong with orders that are alike, by what was told of them and how often money has moved: each key moves money at most once,
 * what is done has moved, and what is refused has not.
 */
export function wrongWith(order: Order, moved: number): string | undefined {
  const { tag, alike, isForgotten } = order;
  if (isForgotten || alike.some((one) => one.isForgotten)) return undefined;
  if (moved > alike.length)
    return `${tag} has moved money ${moved} times${alike.length > 1 ? `, for ${alike.length} keys` : ''}`;
  const done = alike.filter((one) => told(one, 'done'));
  const refused = alike.filter((one) => told(one, 'refused'));
  if (done.some((one) => refused.includes(one))) return `${tag} was told to be done, and to be refused`;
  if (done.length > moved) return `${tag} was told to be done, and the ledger has nothing of it`;
  if (moved > alike.length - refused.length) return `${tag} was told to be refused, and has moved money`;
  return undefined;
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

/** The description of a payment's transaction, by the text that is sent. */
export const tagIn = (text: string): string =>
  /"(?:description|refundReason)":"([^"]*)"/.exec(text)?.[1] ?? '';

/** An order of which nobody has been told anything. */
export function orderOf(tag: string, mutation: MoneyMutation, input: Order['input']): Order {
  const order: Order = {
    ...{
      tag,
      mutation,
      input,
      told: [],
      isOver: false,
      touchedAt: 0,
      isForgotten: false,
      isOfBefore: false,
      alike: [],
    },
  };
  order.alike.push(order);
  return order;
}

/** An order that another movement cannot be told from: the same input, which a person wants twice. */
export function alikeTo(order: Order, idempotencyKey: string): Order {
  const other: Order = {
    ...orderOf(order.tag, order.mutation, { ...order.input, idempotencyKey }),
    alike: order.alike,
  };
  order.alike.push(other);
  return other;
}

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
    return orderOf(tag, mutation, input);
  }

  /**
   * An order that a person of a customer may give as well as one of the client: between the customer's own account and another's, or to
   * the customer's card.
   */
  ofCustomer(chance: Chance, tag: string, customerId: string): Order | undefined {
    const { instruments, internalInstrumentIds } = this.#client;
    const own = (wanted: string) =>
      instruments.find(
        ({ role, ownerId, status }) => role === wanted && ownerId === customerId && status === 'ACTIVE',
      );
    // Of a penny validation a customer's readers are given the receipt: what they see else is credits alone.
    const mutation = chance.pick(['createMoneyOut', 'createInternalTransaction'] as const);
    const source = own('internal');
    const others = internalInstrumentIds.filter((id) => id !== source?.id);
    const destination = mutation === 'createInternalTransaction' ? chance.pick(others) : own('card')?.id;
    if (source === undefined || destination === undefined) return undefined;
    return orderOf(tag, mutation, {
      sourceInstrumentId: source.id,
      destinationInstrumentId: destination,
      description: tag,
      externalReference: '1',
      amount: '1.00',
    });
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
