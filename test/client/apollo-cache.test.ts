import { readFileSync } from 'node:fs';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { buildSchema, getNamedType, isObjectType } from 'graphql';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({ config: PATIENT });
});
afterAll(() => gateway.stop());

const newClient = () =>
  new ApolloClient({
    cache: new InMemoryCache(cacheOptions),
    link: createLink(createFetch({ url: gateway.graphql, token: () => gateway.sandbox.accessToken })),
  });

interface Page {
  readonly nodes: readonly { readonly id: string }[];
  readonly edges: readonly { readonly cursor: string; readonly node: { readonly id: string } }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}
interface Instruments {
  readonly client: { readonly id: string; readonly instruments: Page };
}

const INSTRUMENTS = gql`
  query Instruments($first: Int, $after: Cursor, $customerId: ID) {
    client {
      id
      instruments(first: $first, after: $after, customerId: $customerId) {
        nodes { id detail { ... on ClabeDetail { clabe } ... on CardDetail { lastFour } } }
        edges { cursor node { id } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
`;

it('"load more" makes a list longer until it is whole, and a list with another filter is another list', async () => {
  const client = newClient();
  const whole = await newClient().query<Instruments>({ query: INSTRUMENTS, variables: { first: 100 } });
  const expected = whole.data?.client.instruments.nodes.map(({ id }) => id) ?? [];
  expect(expected.length).toBeGreaterThan(10);

  const list = client.watchQuery<Instruments>({ query: INSTRUMENTS, variables: { first: 4 } });
  const shown = () => (list.getCurrentResult().data as Instruments | undefined)?.client.instruments;
  const subscription = list.subscribe(() => {});
  await until(() => shown() !== undefined);
  while (shown()?.pageInfo.hasNextPage) {
    const before = shown()?.nodes.length ?? 0;
    await list.fetchMore({ variables: { after: shown()?.pageInfo.endCursor } });
    await until(() => (shown()?.nodes.length ?? 0) > before);
  }
  expect(shown()?.nodes.map(({ id }) => id)).toEqual(expected);
  expect(shown()?.edges.map(({ node }) => node.id)).toEqual(expected);

  // A page that is asked for once more, as a second press of the button does, is not shown twice.
  const first = await client.query<Instruments>({ query: INSTRUMENTS, variables: { first: 4 } });
  await list.fetchMore({ variables: { after: first.data?.client.instruments.edges[3]?.cursor } });
  const read = () => client.readQuery<Instruments>({ query: INSTRUMENTS, variables: { first: 4 } });
  expect(read()?.client.instruments.nodes.map(({ id }) => id)).toEqual(expected.slice(0, 8));

  // The list begins anew while a further page is on its way.
  const after = shown()?.edges[7]?.cursor;
  expect(after).toEqual(expect.any(String));
  await list.refetch();
  await list.fetchMore({ variables: { after } });
  expect(read()?.client.instruments.nodes.map(({ id }) => id)).toEqual(expected.slice(0, 4));

  const customers = await gateway.query('{ client { customers { nodes { id } } } }');
  const customerId = customers.data.client.customers.nodes[0].id;
  const other = await client.query<Instruments>({
    query: INSTRUMENTS,
    variables: { first: 100, customerId },
  });
  const others = other.data?.client.instruments.nodes.length ?? 0;
  expect(others).toBeLessThan(expected.length);
  subscription.unsubscribe();
});

interface LogRead {
  readonly events: {
    readonly nodes: readonly { readonly id: string }[];
    readonly pageInfo: {
      readonly hasPreviousPage: boolean;
      readonly startCursor: string;
      readonly endCursor: string;
    };
  };
}

it('the log is read back from its newest event, page before page', async () => {
  const sent = ['a', 'b', 'c', 'd', 'e'];
  const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
  for (const id_msg of sent) await fetch(address, { method: 'POST', body: JSON.stringify({ id_msg }) });
  const query = gql`
    query Events($last: Int, $before: Cursor, $first: Int, $after: Cursor) {
      events(last: $last, before: $before, first: $first, after: $after) {
        nodes { id }
        pageInfo { hasPreviousPage startCursor hasNextPage endCursor }
      }
    }
  `;
  const client = newClient();
  const list = client.watchQuery<LogRead>({ query, variables: { last: 2 } });
  const subscription = list.subscribe(() => {});
  const shown = () => list.getCurrentResult().data?.events;
  await until(() => shown()?.nodes?.length === 2);
  const newest = shown()?.pageInfo?.startCursor;
  for (let size = 2; shown()?.pageInfo?.hasPreviousPage; ) {
    await list.fetchMore({ variables: { before: shown()?.pageInfo?.startCursor } });
    await until(() => (shown()?.nodes?.length ?? 0) > size);
    size = shown()?.nodes?.length ?? 0;
  }
  expect(shown()?.nodes?.map((node) => node?.id)).toEqual(sent);
  // Nothing is newer, and the empty page's cursors are null. The next look for newer ones has to begin where this one did.
  const after = shown()?.pageInfo?.endCursor;
  expect(after).toEqual(expect.any(String));
  await list.fetchMore({ variables: { last: null, before: null, first: 2, after } });
  const kept = () => client.readQuery<LogRead>({ query, variables: { last: 2 } })?.events;
  await list.fetchMore({ variables: { last: 2, before: kept()?.pageInfo.startCursor } });
  expect(kept()?.pageInfo).toMatchObject({
    hasPreviousPage: false,
    startCursor: expect.any(String),
    endCursor: after,
  });
  expect(kept()?.nodes.map(({ id }) => id)).toEqual(sent);
  // Nor is a page before another one shown twice.
  await list.fetchMore({ variables: { last: 2, before: newest } });
  expect(kept()?.nodes.map(({ id }) => id)).toEqual(sent.slice(1));
  subscription.unsubscribe();
});

