import { readFile } from 'node:fs/promises';
import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { Client } from '@urql/core';
import fc from 'fast-check';
import { buildSchema, getNamedType, parse, print, stripIgnoredCharacters, validate } from 'graphql';
import { Agent } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipe, subscribe } from 'wonka';
import { cacheOptions, createLink } from '../../packages/client/src/apollo.ts';
import { MISSED } from '../../packages/client/src/documents.ts';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createSocket } from '../../packages/client/src/graphql-ws.ts';
import { follow, isGap, type Source, typed } from '../../packages/client/src/index.ts';
import { requestOf, resumable } from '../../packages/client/src/request.ts';
import { sourceExchange } from '../../packages/client/src/urql.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { folder } from '../helpers/packages.ts';
import { until } from '../helpers/until.ts';
import { type Network, startNetwork } from './network.ts';

let gateway: RunningGateway;
let network: Network;
let number = 0;

beforeAll(async () => {
  gateway = await startGateway({ webhooks: ['MONEY_IN'], config: PATIENT });
  network = await startNetwork();
  network.route(Number(new URL(gateway.url).port));
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await gateway.stop();
});

async function deliver(): Promise<void> {
  number += 1;
  const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
  await fetch(address, { method: 'POST', body: JSON.stringify({ id_msg: String(number) }) });
}

/** Documents as people write them who have not read how to resume. */
const DOCUMENTS: Readonly<Record<string, readonly [string, object]>> = {
  'neither `after` nor cursor': ['subscription { events { id } }', {}],
  '`after` null': ['subscription S($after: Cursor) { events(after: $after) { id cursor } }', { after: null }],
  'another variable': ['subscription S($since: Cursor) { events(after: $since) { id cursor } }', {}],
  'a cursor under another name': [
    'subscription S($after: Cursor) { events(after: $after) { id place: cursor } }',
    {},
  ],
  'an `after` that is written out': [
    'subscription S { list: events(after: null, types: [STATUS_UPDATE]) { id } }',
    {},
  ],
  fragments: ['subscription S { events { ...Numbered } } fragment Numbered on Event { id }', {}],
};

/** Every request on a connection of its own, as after a change of network. */
const agent = new Agent({ pipelining: 0 });
const unpooled: typeof fetch = (input, init) =>
  // Node's own option, which the types of the web do not have.
  fetch(input, { ...init, dispatcher: agent } as RequestInit);
const token = () => gateway.sandbox.accessToken;
const socket = () => createSocket({ url: network.graphql, token });
const streams = () => createFetch({ url: network.graphql, token, fetch: unpooled });

type Seen = (data: Readonly<Record<string, { readonly id: string }>>) => void;
/** How an app subscribes, with the variables that it knows of. @returns leaves. */
const APPS: Readonly<Record<string, (text: string, variables: object, seen: Seen) => () => void>> = {
  'Apollo Client over a socket': (text, variables, seen) => {
    const client = new ApolloClient({ cache: new InMemoryCache(cacheOptions), link: createLink(socket()) });
    const subscription = client
      .subscribe<Parameters<Seen>[0]>({ query: gql(text), variables })
      .subscribe(({ data }) => data && seen(data));
    return () => subscription.unsubscribe();
  },
  'urql over fetch': (text, variables, seen) => {
    const exchanges = [sourceExchange(streams())];
    const client = new Client({ url: network.graphql, preferGetMethod: false, exchanges });
    return pipe(
      client.subscription<Parameters<Seen>[0]>(text, variables),
      subscribe(({ data, hasNext }) => hasNext && data && seen(data)),
    ).unsubscribe;
  },
  'follow over a socket': (text, variables, seen) => followIn(socket(), text, variables, seen),
  'follow over fetch': (text, variables, seen) => followIn(streams(), text, variables, seen),
};

function followIn(source: Source, text: string, variables: object, seen: Seen): () => void {
  const document = typed<{ readonly event: { readonly id: string; readonly cursor: string } }, object>(text);
  const feed = follow(source, document, { variables });
  void (async () => {
    for await (const event of feed) if (!isGap(event)) seen({ event });
  })();
  return () => feed.close();
}

