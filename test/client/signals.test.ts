import { getEventListeners } from 'node:events';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import { Environment, RecordSource, Store } from 'relay-runtime';
import { describe, expect, it, vi } from 'vitest';
import { apolloSource, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import type { Source } from '../../packages/client/src/index.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { createFakeGateway, createFakeSource } from '../../packages/client/src/testing.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';

const URL = 'http://127.0.0.1:9/graphql';
const QUERY = 'query Q { eventCursor }';
const MUTATION = 'mutation M { pay { __typename } }';

const apolloOf = (source: Source) =>
  new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
const LIBRARIES: Readonly<Record<string, (beneath: Source) => Source>> = {
  'Apollo Client': (beneath) => apolloSource(apolloOf(beneath)),
  'Apollo’s own query': (beneath) => ({
    ...beneath,
    async query(document, _variables, signal) {
      const context = { fetchOptions: { signal }, queryDeduplication: false };
      const { data } = await apolloOf(beneath).query({ query: gql(String(document)), context });
      return { data: data as never };
    },
  }),
  urql: (beneath) =>
    urqlSource(new Client({ url: URL, preferGetMethod: false, exchanges: [sourceExchange(beneath)] })),
  Relay: (beneath) =>
    relaySource(new Environment({ network: createNetwork(beneath), store: new Store(new RecordSource()) })),
};

describe.each(Object.keys(LIBRARIES))('a query over %s', (library) => {
  const over = (beneath: Source): Source => LIBRARIES[library]?.(beneath) ?? beneath;

  it('whose caller has left before it is asked sends nothing', async () => {
    const fake = createFakeSource();
    const asked = over(fake).query(QUERY, {}, AbortSignal.abort(new Error('left before')));
    await expect(asked).rejects.toThrow('left before');
    expect(fake.calls).toEqual([]);
  });

  it('whose caller leaves is given up beneath', async () => {
    const fake = createFakeSource();
    const leaving = new AbortController();
    const asked = over(fake).query(QUERY, {}, leaving.signal);
    const failed = expect(asked).rejects.toThrow('left');
    await until(() => fake.calls.length > 0);
    leaving.abort(new Error('left'));
    await failed;
    expect(fake.calls).toEqual([]);
  });

  it('whose caller leaves by a signal without a reason, as some on React Native are, rejects with an error', async () => {
    const fake = createFakeSource();
    const leaving = new AbortController();
    Object.defineProperty(leaving.signal, 'reason', { value: undefined });
    const asked = over(fake).query(QUERY, {}, leaving.signal);
    const failed = expect(asked).rejects.toBeInstanceOf(Error);
    await until(() => fake.calls.length > 0);
    leaving.abort();
    await failed;
  });

  it('leaves nothing behind on a signal that goes on', async () => {
    const fake = createFakeSource();
    const page = new AbortController();
    for (const end of ['answer', 'lose'] as const) {
      const asked = over(fake).query(QUERY, {}, page.signal);
      const ended = end === 'answer' ? expect(asked).resolves.toBeDefined() : expect(asked).rejects.toThrow();
      await until(() => fake.calls.length > 0);
      fake.calls[0]?.[end]({ data: { eventCursor: 'a cursor' } } as never);
      await ended;
      expect(getEventListeners(page.signal, 'abort')).toEqual([]);
    }
  });
});

it.each(Object.keys(LIBRARIES).filter((library) => library !== 'Apollo’s own query'))(
  'a mutation over %s whose caller leaves is given up beneath',
  async (library) => {
    let beneath: AbortSignal | undefined;
    const source: Source = {
      ...createFakeSource(),
      query: (_document, _variables, signal) =>
        new Promise((_, reject) => {
          beneath = signal;
          signal?.addEventListener('abort', () => reject(signal.reason));
        }),
    };
    const leaving = new AbortController();
    const asked = (LIBRARIES[library]?.(source) ?? source).query(MUTATION, {}, leaving.signal);
    const failed = expect(asked).rejects.toThrow('left');
    await until(() => beneath !== undefined);
    leaving.abort(new Error('left'));
    await failed;
    await until(() => beneath?.aborted);
  },
);

it('a query over HTTP and over a socket leaves nothing behind on a signal that goes on', async () => {
  await using gateway = await startGateway({ webhooks: false, config: PATIENT });
  const options = { url: gateway.graphql, token: () => gateway.sandbox.accessToken };
  const page = new AbortController();
  const socket = createSocket(options);
  for (const source of [createFetch(options), createEventStreams(options), socket]) {
    for (const document of [QUERY, 'query { nothing }']) await source.query(document, {}, page.signal);
    expect(getEventListeners(page.signal, 'abort')).toEqual([]);
  }
  socket.close();
});

it('a caller who has left before costs no token, no request and no connection', async () => {
  const token = vi.fn(() => 'a token');
  const fetch = vi.fn();
  const opened = vi.fn();
  class Opened extends EventTarget {
    constructor() {
      super();
      opened();
    }
  }
  const gateway = createFakeGateway();
  gateway.onCall = opened;
  const sources = [
    // As much of one as is needed to see that none is made.
    createSocket({ url: URL, token, webSocketImpl: Opened as unknown as typeof WebSocket }),
    createFetch({ url: URL, token, fetch }),
    createEventStreams({ url: URL, token, fetch }),
    createFakeSource(),
    gateway.connect(),
  ];
  for (const source of sources) {
    const asked = source.query(QUERY, {}, AbortSignal.abort(new Error('left before')));
    await expect(asked).rejects.toThrow('left before');
  }
  for (const used of [token, fetch, opened]) expect(used).not.toHaveBeenCalled();
});
