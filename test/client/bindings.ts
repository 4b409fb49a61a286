import { ApolloClient, InMemoryCache } from '@apollo/client';
import { Client, cacheExchange } from '@urql/core';
import { createElement } from 'react';
import { act, create } from 'react-test-renderer';
import { Environment, RecordSource, Store as RelayStore } from 'relay-runtime';
import { apolloSource, cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { type Feed, follow, type Source, type Store, typed } from '../../packages/client/src/index.ts';
import { useFeed } from '../../packages/client/src/react.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';

/** What an event is here; `payload` is as large as a test wants it. */
export interface Numbered {
  readonly id: string;
  readonly cursor: string;
}

interface Reported {
  readonly status: string;
  readonly problem: unknown;
}

/** What a binding needs in order to follow: where the graph is, and who asks. */
export interface Place {
  readonly url: string;
  readonly token: () => Promise<string>;
  readonly store: Store<Numbered>;
  /** relay-compiler's own form of {@link EVENTS}. */
  readonly compiled: object;
  report(state: Reported): void;
}

export const EVENTS = `subscription outagesEventsSubscription($after: Cursor) {
  events(after: $after) {
    __typename
    id
    cursor
    ... on StatusUpdateEvent {
      payload
    }
  }
}`;

const DOCUMENT = typed<{ readonly events: Numbered }, { readonly after: string | null }>(EVENTS);

// Quicker than an app's: a test has less time to find out that a network is gone.
const socketTo = ({ url, token }: Place) =>
  createSocket({ url, token, heartbeat: { everyMs: 1_000, withinMs: 1_000 } });
const streamsTo = ({ url, token }: Place) => createFetch({ url, token, silentForMs: 2_000 });

/** Each binding of the package, as an app makes it. */
const SOURCES: Readonly<Record<string, (place: Place) => Source>> = {
  'graphql-ws': socketTo,
  fetch: streamsTo,
  'graphql-sse': ({ url, token }) => createEventStreams({ url, token, silentForMs: 2_000 }),
  apollo: (place) =>
    apolloSource(
      new ApolloClient({ cache: new InMemoryCache(cacheOptions), link: createLink(socketTo(place)) }),
    ),
  urql: (place) =>
    urqlSource(
      new Client({
        url: place.url,
        preferGetMethod: false,
        exchanges: [cacheExchange, sourceExchange(socketTo(place))],
      }),
    ),
  relay: (place) =>
    relaySource(
      new Environment({
        network: createNetwork(streamsTo(place)),
        store: new RelayStore(new RecordSource()),
      }),
    ),
};

const REACT = 'react';

export const BINDINGS: readonly string[] = [...Object.keys(SOURCES), REACT];

/** Follows by a binding until the process ends. */
export function followBy(name: string, place: Place): void {
  if (name === REACT) {
    followInReact(place);
    return;
  }
  const source = SOURCES[name]?.(place);
  if (source === undefined) throw new Error(`there is no binding ${name}`);
  const document =
    name === 'relay'
      ? typed<{ readonly events: Numbered }, { readonly after: string | null }>(place.compiled)
      : DOCUMENT;
  void drain(follow(source, document, { store: place.store }), place);
}

async function drain(feed: Feed<Numbered>, { report }: Place): Promise<void> {
  feed.onChange(() => report(feed));
  for await (const _ of feed);
  throw new Error('a feed that nobody closes does not end');
}

function followInReact(place: Place): void {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  act(() => {
    create(createElement(Screen, { place, source: socketTo(place) }));
  });
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
}

function Screen({ place, source }: { readonly place: Place; readonly source: Source }) {
  const { status, problem } = useFeed(source, DOCUMENT, { store: place.store });
  place.report({ status, problem });
  return null;
}