describe.each(Object.keys(APPS))('%s', (app) => {
  it.each(Object.keys(DOCUMENTS))('loses nothing over cut connections with %s', async (kind) => {
    const [text, variables] = DOCUMENTS[kind] ?? ['', {}];
    const ids: number[] = [];
    const leave = APPS[app]?.(text, variables, (data) => {
      const [event] = Object.values(data).filter((value) => typeof value === 'object');
      ids.push(Number(event?.id));
    });
    // What comes before it has begun is not its own: events come until it has shown one.
    await until(async () => {
      await deliver();
      return ids.length > 0;
    });
    for (let round = 0; round < 2; round += 1) {
      network.route(undefined);
      network.cut();
      await deliver();
      await deliver();
      network.route(Number(new URL(gateway.url).port));
      await until(() => ids.at(-1) === number);
    }
    const first = ids[0] ?? 0;
    expect(ids).toEqual(Array.from({ length: number - first + 1 }, (_, index) => first + index));
    leave?.();
  });
});

it.each([
  [
    '$owner',
    'subscription S($owner: ID) { moneyIn(ownerId: $owner) { id cursor } }',
    (id: string) => ({ owner: id }),
  ],
  [
    'a default',
    'subscription S($owner: ID = "OWNER") { moneyIn(ownerId: $owner) { id cursor } }',
    () => ({}),
  ],
  ['no variable', 'subscription S { moneyIn(ownerId: "OWNER") { id cursor } }', () => ({})],
  ['a CLABE', 'subscription S { moneyIn(clabe: "CLABE") { id cursor } }', () => ({})],
  [
    'types',
    'subscription S($kinds: [EventType!]) { events(types: $kinds) { id cursor } }',
    () => ({ kinds: 'CEP' }),
  ],
])(
  'a feed turns live whose filter is given by %s, also behind events that it does not ask for',
  async (_, text, variables) => {
    const world = await control(gateway.sandbox, 'GET', '/sandbox');
    const { data } = await gateway.query('{ eventCursor client { customers { nodes { id } } } }');
    const customer = data.client.customers.nodes.at(-1).id;
    for (let credit = 0; credit < 3; credit += 1) {
      const body = { clabe: world.accounts[0].clabe, amount: '1.00' };
      await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', body);
    }
    await until(async () => {
      const { data: now } = await gateway.query('query ($c: Cursor) { events(after: $c) { nodes { id } } }', {
        c: data.eventCursor,
      });
      return now.events.nodes.length >= 3;
    });
    const saved = { cursor: data.eventCursor as string };
    const document = typed<{ readonly moneyIn: { readonly cursor: string } }, object>(
      text.replace('OWNER', customer).replace('CLABE', world.accounts.at(-1).clabe),
    );
    const store = { load: () => saved, save() {} };
    const feed = follow(socket(), document, { variables: variables(customer), store });
    void (async () => {
      for await (const _event of feed);
    })();
    await until(() => feed.status === 'live');
    expect(feed.missing).toBe(0);
    feed.close();
  },
);

it.each([
  [
    'another field that is called cursor',
    'subscription { events { cursor: id } }',
    /calls another field `cursor`/,
  ],
  [
    'a subscription without a place',
    'subscription { cepStatus(transactionId: "x") { kind } }',
    /no `cursor`|must be a UUID/,
  ],
])('follow refuses %s with a sentence', async (_, text, sentence) => {
  const feed = follow(socket(), typed<{ readonly events: { readonly cursor: string } }, object>(text));
  await expect(async () => {
    for await (const _event of feed);
  }).rejects.toThrow(sentence);
});

