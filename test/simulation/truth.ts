import type { Caller } from './callers.ts';
import type { Asked, Told } from './raw.ts';
import type { Service } from './service.ts';

/** UUIDs, and CLABEs. */
const WORDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b\d{18}\b/gi;

/** What belongs to whom, by the state of the service itself. */
export class Truth {
  readonly #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  get #state() {
    return this.#service.made.world.state;
  }

  /** Whether an id or a CLABE is of something that a caller may not know of. */
  isOthers({ client, customerId }: Caller, word: string): boolean {
    const id = word.toLowerCase();
    const state = this.#state;
    const customer = state.customers.get(id);
    const account = state.accounts.get(id) ?? state.accountByClabe(id);
    if (customer !== undefined)
      return (
        customer.clientId !== client.clientId || (customerId !== undefined && customerId !== customer.id)
      );
    if (account !== undefined)
      return (
        account.clientId !== client.clientId || (customerId !== undefined && customerId !== account.ownerId)
      );
    if (state.transactions.has(id)) return this.transaction({ client, customerId }, id) === null;
    const instrument = state.instruments.get(id);
    return instrument !== undefined && instrument.clientId !== client.clientId;
  }

  /** What of an answer its caller may not know; undefined where all is well. */
  leakIn(caller: Caller, asked: Asked, told: Told): string | undefined {
    const { upstream } = told.extensions ?? {};
    if (caller.customerId !== undefined && upstream !== undefined)
      return 'the report of REST calls, though it is narrowed to a customer';
    const named = new Set(JSON.stringify(asked.variables ?? {}).match(WORDS) ?? []);
    const words = new Set(JSON.stringify(told).match(WORDS) ?? []);
    for (const word of words) if (!named.has(word) && this.isOthers(caller, word)) return word;
    return undefined;
  }

  /** The customers of a caller's client, as they are. */
  customers({ client, customerId }: Caller) {
    return [...this.#state.customers.values()].filter(
      ({ id, clientId }) => clientId === client.clientId && (customerId === undefined || customerId === id),
    );
  }

  accounts({ client, customerId }: Caller) {
    return [...this.#state.accounts.values()].filter(
      ({ clientId, ownerId }) =>
        clientId === client.clientId && (customerId === undefined || customerId === ownerId),
    );
  }

  /** What a caller is to be shown of one thing by its id. */
  customer(caller: Caller, id: string) {
    const found = this.customers(caller).find((customer) => customer.id === id);
    return found === undefined ? null : { id, name: found.name };
  }

  account(caller: Caller, id: string) {
    const found = this.accounts(caller).find((account) => account.id === id);
    return found === undefined ? null : { id, clabe: found.clabeNumber };
  }

  /** A transaction is a customer's where one of its two instruments is. */
  transaction({ client, customerId }: Pick<Caller, 'client' | 'customerId'>, id: string) {
    const found = this.#state.transactions.get(id);
    if (found?.clientId !== client.clientId) return null;
    const isSeen =
      customerId === undefined ||
      [found.source, found.destination].some(({ ownerId }) => ownerId === customerId);
    return isSeen ? { id } : null;
  }

  /**
   * The states that a transaction or its receipt had taken some time ago, in order.
   *
   * @param agoMs how long ago, in milliseconds
   */
  statesOf(id: string, of: 'transaction' | 'receipt', agoMs = 0): readonly string[] {
    const { trail = [], cep } = this.#state.transactions.get(id) ?? {};
    const until = this.#service.made.world.clock.now() - agoMs;
    const states = trail.filter((step) => step.of === of && step.at <= until).map(({ status }) => status);
    // A receipt is there before the first attempt to retrieve it.
    return of === 'receipt' && cep !== undefined ? ['INITIALIZED', 'PENDING', ...states] : states;
  }

  /** For how long a transaction has been there, in milliseconds. */
  ageOf(id: string): number {
    const { world } = this.#service.made;
    return world.clock.now() - (world.state.transactions.get(id)?.createdAt ?? 0);
  }

  banks() {
    return [...this.#state.banks.keys()];
  }
}

/** How often money has moved for an order, which the description of its transaction names. Each movement is looked at once. */
export class Movements {
  readonly #service: Service;
  readonly #counts = new Map<string, number>();
  #seen = 0;

  constructor(service: Service) {
    this.#service = service;
  }

  of(tag: string): number {
    const { ledger, state } = this.#service.made.world;
    for (; this.#seen < ledger.movements.length; this.#seen += 1) {
      const transaction = state.transactions.get(ledger.movements[this.#seen]?.transactionId ?? '');
      if (transaction === undefined) throw new Error('money has moved for no transaction');
      const { description } = transaction;
      this.#counts.set(description, (this.#counts.get(description) ?? 0) + 1);
    }
    return this.#counts.get(tag) ?? 0;
  }
}
