import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { Client, type OperationContext } from '@urql/core';
import { describe, expect, it } from 'vitest';
import { pipe, subscribe } from 'wonka';
import { createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import type { Source } from '../../packages/client/src/index.ts';
import { sourceExchange } from '../../packages/client/src/urql.ts';
import { until } from '../helpers/until.ts';

const QUERY = '{ eventCursor }';
const SUBSCRIPTION = 'subscription { cepStatus(transactionId: "one") { kind } }';
const HEADERS = { 'x-trace': '7' };

type FetchOptions = NonNullable<OperationContext['fetchOptions']>;
function askByUrql(source: Source, fetchOptions: FetchOptions): () => void {
  const client = new Client({
    url: 'http://gateway',
    preferGetMethod: false,
    exchanges: [sourceExchange(source)],
    fetchOptions,
  });
  const asked = [client.query(QUERY, {}), client.subscription(SUBSCRIPTION, {})].map((results) =>
    pipe(
      results,
      subscribe(() => {}),
    ),
  );
  return () => {
    for (const { unsubscribe } of asked) unsubscribe();
  };
}

/** How an app gives headers with each library. Each asks a query, and subscribes. @returns leaves both */
const WAYS: Readonly<Record<string, (source: Source) => () => void>> = {
  'Apollo Client'(source) {
    const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
    const context = { headers: HEADERS };
    const asked = [
      client.watchQuery({ query: gql(QUERY), context }).subscribe(() => {}),
      client.subscribe({ query: gql(SUBSCRIPTION), context }).subscribe(() => {}),
    ];
    return () => {
      for (const subscription of asked) subscription.unsubscribe();
    };
  },
  urql: (source) => askByUrql(source, { headers: HEADERS }),
  'urql, by a function': (source) => askByUrql(source, () => ({ headers: HEADERS })),
};

describe.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])('over %s', (_, create) => {
  it.each(Object.keys(WAYS))(
    'the headers that an app gives %s go with its queries and its subscriptions, beside the token',
    async (way) => {
      const requests: Headers[] = [];
      const source = create({
        url: 'http://gateway/graphql',
        token: () => 'a token',
        fetch(_address, init) {
          requests.push(new Headers(init?.headers));
          return new Promise(() => {});
        },
      });
      const leave = WAYS[way]?.(source);
      await until(() => requests.length === 2);
      leave?.();
      const sent = (name: string) => requests.map((headers) => headers.get(name));
      expect(sent('accept').filter((type) => type?.includes('event-stream'))).toHaveLength(1);
      expect(sent('x-trace')).toEqual(['7', '7']);
      expect(sent('authorization')).toEqual(['Bearer a token', 'Bearer a token']);
    },
  );
});