it('what is added makes a valid document, wherever field, variables, arguments and fragments stand', async () => {
  const schema = buildSchema(await readFile(folder('schema.graphql'), 'utf8'));
  const some = <T>(...values: readonly T[]) => fc.constantFrom(...values);
  const parts = fc.record({
    name: some('', 'Name', 'subscription', 'on'),
    field: some('events', 'moneyIn'),
    alias: some('', 'list: ', 'events: ', 'after: '),
    after: some('', 'after: $after', 'after: $since', 'after: null', 'after: "a \\" { b"', 'after: """x"""'),
    filter: some('', 'FILTER', '# a comment with { and (\n FILTER'),
    selection: some(
      'id',
      'cursor',
      'place: cursor',
      'id cursor',
      '... on MoneyInEvent { cursor }',
      'cursor @include(if: true)',
      '__typename',
    ),
    inFragment: fc.boolean(),
    directive: some('', '@include(if: true)', '@skip(if: false)'),
    before: some('', 'query Other { eventCursor } ', 'fragment Unused on Client { id } '),
  });
  fc.assert(
    fc.property(parts, ({ name, field, alias, after, filter, selection, inFragment, directive, before }) => {
      const given = filter.replace('FILTER', field === 'events' ? 'types: [CEP, MONEY_IN]' : 'ownerId: "id"');
      const variable = /\$(\w+)/.exec(after)?.[1];
      const wanted = `${variable ? `($${variable}: Cursor)` : ''}`;
      const list = [given, after].filter((part) => part !== '').join(', ');
      const root = `${alias}${field}${list === '' ? '' : `(${list})`} ${directive} { ${selection} }`;
      const text = inFragment
        ? `${before}subscription ${name || (wanted && 'N')}${wanted} { ...Root } fragment Root on Subscription { ${root} }`
        : `${before}subscription ${name || (wanted && 'N')}${wanted} { ${root} }`;
      const log = resumable(text);
      const document = parse(log?.text ?? '');
      // The schema forbids the conditions that it need not, and what was there before.
      const errors = validate(schema, document).filter(
        ({ message }) =>
          !/is never used|must not use `@|conditional|must be the only|single root|anonymous/i.test(message),
      );
      expect(
        errors.map(({ message }) => message),
        log?.text,
      ).toEqual([]);
      expect(log?.after).toBe(variable ?? 'pasarelaAfter');
      expect(log?.start).toBe(after.includes('"a') ? 'a " { b' : after.includes('"x') ? 'x' : undefined);
      // A build may take out each space and comma that a document can do without.
      const bare = resumable(stripIgnoredCharacters(text))?.text ?? '';
      expect(print(parse(bare)), bare).toBe(print(document));
      // What has all that it needs is left as it is.
      expect(resumable(log?.text ?? '')).toMatchObject({ text: log?.text, isChanged: false });
      expect(requestOf(text, { after: 'here' }).variables[log?.after ?? '']).toBe('here');
    }),
    { numRuns: 1_000 },
  );
});

it.each([
  ['that is written out', 'subscription { events(after: "C0") { id cursor } }', 'pasarelaAfter'],
  ['of a variable', 'subscription S($since: Cursor) { events(after: $since) { id cursor } }', 'since'],
])('a place %s gives way to the one at which the stream is taken up', (_, text, variable) => {
  expect(requestOf(text, { [variable]: 'C9' }).variables[variable]).toBe('C9');
  // A feed's own comes first.
  expect(requestOf(text, { [variable]: 'C9', after: 'C8' }).variables[variable]).toBe('C8');
});

it('every subscription of the graph that takes `after` can be resumed', async () => {
  const schema = buildSchema(await readFile(folder('schema.graphql'), 'utf8'));
  const fields = Object.values(schema.getSubscriptionType()?.getFields() ?? {});
  const logs = fields.filter(({ args }) =>
    args.some(({ name, type }) => name === 'after' && getNamedType(type).name === 'Cursor'),
  );
  expect(logs.length).toBeGreaterThan(0);
  for (const { name } of logs) expect(resumable(`subscription { ${name} { id } }`), name).toBeDefined();
});

it('every filter of a subscription to the log is one of its pages, and is asked for where missed events are counted', async () => {
  const schema = buildSchema(await readFile(folder('schema.graphql'), 'utf8'));
  const counted = String(MISSED);
  expect(validate(schema, parse(counted))).toEqual([]);
  const page = schema.getQueryType()?.getFields()['events']?.args ?? [];
  const subscriptions = Object.values(schema.getSubscriptionType()?.getFields() ?? {});
  const logs = subscriptions.filter(({ args }) => args.some(({ name }) => name === 'after'));
  expect(logs.length).toBeGreaterThan(1);
  for (const { name: field, args } of logs) {
    const filters = args.filter(({ name }) => name !== 'after');
    for (const { name, type } of filters) {
      const ofPage = page.find((argument) => argument.name === name);
      expect(`${field}(${name}:) ${ofPage?.type}`).toBe(`${field}(${name}:) ${type}`);
      expect(counted).toMatch(new RegExp(`\\b${name}: \\$${name}\\b`));
    }
    const defined = filters.map(({ name, type }) => `$${name}: ${type}`).join(' ');
    const given = filters.map(({ name }) => `${name}: $${name}`).join(' ');
    const values = Object.fromEntries(filters.map(({ name }) => [name, [name]]));
    const text = `subscription (${defined}) { ${field}(${given}) { id } }`;
    expect(validate(schema, parse(text))).toEqual([]);
    expect(resumable(text)?.asked(values)).toMatchObject(values);
  }
});
