import { useCallback, useEffect, useState } from 'react';
import { useClient, useQuery } from 'urql';
import type { AccountsToVerifyQuery } from '../gql/graphql.ts';
import { ACCOUNTS_TO_VERIFY, MORE_RECEIVERS, type Receiver, type ReceiverPage } from './documents.ts';

type Client = AccountsToVerifyQuery['client'];
export type PayingAccount = NonNullable<NonNullable<Client['accounts']>['nodes'][number]>;

export interface Receivers {
  /** What was read so far of those that can be verified: CLABE accounts at other banks. */
  readonly receivers: readonly Receiver[];
  readonly accounts: readonly PayingAccount[];
  readonly client: Client;
  /** How many instruments there are in all, and how many of them were read. */
  readonly total: number;
  readonly read: number;
}

export interface ReceiversState {
  readonly found: Receivers | undefined;
  readonly error: unknown;
  readonly again: () => void;
  /** Reads the next page. Undefined once all were read, and while one is being read. */
  readonly more: (() => void) | undefined;
}

/** The accounts that can be verified, a page after another: a merchant may have thousands. */
export function useReceivers(): ReceiversState {
  const urql = useClient();
  const [{ data, error }, first] = useQuery({ query: ACCOUNTS_TO_VERIFY });
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
    const result = await urql.query(MORE_RECEIVERS, { after: next.endCursor });
    const page = result.data?.client.instruments;
    if (page) setPages((before) => [...before, page]);
    else setProblem(result.error);
    setReading(false);
  }, [urql, next]);

  const again = () => {
    setProblem(undefined);
    first({ requestPolicy: 'network-only' });
  };
  // What could not be read is an error, not an empty list.
  if (data === undefined || head === undefined || !data.client.accounts) {
    return { found: undefined, error, again, more: undefined };
  }
  const nodes = [head, ...pages].flatMap((page) => page.nodes);
  return {
    found: {
      client: data.client,
      receivers: nodes.filter((node): node is Receiver => node !== null && isReceiver(node)),
      accounts: data.client.accounts.nodes.filter(
        (account): account is PayingAccount =>
          account !== null && account.ownerId === data.client.id && account.instrument !== null,
      ),
      total: head.totalCount,
      read: nodes.length,
    },
    error: problem,
    again,
    more: next?.hasNextPage && !reading && problem === undefined ? () => void read() : undefined,
  };
}

const isReceiver = ({ account, detail }: Receiver): boolean =>
  account === null && detail !== null && 'clabe' in detail;