it('every connection of the graph grows by "load more"', () => {
  const schema = buildSchema(readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8'));
  const connections = Object.values(schema.getTypeMap()).flatMap((type) =>
    isObjectType(type)
      ? Object.values(type.getFields()).flatMap((field) =>
          getNamedType(field.type).name.endsWith('Connection') ? [`${type.name}.${field.name}`] : [],
        )
      : [],
  );
  const joined = Object.entries(cacheOptions.typePolicies).flatMap(([type, policy]) =>
    'fields' in policy ? Object.keys(policy.fields).map((field) => `${type}.${field}`) : [],
  );
  expect(connections.length).toBeGreaterThan(8);
  expect(joined.sort()).toEqual(connections.sort());
});

it('the credits of an account grow by "load more", newest first', async () => {
  const { accounts } = await control(gateway.sandbox, 'GET', '/sandbox');
  const [{ clabe }] = accounts;
  const amounts = ['1.00', '2.00', '3.00'];
  for (const [index, amount] of amounts.entries()) {
    await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
    await until(async () => {
      const { data } = await gateway.query(
        `{ account(by: { clabe: "${clabe}" }) { moneyIn { nodes { id } } } }`,
      );
      return data.account.moneyIn.nodes.length === index + 1;
    });
  }
  const query = gql`
    query Credits($clabe: Clabe!, $first: Int, $after: Cursor) {
      account(by: { clabe: $clabe }) {
        id
        moneyIn(first: $first, after: $after) {
          nodes { id ... on MoneyInEvent { amount { amount } } }
          pageInfo { hasNextPage endCursor }
        }
      }
    }
  `;
  interface Credits {
    readonly nodes: readonly { readonly amount: { readonly amount: string } }[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  }
  const list = newClient().watchQuery<{ account: { moneyIn: Credits } }>({
    query,
    variables: { clabe, first: 1 },
  });
  const subscription = list.subscribe(() => {});
  const shown = () =>
    (list.getCurrentResult().data as { account: { moneyIn: Credits } } | undefined)?.account.moneyIn;
  for (let size = 1; size <= 3; size += 1) {
    await until(() => shown()?.nodes.length === size);
    if (size < 3) await list.fetchMore({ variables: { after: shown()?.pageInfo.endCursor } });
  }
  expect(shown()?.nodes.map(({ amount }) => amount.amount)).toEqual(amounts.toReversed());
  subscription.unsubscribe();
});

it('two events with one id are shown each as it came', () => {
  const cache = new InMemoryCache(cacheOptions);
  const query = gql`
    query Receipts($types: [EventType!]) { events(types: $types) { nodes { id cursor ... on CepEvent { rawStatus } } } }
  `;
  const cep = (cursor: string, rawStatus: string) => ({
    __typename: 'CepEvent',
    id: 'one',
    cursor,
    rawStatus,
  });
  const nodes = [cep('c1', 'PENDING'), cep('c2', 'COMPLETED')];
  const variables = { types: ['CEP'] };
  cache.writeQuery({
    query,
    variables,
    data: { events: { __typename: 'EventConnection', nodes } },
  });
  expect(cache.readQuery({ query, variables })).toMatchObject({ events: { nodes } });
  // A stream brings a third, and one of another type.
  const warned = vi.spyOn(console, 'warn');
  for (const event of [cep('c3', 'FAILED'), { __typename: 'StatusUpdateEvent', id: 'one', cursor: 'c4' }]) {
    cache.writeQuery({
      id: 'ROOT_SUBSCRIPTION',
      query: gql`subscription { events { id cursor ... on CepEvent { rawStatus } } }`,
      data: { events: event },
    });
  }
  expect(warned).not.toHaveBeenCalled();
  expect(cache.readQuery({ query, variables })).toMatchObject({ events: { nodes } });
});
