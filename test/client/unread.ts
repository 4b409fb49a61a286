import { pathToFileURL } from 'node:url';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { useSubscription } from '@apollo/client/react';
import { Client } from '@urql/core';
import { createElement } from 'react';
import { Environment, type GraphQLTaggedNode, RecordSource, requestSubscription, Store } from 'relay-runtime';
import { pipe, subscribe } from 'wonka';
import { createLink } from '../../packages/client/src/apollo.ts';
import {
  type Feed,
  follow,
  type Gap,
  isGap,
  memoryStore,
  type Source,
  typed,
} from '../../packages/client/src/index.ts';
import { type UseFeedOptions, useFeed } from '../../packages/client/src/react.ts';
import { createNetwork } from '../../packages/client/src/relay.ts';
import { feedStore } from '../../packages/client/src/svelte.ts';
import { sourceExchange } from '../../packages/client/src/urql.ts';
import { folder } from '../helpers/packages.ts';
import {
  graphqlSseTo,
  type Numbered,
  nodeSocketTo,
  type Place,
  renderInReact,
  socketTo,
  streamsTo,
} from './bindings.ts';

/** A program that keeps nothing between its starts, and shows what it is told. */
export interface Reader extends Pick<Place, 'url' | 'token' | 'report'> {
  /** relay-compiler's own form of {@link UNREAD_RELAY}. */
  readonly compiled: object;
  /** It shows an event. */
  shows(id: string): void;
  /** It is told that events are missing. */
  isToldOfGap(reason: string): void;
}

// No place in the log, no cursor, no name: as somebody writes it who has read no page of the package.
const SELECTION = '{ events { id ... on StatusUpdateEvent { payload } } }';
const UNREAD = `subscription ${SELECTION}`;
export const UNREAD_RELAY = `subscription unreadEventsSubscription ${SELECTION}`;

interface Data {
  readonly events: Numbered;
}

/** What each library's user writes without reading. */
const PROGRAMS: Readonly<Record<string, (reader: Reader) => void>> = {
  'graphql-ws': (reader) => void iterate(reader, socketTo(reader)),
  fetch: (reader) => void iterate(reader, streamsTo(reader)),
  'graphql-sse': (reader) => void iterate(reader, graphqlSseTo(reader)),
  apollo: (reader) => {
    apolloOf(reader)
      .subscribe<Data>({ query: gql(UNREAD) })
      .subscribe(({ data, error }) => hear(reader, data, error));
  },
  'apollo hook': (reader) => renderInReact(createElement(ApolloScreen, { reader, client: apolloOf(reader) })),
  urql: (reader) => {
    const exchanges = [sourceExchange(watched(reader, socketTo(reader)))];
    const client = new Client({ url: reader.url, preferGetMethod: false, exchanges });
    pipe(
      client.subscription<Data>(UNREAD, {}),
      // Beside an error urql repeats the data of the result before.
      subscribe(({ data, error }) =>
        error ? hear(reader, undefined, error) : hear(reader, data, undefined),
      ),
    );
  },
  relay: subscribeWithRelay,
  // Plain Node, where it has no WebSocket.
  ws: (reader) => void iterate(reader, nodeSocketTo(reader)),
  react: (reader) => renderInReact(createElement(Screen, { reader, source: socketTo(reader), options: {} })),
  next: (reader) => {
    const options = { initialItems: [{ id: '0', cursor: '' }] };
    renderInReact(createElement(Screen, { reader, source: streamsTo(reader), options }));
  },
  // A phone tells of itself where it is asked to: nobody has asked.
  expo: (reader) => {
    const options = { presence: () => () => {} };
    renderInReact(createElement(Screen, { reader, source: socketTo(reader), options }));
  },
  svelte: followInStore,
  vue: (reader) => void followInVue(reader),
};

export const UNREAD_PROGRAMS: readonly string[] = Object.keys(PROGRAMS).map((name) => `${name}, unread`);

/** Runs one of {@link UNREAD_PROGRAMS} until the process ends. */
export function runUnread(name: string, reader: Reader): void {
  PROGRAMS[name.replace(', unread', '')]?.(reader);
}

const DOCUMENT = typed<Data, object>(UNREAD);
type Item = Numbered | Gap<Numbered>;

