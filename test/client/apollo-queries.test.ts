import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { RetryLink } from '@apollo/client/link/retry';
import { afterEach, expect, it, vi } from 'vitest';
import { apolloSource, cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { ConnectionLost } from '../../packages/client/src/fetch.ts';
import { memoryIntents, pay, watch } from '../../packages/client/src/index.ts';
import { createFakeSource, type FakeCall } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

/** What docs/clients/apollo.md says of queries and of the cache. */

afterEach(() => void vi.restoreAllMocks());

function begin() {
  const source = createFakeSource();
  const retry = new RetryLink({
    delay: { initial: 1 },
    attempts: {
      max: 5,
      retryIf: (error, { operationType }) => operationType === 'query' && error instanceof ConnectionLost,
    },
  });
  const client = new ApolloClient({
    link: retry.concat(createLink(source)),
    cache: new InMemoryCache(cacheOptions),
  });
  const call = async (): Promise<FakeCall> => {
    await until(() => source.calls.length > 0);
    const [first] = source.calls;
    if (first === undefined) throw new Error('nothing was sent');
    return first;
  };
  return { source, client, call };
}

const page = (ids: readonly string[]) => ({
  __typename: 'AccountConnection',
  nodes: ids.map((id) => ({ __typename: 'Account', id, availableBalance: balance('1.00') })),
  pageInfo: { __typename: 'PageInfo', hasNextPage: true, endCursor: ids.at(-1) },
});
const balance = (amount: string) => ({ __typename: 'Money', amount });
const clientOf = (accounts: object) => ({ client: { __typename: 'Client', id: 'c', accounts } });
const ACCOUNTS = gql`
  query Accounts($first: Int, $after: Cursor) {
    client { id accounts(first: $first, after: $after) {
      nodes { id availableBalance { amount } }
      pageInfo { hasNextPage endCursor }
    } }
  }
`;
const BALANCES = gql`
  query Balances($ids: [ID!]!) { nodes(ids: $ids) { ... on Account { id availableBalance { amount } } } }
`;

it('a query is asked again where the connection is lost, a mutation and a refusal are not', async () => {
  const { source, client, call } = begin();
  const asked = client.query({ query: gql`{ client { id } }` });
  for (let time = 0; time < 2; time += 1) (await call()).lose(new ConnectionLost('cut', 4403));
  (await call()).answer({ data: { client: { __typename: 'Client', id: 'c' } } });
  await expect(asked).resolves.toMatchObject({ data: { client: { id: 'c' } } });

  const sent = client.mutate({ mutation: gql`mutation { syncWebhooks { id } }` });
  (await call()).lose(new ConnectionLost('cut'));
  await expect(sent).rejects.toThrow('cut');

  const refused = client.query({ query: gql`{ client { name } }` });
  (await call()).answer({
    errors: [{ message: 'Another token is needed.', extensions: { code: 'UNAUTHENTICATED' } }],
  });
  await expect(refused).rejects.toThrow('Another token is needed.');
  expect(source.calls).toEqual([]);
});

it('lists that differ in `first` alone are one entry, which a refetch makes as short as it began', async () => {
  const { client, call } = begin();
  const list = client.watchQuery<{ client: { accounts: { nodes: { id: string }[] } } }>({
    query: ACCOUNTS,
    variables: { first: 2 },
  });
  const shown = () => list.getCurrentResult().data?.client?.accounts?.nodes?.map((node) => node?.id);
  const subscription = list.subscribe(() => {});
  (await call()).answer({ data: clientOf(page(['a', 'b'])) });
  await until(() => shown()?.length === 2);
  const more = list.fetchMore({ variables: { after: 'b' } });
  (await call()).answer({ data: clientOf(page(['c', 'd'])) });
  await more;
  await expect.poll(shown).toEqual(['a', 'b', 'c', 'd']);
  const { data } = await client.query({ query: ACCOUNTS, variables: { first: 100 } });
  expect(data).toMatchObject({ client: { accounts: { nodes: [{}, {}, {}, {}] } } });

  // What an event has changed is read by the ids, which leaves the list as long as it is.
  const fresh = client.query({
    query: BALANCES,
    variables: { ids: ['c'] },
    fetchPolicy: 'network-only',
  });
  (await call()).answer({
    data: { nodes: [{ __typename: 'Account', id: 'c', availableBalance: balance('9.00') }] },
  });
  await fresh;
  await expect
    .poll(() => list.getCurrentResult().data?.client?.accounts?.nodes?.[2])
    .toMatchObject({ availableBalance: { amount: '9.00' } });

  const again = list.refetch();
  (await call()).answer({ data: clientOf(page(['a', 'b'])) });
  await again;
  await expect.poll(shown).toEqual(['a', 'b']);
  subscription.unsubscribe();
});

it('two queries of a client without its `id` push each other out of the cache', async () => {
  const warnings = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const { client, call } = begin();
  const name = gql`{ client { name } }`;
  const read = client.query({ query: name });
  (await call()).answer({ data: { client: { __typename: 'Client', name: 'Uno' } } });
  await read;
  const other = client.query({ query: ACCOUNTS, variables: { first: 2 } });
  (await call()).answer({ data: clientOf(page(['a'])) });
  await other;
  expect(client.readQuery({ query: name })).toBeNull();
  expect(warnings).toHaveBeenCalled();
});

it('what is paid and watched by the source of a client is not in its cache', async () => {
  const { source, client, call } = begin();
  const own = apolloSource(client);
  const document =
    'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename transaction { id } } }';
  const paying = pay(own, document as never, { amount: '1.00' } as never, { store: memoryIntents() });
  const transaction = { __typename: 'Transaction', id: 't', status: 'INITIALIZED' };
  (await call()).answer({ data: { createMoneyOut: { __typename: 'CreateMoneyOutSuccess', transaction } } });
  await expect(paying).resolves.toMatchObject({ status: 'done' });
  const states = watch(
    own,
    'subscription { transactionStatus(transactionId: "t") { transaction { id status } } }',
    {},
  );
  const [state] = [states[Symbol.asyncIterator]().next()];
  await until(() => source.subscriptions.length === 1);
  source.subscriptions[0]?.sink.next({
    data: { transactionStatus: { __typename: 'TransactionUpdate', transaction } },
  });
  await expect(state).resolves.toMatchObject({ value: { transaction: { id: 't' } } });
  states.close();
  expect(client.cache.extract()).toEqual({});
});
