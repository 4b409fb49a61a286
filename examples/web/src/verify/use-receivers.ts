import { useCallback } from 'react';
import { type CombinedError, useClient, useQuery } from 'urql';
import { hasMore, itemsOf, lacksAccounts, payersOf } from '../graph/pages.ts';
import { usePages } from '../graph/use-pages.ts';
import {
  ACCOUNTS_TO_VERIFY,
  type AccountPage,
  MORE_ACCOUNTS,
  MORE_RECEIVERS,
  type PayingAccount,
  type Receiver,
  type ReceiverPage,
} from './documents.ts';

/** A list, as far as it was read. */
export interface Listed<Item> {
  readonly items: readonly Item[];
  /** How many there are in all, and how many of them were read. */
  readonly total: number;
  readonly read: number;
  /** Whether there is more to read. */
  readonly hasMore: boolean;
  /** Reads the next page. Undefined once all were read, and while one is being read. */
  readonly more: (() => void) | undefined;
}

export interface Receivers {
  /** Those that can be verified: CLABE accounts at other banks. */
  readonly receivers: Listed<Receiver>;
  /** The client's own accounts, which can pay. */
  readonly accounts: Listed<PayingAccount>;
}

export interface ReceiversState {
  readonly found: Receivers | undefined;
  readonly error: unknown;
  readonly again: () => void;
}

/** The accounts that can be verified, and those that can pay for it. */
export function useReceivers(): ReceiversState {
  const urql = useClient();
  const [{ data, error }, first] = useQuery({ query: ACCOUNTS_TO_VERIFY });
  const readReceivers = useCallback(
    async (after: string) => {
      const result = await urql.query(MORE_RECEIVERS, { after });
      return pageOf(result.data?.client.instruments, result.error);
    },
    [urql],
  );
  const readAccounts = useCallback(
    async (after: string) => {
      const result = await urql.query(MORE_ACCOUNTS, { after });
      return pageOf(result.data?.client.accounts, result.error);
    },
    [urql],
  );
  const told = lacksAccounts(error?.graphQLErrors) ? undefined : data?.client;
  const receivers = usePages<ReceiverPage>(told?.instruments ?? undefined, readReceivers);
  const accounts = usePages<AccountPage>(told?.accounts ?? undefined, readAccounts);

  const again = () => {
    receivers.again();
    accounts.again();
    first({ requestPolicy: 'network-only' });
  };
  const [firstReceivers] = receivers.pages;
  const [firstAccounts] = accounts.pages;
  // What could not be read is an error, not an empty list.
  if (told === undefined || firstReceivers === undefined || firstAccounts === undefined) {
    return { found: undefined, error, again };
  }
  const instruments = itemsOf(receivers.pages);
  const allAccounts = itemsOf(accounts.pages);
  return {
    found: {
      receivers: {
        items: instruments.filter(isReceiver),
        total: firstReceivers.totalCount,
        read: instruments.length,
        hasMore: hasMore(receivers.pages),
        more: receivers.more,
      },
      accounts: {
        items: payersOf(allAccounts, told.id),
        total: firstAccounts.totalCount,
        read: allAccounts.length,
        hasMore: hasMore(accounts.pages),
        more: accounts.more,
      },
    },
    error: receivers.problem ?? accounts.problem,
    again,
  };
}

/** @throws what kept the page from being read. */
function pageOf<Of>(page: Of | null | undefined, error: CombinedError | undefined): Of {
  if (page && !lacksAccounts(error?.graphQLErrors)) return page;
  throw error ?? new Error('The list could not be read.');
}

const isReceiver = ({ account, detail }: Receiver): boolean =>
  account === null && detail !== null && 'clabe' in detail;
