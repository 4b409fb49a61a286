import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway();
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

  // The same page once more, as a second press of the button asks for, adds nothing.
  const { data } = await client.query<Instruments>({ query: INSTRUMENTS, variables: { first: 4 } });
  await list.fetchMore({ variables: { after: data?.client.instruments.edges[3]?.cursor } });
  const ids = shown()?.nodes.map(({ id }) => id) ?? [];
  expect(new Set(ids).size).toBe(ids.length);

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

it('the log is read back from its newest event, page before page', async () => {
  const sent = ['a', 'b', 'c', 'd', 'e'];
  const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
  for (const id_msg of sent) await fetch(address, { method: 'POST', body: JSON.stringify({ id_msg }) });
  const query = gql`
    query Events($last: Int, $before: Cursor) {
      events(last: $last, before: $before) {
        nodes { id }
        pageInfo { hasPreviousPage startCursor hasNextPage endCursor }
      }
    }
  `;
  const client = newClient();
  const list = client.watchQuery<{
    events: { nodes: { id: string }[]; pageInfo: { hasPreviousPage: boolean; startCursor: string } };
  }>({ query, variables: { last: 2 } });
  const subscription = list.subscribe(() => {});
  const shown = () => list.getCurrentResult().data?.events;
  await until(() => shown()?.nodes?.length === 2);
  for (let size = 2; shown()?.pageInfo?.hasPreviousPage; ) {
    await list.fetchMore({ variables: { before: shown()?.pageInfo?.startCursor } });
    await until(() => (shown()?.nodes?.length ?? 0) > size);
    size = shown()?.nodes?.length ?? 0;
  }
  expect(shown()?.nodes?.map((node) => node?.id)).toEqual(sent);
  subscription.unsubscribe();
});
