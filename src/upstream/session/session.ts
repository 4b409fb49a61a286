import { ACCOUNT_LIST, ACCOUNTS, type AccountLoader } from '../accounts.ts';
import { BANKS, type Bank, type BankFieldNames, readBanks } from '../banks.ts';
import type { Rest, RestChanges } from '../call/rest.ts';
import { customerScope } from '../customer-scope.ts';
import { CUSTOMER_LIST, CUSTOMERS, type CustomerLoader } from '../customers.ts';
import { createInstrumentLoader, INSTRUMENTS, type InstrumentLoader } from '../instruments.ts';
import type { ClientLists } from '../lists/client-lists.ts';
import { Listing } from '../lists/listing.ts';
import { createPlacedLoader } from '../lists/placed-list.ts';
import { WholeLoader } from '../lists/whole-list.ts';
import { createTransactionLoader, type Transaction, type TransactionLoader } from '../transactions.ts';
import { readWebhooks, WEBHOOKS, type Webhook } from '../webhooks.ts';
import { type OwnershipReads, scopeChanges } from './scoped-changes.ts';

/**
 * One caller's view of the REST service during one operation. It reads nothing twice. Another operation, and every event of a
 * subscription, has a session of its own.
 *
 * Resolvers reach the REST service only through it, and it narrows everything to what the caller may see and change
 * (customer-scope.ts). So no member gives free access to the service.
 */
export interface Session {
  readonly clientId: string;
  /**
   * Begins to read lists that the operation is going to need, beside whatever it reads first: a list that comes in one answer whole; of a
   * longer one the index of places is made. A list that fails, fails where it is looked up.
   *
   * @returns a promise that resolves once all have arrived or failed. After that look-ups in them need no promise.
   */
  prefetch(lists: readonly PrefetchList[]): Promise<unknown>;
  /** The calls that change something. */
  readonly rest: RestChanges;
  /** Offset of upstream timestamps that carry none, such as `-06:00`. */
  readonly utcOffset: string;
  readonly banks: WholeLoader<Bank>;
  readonly accounts: AccountLoader;
  readonly customers: CustomerLoader;
  readonly webhooks: WholeLoader<Webhook>;
  readonly instruments: InstrumentLoader;
  readonly transactions: TransactionLoader;
  /** Reads a transaction again, for a refund of it; null if the caller has none of this id. */
  original(id: string): Promise<Transaction | null>;
  /** Returns, by route of a list, how many look-ups it has answered so far. Many look-ups may share one call. */
  lookUps(): ReadonlyMap<string, number>;
}

/**
 * The lists that can be read first. `customers.accounts` are the accounts of the customers that are looked up; they can be
 * read beside these customers.
 */
export type PrefetchList = 'banks' | 'accounts' | 'customers' | 'customers.accounts';

/**
 * Routes of a client's lists whose answers serve the client's other callers for a while, where the gateway holds the credentials
 * (operation/reads.ts). All of them may also change without an event.
 */
export const CLIENT_LISTS: ReadonlySet<string> = new Set([ACCOUNTS, CUSTOMERS, INSTRUMENTS, WEBHOOKS]);

/** Keeps the bank catalog for a while. It is the same for all callers, so one reading serves them all. */
export interface BankCache {
  read(rest: Rest): Promise<Listing<Bank>>;
}

/**
 * @param names that the catalog uses for the fields of a bank.
 * @param ttlMs how long a catalog serves after its reading began, in milliseconds.
 * @param now milliseconds of a monotonic clock.
 */
export function createBankCache(names: BankFieldNames, ttlMs: number, now: () => number): BankCache {
  let kept: { readonly banks: Listing<Bank>; readonly until: number } | undefined;
  return {
    async read(rest) {
      if (kept !== undefined && now() < kept.until) {
        rest.served(BANKS);
        return kept.banks;
      }
      // Nobody waits for another's read here: if one caller's token is refused, the others must not fail. Equal reads under way are shared
      // among callers that are one to the service (operation/reads.ts).
      const until = now() + ttlMs;
      const banks = new Listing(await readBanks(rest, names));
      // A slow reading must not take the place of one that began later.
      if (kept === undefined || until > kept.until) kept = { banks, until };
      return banks;
    },
  };
}

export interface SessionOptions {
  readonly banks: BankCache;
  /** What the process knows of the lists of all clients. */
  readonly lists: ClientLists;
  readonly utcOffset: string;
}

/**
 * Makes the session of one operation over a caller's REST calls.
 *
 * @param beforePayments the same caller's calls, for look-ups that a payment needs before it may be sent.
 * @param customerId the customer that the caller is narrowed to; undefined for all of the client.
 */
export function createSession(
  rest: Rest,
  beforePayments: () => Rest,
  customerId: string | undefined,
  options: SessionOptions,
): Session {
  const scope = customerScope(customerId);
  const { lists } = options;
  const ownedBy = <T>(key: keyof T & string, isSeen: (item: T) => boolean) =>
    scope.customerId === undefined ? undefined : { key, customerId: scope.customerId, isSeen };
  /** True if the accounts of the customers that are looked up are read beside them. */
  let prefetchesAccounts = false;
  const banks = new WholeLoader(() => options.banks.read(rest));
  const accounts: AccountLoader = createPlacedLoader(rest, ACCOUNT_LIST, {
    lists,
    owned: ownedBy('ownerId', scope.account),
  });
  const customers: CustomerLoader = createPlacedLoader(rest, CUSTOMER_LIST, {
    lists,
    owned: ownedBy('id', scope.customer),
    onIds: (ids) => prefetchesAccounts && accounts.prefetch('ownerId', ids),
  });
  const webhooks = new WholeLoader(
    async () => new Listing(scope.wholeClient ? await readWebhooks(rest) : []),
  );
  const instruments = createInstrumentLoader(rest, scope, lists);
  const begin = (name: PrefetchList): Promise<unknown> => {
    if (name !== 'customers.accounts') return { banks, accounts, customers }[name].begin();
    prefetchesAccounts = true;
    return accounts.begin();
  };
  const ownershipReads = (): OwnershipReads => {
    const own = beforePayments();
    const instruments = createInstrumentLoader(own, scope, lists);
    return { instruments, transactions: createTransactionLoader(own, scope, instruments) };
  };
  return {
    clientId: rest.clientId,
    lookUps: () =>
      new Map([
        [BANKS, banks.lookUps()],
        [ACCOUNTS, accounts.lookUps()],
        [CUSTOMERS, customers.lookUps()],
        [WEBHOOKS, webhooks.lookUps()],
        [INSTRUMENTS, instruments.lookUps()],
      ]),
    prefetch: (names) => Promise.allSettled(names.map(begin)),
    rest: scope.wholeClient ? rest : scopeChanges(rest, scope, ownershipReads),
    utcOffset: options.utcOffset,
    banks,
    accounts,
    customers,
    webhooks,
    instruments,
    transactions: createTransactionLoader(rest, scope, instruments),
    original: (id) => ownershipReads().transactions.get(id),
  };
}
