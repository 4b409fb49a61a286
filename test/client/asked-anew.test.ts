import { ApolloClient, InMemoryCache } from '@apollo/client';
import { Client, cacheExchange } from '@urql/core';
import { Environment, RecordSource, Store } from 'relay-runtime';
import { expect, it } from 'vitest';
import { apolloSource, cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import type { Source } from '../../packages/client/src/index.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { until } from '../helpers/until.ts';

/** Each library with the cache that an app has. */
const LIBRARIES: Readonly<Record<string, (source: Source) => Source>> = {
  'Apollo Client': (beneath) =>
    apolloSource(new ApolloClient({ cache: new InMemoryCache(cacheOptions), link: createLink(beneath) })),
  urql: (beneath) =>
    urqlSource(
      new Client({
        url: 'http://gateway',
        preferGetMethod: false,
        exchanges: [cacheExchange, sourceExchange(beneath)],
      }),
    ),
  Relay: (beneath) =>
    relaySource(new Environment({ network: createNetwork(beneath), store: new Store(new RecordSource()) })),
};

it.each(Object.keys(LIBRARIES))(
  'what became of a payment is asked of the gateway each time over %s, and never of its cache',
  async (library) => {
    const fake = createFakeSource();
    const source = LIBRARIES[library]?.(fake) ?? fake;
    for (const state of ['PENDING', 'DONE']) {
      const answer = { data: { payment: { __typename: 'Payment', id: 'p', state } } };
      const asked = source.query('query Q { payment(idempotencyKey: "k") { id state } }', {});
      let isAnswered = false;
      void asked.then(() => {
        isAnswered = true;
      });
      await until(() => isAnswered || fake.calls.length > 0);
      expect(fake.calls).toHaveLength(1);
      fake.calls[0]?.answer(answer);
      expect(await asked).toMatchObject({ data: { payment: { state } } });
    }
  },
);
