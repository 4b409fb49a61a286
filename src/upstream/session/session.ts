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
 * One caller's view of the REST service during one operation. What has been read once is not read again; another
 * operation, and every event of a subscription, has a session of its own.
 *
 * Nothing reaches a resolver but through here, and everything here is narrowed to what the caller may see and touch
 * (customer-scope.ts): that is why no member reads the REST service freely.
 */
export interface Session {
  readonly clientId: string;
  /**
   * Begins to read whole lists that the operation is going to need, beside whatever it reads first. What fails, fails
   * where it is looked up.
   *
   * @returns a promise that resolves once all have arrived, or failed: look-ups in them need no promise then.
   */
  prefetch(lists: readonly PrefetchList[]): Promise<unknown>;
  /** For calls that change something. */
  readonly rest: RestChanges;
  /** Offset of upstream timestamps that carry none, such as `-06:00`. */
  readonly utcOffset: string;
  readonly banks: WholeLoader<Bank>;
  readonly accounts: AccountLoader;
  readonly customers: CustomerLoader;
  readonly webhooks: WholeLoader<Webhook>;
  readonly instruments: InstrumentLoader;
  readonly transactions: TransactionLoader;
  /** A transaction as the service has it now, for a refund of it; null when the caller has none of this id. */
  original(id: string): Promise<Transaction | null>;
  /** How many look-ups each list's route has answered so far: many rows share one call. */
  lookUps(): ReadonlyMap<string, number>;
}

/**
 * The lists that do not depend on what is read before them. `customers.accounts` are the accounts of the very customers
 * that are looked up: they can be read beside them.
 */
export type PrefetchList = 'banks' | 'accounts' | 'customers' | 'customers.accounts';

/** Routes of the lists of what belongs to a client. */
export const CLIENT_LISTS: ReadonlySet<string> = new Set([ACCOUNTS, CUSTOMERS, INSTRUMENTS, WEBHOOKS]);

/** The bank catalog belongs to nobody: once read, it serves all callers for a while. */
export interface BankCache {
  read(rest: Rest): Promise<Listing<Bank>>;
}

/**
 * @param names under which the catalog says what it may say of a bank.
 * @param ttlMs how long a catalog that was read serves.
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
      // Reads in flight are not shared: one caller's refused token must not fail another caller.
      const banks = new Listing(await readBanks(rest, names));
      kept = { banks, until: now() + ttlMs };
      return banks;
    },
  };
}

export interface SessionOptions {
  readonly banks: BankCache;
  /** What the process knows of the lists of all clients. */
  readonly lists: ClientLists;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  readonly utcOffset: string;
}

/**
 * Makes the loaders of one operation over a caller's REST calls.
 *
 * @param beforePayments the same caller's calls, for what a payment has to look up before it may leave.
 * @param customerId the customer that the caller is narrowed to; undefined for all of the client.
 */
export function createSession(
  rest: Rest,
  beforePayments: () => Rest,
  customerId: string | undefined,
  options: SessionOptions,
): Session {
  const scope = customerScope(customerId);
  const { lists, now } = options;
  const ownedBy = <T>(key: keyof T & string, isSeen: (item: T) => boolean) =>
    scope.customerId === undefined ? undefined : { key, customerId: scope.customerId, isSeen };
  /** Whether the accounts of the customers that are looked up are read beside them. */
  let prefetchesAccounts = false;
  const banks = new WholeLoader(() => options.banks.read(rest));
  const accounts: AccountLoader = createPlacedLoader(rest, ACCOUNT_LIST, {
    lists,
    now,
    owned: ownedBy('ownerId', scope.account),
  });
  const customers: CustomerLoader = createPlacedLoader(rest, CUSTOMER_LIST, {
    lists,
    now,
    owned: ownedBy('id', scope.customer),
    onIds: (ids) => prefetchesAccounts && accounts.prefetch('ownerId', ids),
  });
  const webhooks = new WholeLoader(
    async () => new Listing(scope.wholeClient ? await readWebhooks(rest) : []),
  );
  const instruments = createInstrumentLoader(rest, scope, lists);
  const begin = (name: PrefetchList): Promise<unknown> => {
    if (name !== 'customers.accounts') return { banks, accounts, customers }[name].begin();
    prefetchesAccounts = scope.wholeClient;
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
