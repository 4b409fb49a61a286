import { type Account, readAccounts } from './accounts.ts';
import { type Bank, readBanks } from './banks.ts';
import { type Customer, readCustomers } from './customers.ts';
import { createInstrumentLoader, type InstrumentLoader } from './instruments.ts';
import type { Rest } from './rest.ts';
import { createTransactionLoader, type TransactionLoader } from './transactions.ts';
import { readWebhooks, type Webhook } from './webhooks.ts';
import { createWholeList, type WholeList } from './whole-list.ts';

/**
 * One caller's view of the REST service during one operation. What has been read once is not read again; another
 * operation, and every event of a subscription, has a session of its own.
 */
export interface Session {
  readonly clientId: string;
  /** For calls that change something, and for reads that must not be remembered. */
  readonly rest: Rest;
  /** Offset of upstream timestamps that carry none, such as `-06:00`. */
  readonly utcOffset: string;
  readonly banks: WholeList<Bank>;
  readonly accounts: WholeList<Account>;
  readonly customers: WholeList<Customer>;
  readonly webhooks: WholeList<Webhook>;
  readonly instruments: InstrumentLoader;
  readonly transactions: TransactionLoader;
}

/** The bank catalog belongs to nobody: once read, it serves all callers for a while. */
export interface BankCache {
  read(rest: Rest): Promise<readonly Bank[]>;
}

/**
 * @param ttlMs how long a catalog that was read serves.
 * @param now milliseconds of a monotonic clock.
 */
export function createBankCache(ttlMs: number, now: () => number): BankCache {
  let kept: { readonly banks: readonly Bank[]; readonly until: number } | undefined;
  return {
    async read(rest) {
      if (kept !== undefined && now() < kept.until) return kept.banks;
      // Reads in flight are not shared: one caller's refused token must not fail another caller.
      const banks = await readBanks(rest);
      kept = { banks, until: now() + ttlMs };
      return banks;
    },
  };
}

/** Makes the loaders of one operation over a caller's REST calls. */
export function createSession(rest: Rest, options: { banks: BankCache; utcOffset: string }): Session {
  return {
    clientId: rest.clientId,
    rest,
    utcOffset: options.utcOffset,
    banks: createWholeList(() => options.banks.read(rest)),
    accounts: createWholeList(() => readAccounts(rest)),
    customers: createWholeList(() => readCustomers(rest)),
    webhooks: createWholeList(() => readWebhooks(rest)),
    instruments: createInstrumentLoader(rest),
    transactions: createTransactionLoader(rest),
  };
}
