import { rm } from 'node:fs/promises';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import { Environment, type GraphQLTaggedNode, RecordSource, requestSubscription, Store } from 'relay-runtime';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipe, subscribe } from 'wonka';
import { createLink } from '../../packages/client/src/apollo.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { follow, isGap, type Source, typed } from '../../packages/client/src/index.ts';
import { createNetwork } from '../../packages/client/src/relay.ts';
import { sourceExchange } from '../../packages/client/src/urql.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { until } from '../helpers/until.ts';
import { EVENTS } from './bindings.ts';
import { prepareCompiled } from './compiled.ts';
import { type Network, startNetwork } from './network.ts';

interface Data {
  readonly events: { readonly id: string; readonly cursor: string };
}

let gateway: RunningGateway;
let network: Network;
let compiled: GraphQLTaggedNode;
let number = 0;

beforeAll(async () => {
  gateway = await startGateway({ webhooks: false, config: PATIENT });
  network = await startNetwork();
  network.route(Number(new URL(gateway.url).port));
  const prepared = await prepareCompiled();
  compiled = ((await import(prepared.compiled.documented)) as { default: GraphQLTaggedNode }).default;
  await rm(prepared.work, { recursive: true });
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await gateway.stop();
});

async function deliver(): Promise<string> {
  number += 1;
  const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
  await fetch(address, { method: 'POST', body: JSON.stringify({ id_msg: String(number) }) });
  return String(number);
}

/** How an app subscribes with each library, without `follow`. @returns leaves. */
const LIBRARIES: Readonly<
  Record<string, (source: Source, after: string, next: (id: string) => void) => () => void>
> = {
  'Apollo Client': (source, after, next) => {
    const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
    const subscription = client
      .subscribe<Data>({ query: gql(EVENTS), variables: { after } })
      .subscribe(({ data }) => data && next(data.events.id));
    return () => subscription.unsubscribe();
  },
  urql: (source, after, next) => {
    const client = new Client({
      url: network.graphql,
      preferGetMethod: false,
      exchanges: [sourceExchange(source)],
    });
    return pipe(
      client.subscription<Data>(EVENTS, { after }),
      subscribe(({ data, hasNext }) => hasNext && data && next(data.events.id)),
    ).unsubscribe;
  },
  Relay: (source, after, next) => {
    const environment = new Environment({
      network: createNetwork(source),
      store: new Store(new RecordSource()),
    });
    return requestSubscription<{ response: Data; variables: { after: string } }>(environment, {
      subscription: compiled,
      variables: { after },
      onNext: (data) => data && next(data.events.id),
    }).dispose;
  },
};

/** Every request on a connection of its own, as after a change of network: none that has died is taken from a pool. */
const agent = new Agent({ pipelining: 0 });
const unpooled: typeof fetch = (input, init) =>
  // Node's own option, which the types of the web do not have.
  fetch(input, { ...init, dispatcher: agent } as RequestInit);

const token = () => gateway.sandbox.accessToken;
/** Longer than a test may last: by itself no source finds out that its connection is dead. */
const LATE_MS = 3_600_000;
const streams = () => ({ url: network.graphql, token, fetch: unpooled, silentForMs: LATE_MS });
const SOURCES: Readonly<Record<string, () => Source>> = {
  'a socket': () =>
    createSocket({ url: network.graphql, token, heartbeat: { everyMs: LATE_MS, withinMs: LATE_MS } }),
  fetch: () => createFetch(streams()),
  'graphql-sse': () => createEventStreams(streams()),
};

describe.each(Object.keys(LIBRARIES))('a plain subscription of %s', (library) => {
  it.each(Object.keys(SOURCES))('goes on over %s where it was, however often it is cut', async (over) => {
    const source = SOURCES[over]?.();
    if (source === undefined) throw new Error('it is one of these');
    const { data } = await gateway.query('{ eventCursor }');
    const seen: string[] = [];
    const leave = LIBRARIES[library]?.(source, data.eventCursor, (id) => seen.push(id));
    const sent: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      sent.push(await deliver(), await deliver());
      await until(() => seen.length === sent.length);
      network.cut();
      sent.push(await deliver());
    }
    await until(() => seen.length === sent.length);
    expect(seen).toEqual(sent);
    leave?.();
  });
});

const FEED = typed<Data, { readonly after: string | null }>(EVENTS);

describe.each(Object.keys(SOURCES))('a feed over %s', (over) => {
  it('is told that the network is back, and leaves at once a connection that is dead', async () => {
    const source = SOURCES[over]?.();
    if (source === undefined) throw new Error('it is one of these');
    const feed = follow(source, FEED);
    const seen: string[] = [];
    void (async () => {
      for await (const event of feed) if (!isGap(event)) seen.push(event.id);
    })();
    await until(() => feed.status === 'live');
    network.halfOpen();
    const missed = await deliver();
    feed.resume();
    await until(() => seen.length > 0);
    expect(seen).toEqual([missed]);
    feed.close();
  });

  it('comes back from the background at once over a connection that something else has kept, and that has died meanwhile', async () => {
    const source = SOURCES[over]?.();
    if (source === undefined) throw new Error('it is one of these');
    const beside = follow(source, FEED);
    void beside[Symbol.asyncIterator]().next();
    await until(() => beside.status === 'live');
    const feed = follow(source, FEED);
    const seen: string[] = [];
    void (async () => {
      for await (const event of feed) if (!isGap(event)) seen.push(event.id);
    })();
    await until(() => feed.status === 'live');
    feed.suspend();
    network.halfOpen();
    const missed = await deliver();
    feed.resume();
    await until(() => seen.length > 0);
    expect(seen).toEqual([missed]);
    feed.close();
    beside.close();
  });
});