function show(reader: Reader, item: Item): void {
  if (isGap(item)) reader.isToldOfGap(item.reason);
  else reader.shows(item.id);
}

async function iterate(reader: Reader, source: Source): Promise<void> {
  const feed = follow(source, DOCUMENT);
  feed.onChange(() => reader.report(feed));
  for await (const item of feed) show(reader, item);
}

function followInStore(reader: Reader): void {
  let last: Item | undefined;
  feedStore(socketTo(reader), DOCUMENT).subscribe(({ items, status, problem }) => {
    reader.report({ status, problem });
    if (items[0] !== undefined && items[0] !== last) show(reader, items[0]);
    last = items[0];
  });
}

/** A feed that a component begins by itself, once it is mounted. Vue is installed beside the other libraries of test/clients alone. */
async function followInVue(reader: Reader): Promise<void> {
  const module = pathToFileURL(folder('test/clients/show-in-vue.js'));
  const { iterateInVue } = (await import(module.href)) as {
    iterateInVue(feed: Feed<Numbered>, report: Reader['report'], show: (item: Item) => void): void;
  };
  iterateInVue(follow(socketTo(reader), DOCUMENT), reader.report, (item) => show(reader, item));
}

/** A plain subscription has no status: a test hears of its connection's end, and that it is back by the next event. */
function watched({ report }: Reader, source: Source): Source {
  return {
    ...source,
    subscribe: (document, variables, sink, details) =>
      source.subscribe(
        document,
        variables,
        {
          ...sink,
          next(answer) {
            // Over an event stream a refusal is the last result.
            if (answer.data == null) report({ status: 'offline', problem: answer.errors?.[0]?.message });
            sink.next(answer);
          },
          ended(problem) {
            report({ status: 'offline', problem });
            sink.ended(problem);
          },
        },
        details,
      ),
  };
}

function hear(reader: Reader, data: Data | null | undefined, error: Error | undefined): void {
  if (error !== undefined) reader.isToldOfGap(error.message);
  if (!data) return;
  reader.shows(data.events.id);
  reader.report({ status: 'live', problem: undefined });
}

const apolloOf = (reader: Reader) =>
  new ApolloClient({
    cache: new InMemoryCache(),
    link: createLink(watched(reader, socketTo(reader))),
  });

function ApolloScreen({ reader, client }: { readonly reader: Reader; readonly client: ApolloClient }) {
  useSubscription<Data>(gql(UNREAD), {
    client,
    onData: ({ data: { data } }) => hear(reader, data, undefined),
    onError: (error) => hear(reader, undefined, error),
  });
  return null;
}

/** Relay ends a subscription on any error: its user subscribes again. */
function subscribeWithRelay(reader: Reader): void {
  const network = createNetwork(watched(reader, streamsTo(reader)));
  const environment = new Environment({ network, store: new Store(new RecordSource()) });
  const again = () => {
    requestSubscription<{ response: Data; variables: object }>(environment, {
      // A compiled document, as Relay's tag leaves it.
      subscription: reader.compiled as GraphQLTaggedNode,
      variables: {},
      onNext: (data) => hear(reader, data, undefined),
      onError(error) {
        hear(reader, undefined, error);
        again();
      },
    });
  };
  again();
}

interface ScreenProps {
  readonly reader: Reader;
  readonly source: Source;
  readonly options: Pick<UseFeedOptions<Numbered, object>, 'initialItems' | 'presence'>;
}

function Screen({ reader, source, options }: ScreenProps) {
  const { status, problem } = useFeed(source, DOCUMENT, { ...options, store: storeOf(reader) });
  reader.report({ status, problem });
  return null;
}

const stores = new WeakMap<Reader, ReturnType<typeof memoryStore<Numbered>>>();

/** A store in memory, which shows what it is given: a screen draws the last of what comes at once, and this test reads all. */
function storeOf(reader: Reader) {
  const known = stores.get(reader);
  if (known !== undefined) return known;
  const memory = memoryStore<Numbered>();
  const store: typeof memory = {
    load: () => memory.load(),
    async save(item, cursor) {
      await memory.save(item, cursor);
      if (item !== undefined) show(reader, item);
    },
  };
  stores.set(reader, store);
  return store;
}
