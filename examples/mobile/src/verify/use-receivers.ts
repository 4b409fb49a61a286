import { Refused, type Source } from '@pasarela/client';
import { useCallback, useEffect, useState } from 'react';
import type { AccountsToVerifyQuery } from '../gql/graphql.ts';
import { useQuery } from '../graph/use-query.ts';
import { ACCOUNTS_TO_VERIFY, MORE_RECEIVERS, type Receiver, type ReceiverPage } from './documents.ts';

type Client = AccountsToVerifyQuery['client'];
export type PayingAccount = NonNullable<NonNullable<Client['accounts']>['nodes'][number]>;

export interface Receivers {
  /** What was read so far of those that can be verified: CLABE accounts at other banks. */
  readonly receivers: readonly Receiver[];
  /** The account that pays: the client's own first one. */
  readonly payer: PayingAccount | undefined;
  /** How many instruments there are in all, and how many of them were read. */
  readonly total: number;
  readonly read: number;
}

export interface ReceiversState {
  readonly found: Receivers | undefined;
  readonly problem: unknown;
  readonly again: () => void;
  /** Reads the next page. Undefined once all were read, and while one is being read. */
  readonly more: (() => void) | undefined;
}

const NOTHING = {};

/** The accounts that can be verified, a page after another: a merchant may have thousands. */
export function useReceivers(source: Source): ReceiversState {
  const { data, problem: unread, again: first } = useQuery(source, ACCOUNTS_TO_VERIFY, NOTHING);
  const [pages, setPages] = useState<readonly ReceiverPage[]>([]);
  const [reading, setReading] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const head = data?.client.instruments ?? undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another first page makes the others stale.
  useEffect(() => setPages([]), [head]);

  const next = (pages.at(-1) ?? head)?.pageInfo;
  const read = useCallback(async () => {
    if (!next?.hasNextPage || !next.endCursor) return;
    setReading(true);
    try {
      const answer = await source.query(MORE_RECEIVERS, { after: next.endCursor });
      const page = answer.data?.client.instruments;
      if (!page) throw new Refused(answer.errors?.[0] ?? { message: 'the list could not be read' });
      setPages((before) => [...before, page]);
    } catch (cause) {
      setProblem(cause);
    }
    setReading(false);
  }, [source, next]);

  const again = () => {
    setProblem(undefined);
    first();
  };
  // What could not be read is an error, not an empty list.
  if (data === undefined || head === undefined || !data.client.accounts) {
    return { found: undefined, problem: unread, again, more: undefined };
  }
  const { id, accounts } = data.client;
  const nodes = [head, ...pages].flatMap((page) => page.nodes);
  return {
    found: {
      receivers: nodes.filter((node): node is Receiver => node !== null && isReceiver(node)),
      payer: accounts.nodes.find(
        (account): account is PayingAccount =>
          account !== null && account.ownerId === id && account.instrument !== null,
      ),
      total: head.totalCount,
      read: nodes.length,
    },
    problem,
    again,
    more: next?.hasNextPage && !reading && problem === undefined ? () => void read() : undefined,
  };
}

const isReceiver = ({ account, detail }: Receiver): boolean =>
  account === null && detail !== null && 'clabe' in detail;
