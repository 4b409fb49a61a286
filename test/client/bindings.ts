import { pathToFileURL } from 'node:url';
import { ApolloClient, InMemoryCache } from '@apollo/client';
import { Client, cacheExchange } from '@urql/core';
import { createElement, type ReactElement } from 'react';
import { act, create } from 'react-test-renderer';
import { Environment, RecordSource, Store as RelayStore } from 'relay-runtime';
import { WebSocket } from 'ws';
import { apolloSource, cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { type Feed, follow, type Source, type Store, typed } from '../../packages/client/src/index.ts';
import { type UseFeedOptions, useFeed } from '../../packages/client/src/react.ts';
import { nativePresence } from '../../packages/client/src/react-native.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { feedStore, type Readable } from '../../packages/client/src/svelte.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { folder } from '../helpers/packages.ts';
import type { Phone } from './phone.ts';

/** What an event is here; `payload` is as large as a test wants it. */
export interface Numbered {
  readonly id: string;
  readonly cursor: string;
}

export interface Reported {
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
  readonly phone: Phone;
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

// Quicker than an app's, so that a test finds out soon that a network is gone; slow enough for a machine with much else to do.
const HEARTBEAT = { everyMs: 1_000, withinMs: 3_000 };
const SILENT_MS = 5_000;
type Address = Pick<Place, 'url' | 'token'>;
export const socketTo = ({ url, token }: Address): Source =>
  createSocket({ url, token, heartbeat: HEARTBEAT });
/** What Node 20 needs. */
export const nodeSocketTo = ({ url, token }: Address): Source =>
  createSocket({ url, token, heartbeat: HEARTBEAT, webSocketImpl: WebSocket });
export const streamsTo = ({ url, token }: Address): Source =>
  createFetch({ url, token, silentForMs: SILENT_MS });
export const graphqlSseTo = ({ url, token }: Address): Source =>
  createEventStreams({ url, token, silentForMs: SILENT_MS });

/** Each binding of the package, as an app makes it. */
const SOURCES: Readonly<Record<string, (place: Place) => Source>> = {
  'graphql-ws': socketTo,
  fetch: streamsTo,
  'graphql-sse': graphqlSseTo,
  ws: nodeSocketTo,
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

/** Each framework's, as its page has it. */
const SCREENS: Readonly<Record<string, (place: Place) => void>> = {
  react: (place) => showInReact(place, socketTo(place)),
  // What a server has rendered is shown first.
  next: (place) => showInReact(place, streamsTo(place), { initialItems: [{ id: '0', cursor: '' }] }),
  expo: (place) =>
    showInReact({ ...place, store: slowly(place.store) }, socketTo(place), {
      presence: nativePresence(place.phone.appState, place.phone.network),
    }),
  svelte: (place) =>
    void storeOf(place).subscribe(({ status, problem }) => place.report({ status, problem })),
  vue: (place) => void showInVue(place),
};

/** A program for each way in which the pages say that the log is followed. */
export const BINDINGS: readonly string[] = [...Object.keys(SOURCES), ...Object.keys(SCREENS)];

/** Follows by a binding until the process ends. */
export function followBy(name: string, place: Place): void {
  const show = SCREENS[name];
  if (show !== undefined) {
    show(place);
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

type ScreenOptions = Pick<UseFeedOptions<Numbered, object>, 'initialItems' | 'presence'>;

function showInReact(place: Place, source: Source, options: ScreenOptions = {}): void {
  renderInReact(createElement(Screen, { place, source, options }));
}

/** Shows an element until the process ends. */
export function renderInReact(element: ReactElement): void {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  act(() => {
    create(element);
  });
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
}

interface ScreenProps {
  readonly place: Place;
  readonly source: Source;
  readonly options: ScreenOptions;
}

function Screen({ place, source, options }: ScreenProps) {
  const { status, problem } = useFeed(source, DOCUMENT, { ...options, store: place.store });
  place.report({ status, problem });
  return null;
}

const storeOf = (place: Place) => feedStore(socketTo(place), DOCUMENT, { store: place.store });

/** Vue is installed beside the other libraries of test/clients alone. */
async function showInVue(place: Place): Promise<void> {
  const module = pathToFileURL(folder('test/clients/show-in-vue.js'));
  const { showInVue: show } = (await import(module.href)) as {
    showInVue(store: Readable<Reported>, report: Place['report']): void;
  };
  show(storeOf(place), place.report);
}

/** A store as AsyncStorage is one: neither reading nor writing is done at once. */
function slowly(store: Store<Numbered>): Store<Numbered> {
  return {
    async load() {
      await turn();
      return store.load();
    },
    async save(item, cursor) {
      await turn();
      await store.save(item, cursor);
    },
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
