import { type Answer, Refused, type Source } from '@pasarela/client';
import { useCallback, useEffect } from 'react';
import { hasMore, itemsOf, lacksAccounts, payersOf } from '../graph/pages.ts';
import { usePages } from '../graph/use-pages.ts';
import { useQuery } from '../graph/use-query.ts';
import {
  ACCOUNTS_TO_VERIFY,
  type AccountPage,
  MORE_ACCOUNTS,
  MORE_RECEIVERS,
  type PayingAccount,
  type Receiver,
  type ReceiverPage,
} from './documents.ts';

export interface Receivers {
  /** What was read so far of those that can be verified: CLABE accounts at other banks. */
  readonly receivers: readonly Receiver[];
  /** The account that pays: the client's own first one. */
  readonly payer: PayingAccount | undefined;
  /** Whether it is still looked for. */
  readonly isLooking: boolean;
  /** How many instruments there are in all, and how many of them were read. */
  readonly total: number;
  readonly read: number;
  /** Whether there are more to read. */
  readonly hasMore: boolean;
}

export interface ReceiversState {
  readonly found: Receivers | undefined;
  readonly problem: unknown;
  readonly again: () => void;
  /** Reads the next page of instruments. Undefined once all were read, and while one is being read. */
  readonly more: (() => void) | undefined;
}

const NOTHING = {};

/** The accounts that can be verified, and the one that pays for it. */
export function useReceivers(source: Source): ReceiversState {
  const { data, problem: unread, errors, again: first } = useQuery(source, ACCOUNTS_TO_VERIFY, NOTHING);
  const readReceivers = useCallback(
    async (after: string) => {
      const answer = await source.query(MORE_RECEIVERS, { after });
      return pageOf(answer.data?.client.instruments, answer);
    },
    [source],
  );
  const readAccounts = useCallback(
    async (after: string) => {
      const answer = await source.query(MORE_ACCOUNTS, { after });
      return pageOf(answer.data?.client.accounts, answer);
    },
    [source],
  );
  const told = lacksAccounts(errors) ? undefined : data?.client;
  const receivers = usePages<ReceiverPage>(told?.instruments ?? undefined, readReceivers);
  const accounts = usePages<AccountPage>(told?.accounts ?? undefined, readAccounts);
  const [payer] = payersOf(itemsOf(accounts.pages), told?.id);
  const { more: moreAccounts } = accounts;
  const isLooking = payer === undefined && hasMore(accounts.pages);
  // The accounts of customers may come first, by the hundred.
  useEffect(() => {
    if (isLooking) moreAccounts?.();
  }, [isLooking, moreAccounts]);

  const again = () => {
    receivers.again();
    accounts.again();
    first();
  };
  const [firstReceivers] = receivers.pages;
  // What could not be read is an error, not an empty list.
  if (firstReceivers === undefined || accounts.pages.length === 0) {
    return { found: undefined, problem: unread, again, more: undefined };
  }
  const nodes = itemsOf(receivers.pages);
  return {
    found: {
      receivers: nodes.filter(isReceiver),
      payer,
      isLooking,
      total: firstReceivers.totalCount,
      read: nodes.length,
      hasMore: hasMore(receivers.pages),
    },
    problem: receivers.problem ?? accounts.problem,
    again,
    more: receivers.more,
  };
}

/** @throws Refused where the gateway could not give the page. */
function pageOf<Page>(page: Page | null | undefined, { errors }: Answer<unknown>): Page {
  if (page && !lacksAccounts(errors)) return page;
  throw new Refused(errors?.[0] ?? { message: 'The list could not be read.' });
}

const isReceiver = ({ account, detail }: Receiver): boolean =>
  account === null && detail !== null && 'clabe' in detail;
