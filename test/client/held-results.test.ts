import { ApolloClient, ApolloLink, InMemoryCache } from '@apollo/client';
import { ErrorLink } from '@apollo/client/link/error';
import { Client, type OperationResult } from '@urql/core';
import { Environment, RecordSource, Store } from 'relay-runtime';
import { from, mergeMap, type OperatorFunction, filter as rxFilter, map as rxMap } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { filter, fromArray, fromPromise, map, type Operator, mergeMap as wonkaMergeMap } from 'wonka';
import { apolloSource, createLink } from '../../packages/client/src/apollo.ts';
import { follow, type Source, typed, watch } from '../../packages/client/src/index.ts';
import { createNetwork, relaySource } from '../../packages/client/src/relay.ts';
import { createFakeSource, type FakeSource } from '../../packages/client/src/testing.ts';
import { sourceExchange, urqlSource } from '../../packages/client/src/urql.ts';
import { until } from '../helpers/until.ts';

/** An app's own link, exchange or scheduler may hold the results of a feed, drop one, or make two of it. */

const EVENTS = 'subscription Events($after: Cursor) { events(after: $after) { __typename id cursor } }';
const scalar = (name: string) => ({ kind: 'ScalarField', name, alias: null, args: null, storageKey: null });
const definitions = [{ kind: 'LocalArgument', name: 'after', defaultValue: null }];
const selections = [
  {
    kind: 'LinkedField',
    name: 'events',
    alias: null,
    args: [{ kind: 'Variable', name: 'after', variableName: 'after' }],
    concreteType: null,
    plural: false,
    selections: ['__typename', 'id', 'cursor'].map(scalar),
    storageKey: null,
  },
];
/** As relay-compiler writes it. */
const COMPILED = {
  kind: 'Request',
  fragment: {
    kind: 'Fragment',
    name: 'Events',
    type: 'Subscription',
    abstractKey: null,
    metadata: null,
    argumentDefinitions: definitions,
    selections,
  },
  operation: { kind: 'Operation', name: 'Events', argumentDefinitions: definitions, selections },
  params: {
    cacheID: 'events',
    id: null,
    metadata: {},
    name: 'Events',
    operationKind: 'subscription',
    text: EVENTS,
  },
};

/** Each lets a result go that is held. */
type Holds = (() => void)[];
type Way = (fake: FakeSource, holds: Holds) => Source;
type OfApollo = OperatorFunction<ApolloLink.Result, ApolloLink.Result>;
type OfUrql = Operator<OperationResult, OperationResult>;

const apollo = (cache: InMemoryCache, ...links: readonly ApolloLink[]) =>
  apolloSource(new ApolloClient({ cache, link: ApolloLink.from([...links]) }));
const overApollo =
  (operator: (holds: Holds) => OfApollo): Way =>
  (fake, holds) => {
    const own = new ApolloLink((operation, forward) => forward(operation).pipe(operator(holds)));
    return apollo(new InMemoryCache(), own, createLink(fake));
  };
const overUrql =
  (operator: (holds: Holds) => OfUrql): Way =>
  (fake, holds) =>
    urqlSource(
      new Client({
        url: 'http://gateway',
        preferGetMethod: false,
        exchanges: [
          ({ forward }) =>
            (operations) =>
              operator(holds)(forward(operations)),
          sourceExchange(fake),
        ],
      }),
    );
const held = <Result>(holds: Holds, result: Result): Promise<Result> =>
  new Promise((resolve) => {
    holds.push(() => resolve(result));
  });

const APOLLO = overApollo((holds) => mergeMap((result) => held(holds, result)));
const URQL = overUrql((holds) => wonkaMergeMap((result) => fromPromise(held(holds, result))));
const rebuilt = ({ extensions: _, ...result }: OperationResult): OperationResult => ({
  ...result,
  data: result.data && { ...result.data },
});
const copied = ({ data, extensions = {}, ...result }: OperationResult): OperationResult => ({
  ...result,
  data: structuredClone(data),
  extensions: structuredClone(extensions),
});
const HOLDING: Readonly<Record<string, Way>> = {
  'Apollo Client': APOLLO,
  'Apollo Client, whose link copies results': overApollo((holds) =>
    mergeMap((result) => held(holds, structuredClone(result))),
  ),
  'Apollo Client, whose link builds results anew': overApollo((holds) =>
    mergeMap(({ data, errors }) => held(holds, { data, ...(errors && { errors }) } as ApolloLink.Result)),
  ),
  urql: URQL,
  'urql, whose exchange copies results': overUrql((holds) =>
    wonkaMergeMap((result) => fromPromise(held(holds, copied(result)))),
  ),
  'urql, whose exchange builds results anew': overUrql((holds) =>
    wonkaMergeMap((result) => fromPromise(held(holds, rebuilt(result)))),
  ),
  Relay: (fake, holds) =>
    relaySource(
      new Environment({
        network: createNetwork(fake),
        store: new Store(new RecordSource()),
        scheduler: {
          schedule: (task) => `${holds.push(task)}`,
          cancel(place) {
            holds[Number(place) - 1] = () => {};
          },
        },
      }),
    ),
};

const ERRORS = [{ message: 'Not yours.', path: ['events', 'transaction'] }];
const event = (cursor: string, errors?: typeof ERRORS) => ({
  data: { events: { __typename: 'CepEvent', id: cursor, cursor } },
  ...(errors && { errors }),
});

function begin(way: Way | undefined) {
  if (way === undefined) throw new Error('there is no such library');
  const fake = createFakeSource();
  const holds: Holds = [];
  const saved: string[] = [];
  const seen: string[] = [];
  const told: string[] = [];
  const source = way(fake, holds);
  const document = typed<{ readonly events: { readonly cursor: string } }, { readonly after: string | null }>(
    way === HOLDING['Relay'] ? COMPILED : EVENTS,
  );
  const feed = follow(source, document, {
    store: { load: () => ({ cursor: 'start' }), save: (_, cursor) => void saved.push(cursor) },
    onErrors: ([problem], { cursor }) => told.push(`${cursor} ${problem?.message}`),
  });
  void (async () => {
    for await (const { cursor } of feed) seen.push(cursor);
  })();
  onTestFinished(() => feed.close());
  const opened = async () => {
    const subscription = await until(() => fake.subscriptions[0]);
    subscription.sink.opened();
    return subscription;
  };
  return { fake, feed, holds, saved, seen, told, opened };
}

describe.each(Object.keys(HOLDING))('over %s, which holds results', (library) => {
  it('a feed keeps no place before an event that is still held, and asks for it again', async () => {
    const { fake, feed, holds, saved, seen, opened } = begin(HOLDING[library]);
    const { sink } = await opened();
    sink.next(event('a'));
    sink.bookmark('behind a');
    await until(() => holds.length === 1);
    feed.suspend();
    await until(() => fake.subscriptions.length === 0);
    feed.resume();
    const again = await opened();
    expect([again.variables['after'], saved]).toEqual(['start', []]);
    holds[0]?.();
    again.sink.next(event('a'));
    again.sink.bookmark('behind a');
    await until(() => holds.length === 2);
    expect([feed.status, saved, seen]).toEqual(['catching up', [], []]);
    holds[1]?.();
    await until(() => saved.length === 2);
    expect([feed.status, saved, seen]).toEqual(['live', ['a', 'behind a'], ['a']]);
  });

  it.each(['a', 'b'])('what the gateway could not give of event %s is told of that one', async (of) => {
    const { holds, seen, told, opened } = begin(HOLDING[library]);
    const { sink } = await opened();
    for (const cursor of ['a', 'b']) sink.next(event(cursor, cursor === of ? ERRORS : undefined));
    await until(() => holds.length === 2);
    for (const release of holds) release();
    await until(() => seen.length === 2);
    expect([seen, told]).toEqual([['a', 'b'], [`${of} Not yours.`]]);
  });
});

it('over Apollo Client, a connection that breaks while an event is held loses none', async () => {
  const { fake, holds, saved, opened } = begin(APOLLO);
  const { sink } = await opened();
  sink.next(event('a'));
  sink.bookmark('behind a');
  await until(() => holds.length === 1);
  sink.ended(new Error('The network is gone.'));
  const again = await until(() => fake.subscriptions[0]);
  expect([again.variables['after'], saved]).toEqual(['start', []]);
});

const isFirst = (data: unknown) => (data as { events: { cursor: string } }).events.cursor === 'a';
const PASSING: Readonly<Record<string, { held: Way; dropping: Way; doubling: Way }>> = {
  'Apollo Client': {
    held: APOLLO,
    dropping: overApollo(() => rxFilter(({ data }) => !isFirst(data))),
    doubling: overApollo(() => mergeMap((result) => from([result, result]))),
  },
  urql: {
    held: URQL,
    dropping: overUrql(() => filter(({ data }) => !isFirst(data))),
    doubling: overUrql(() => wonkaMergeMap((result) => fromArray([result, result]))),
  },
};

describe.each(Object.keys(PASSING))('over %s', (library) => {
  it('an event that another overtakes comes before that one, once', async () => {
    const { holds, saved, seen, opened } = begin(PASSING[library]?.held);
    const { sink } = await opened();
    for (const cursor of ['a', 'b']) sink.next(event(cursor));
    sink.bookmark('behind b');
    await until(() => holds.length === 2);
    for (const release of holds.toReversed()) {
      release();
      await until(() => saved.length === 3);
    }
    sink.next(event('c'));
    await until(() => holds.length === 3);
    holds[2]?.();
    await until(() => seen.length === 3);
    expect([seen, saved]).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b', 'behind b', 'c'],
    ]);
  });

  it('an event that is dropped comes with the next one', async () => {
    const { saved, seen, opened } = begin(PASSING[library]?.dropping);
    const { sink } = await opened();
    sink.next(event('a'));
    sink.bookmark('behind a');
    sink.next(event('b'));
    await until(() => seen.length === 2);
    expect(saved).toEqual(['a', 'behind a', 'b']);
  });

  it('an event of which two are made comes once', async () => {
    const { saved, seen, opened } = begin(PASSING[library]?.doubling);
    const { sink } = await opened();
    for (const cursor of ['a', 'b']) sink.next(event(cursor));
    sink.bookmark('behind b');
    await until(() => saved.includes('behind b'));
    expect(seen).toEqual(['a', 'b']);
  });
});

it.each([
  [
    'Apollo Client',
    overApollo(() => rxMap(({ data, errors }) => ({ data, ...(errors && { errors }) }) as ApolloLink.Result)),
  ],
  ['urql', overUrql(() => map(rebuilt))],
] as const)(
  'over %s, whose results are built anew, the last event of a stream comes once',
  async (_, way) => {
    const { seen, opened } = begin(way);
    const { sink } = await opened();
    for (const cursor of ['a', 'b']) sink.next(event(cursor));
    sink.ended();
    const again = await opened();
    expect(again.variables['after']).toBe('b');
    again.sink.next(event('c'));
    await until(() => seen.includes('c'));
    expect(seen).toEqual(['a', 'b', 'c']);
  },
);

it('over Apollo Client, a refusal because of which a link subscribes anew does not end the next stream', async () => {
  const retry = new ErrorLink(({ operation, forward }) => forward(operation));
  const { fake, saved, opened } = begin((beneath) => apollo(new InMemoryCache(), retry, createLink(beneath)));
  const first = await opened();
  first.sink.next({ errors: [{ message: 'An old token.', extensions: { code: 'UNAUTHENTICATED' } }] });
  first.sink.ended();
  const second = await until(() => fake.subscriptions[0]);
  second.sink.next(event('a'));
  second.sink.bookmark('behind a');
  await until(() => saved.length === 2);
  expect([saved, fake.subscriptions]).toEqual([['a', 'behind a'], [second]]);
});

const EVENT = typed<{ readonly events: { readonly cursor: string } }, { readonly after: string | null }>(
  EVENTS,
);
const RECEIPT = typed<{ readonly cepStatus: { readonly status: string } }>(
  'subscription Receipt { cepStatus(transactionId: "one") { __typename status } }',
);
const receipt = (status: string) => ({ data: { cepStatus: { __typename: 'CepStatusUpdate', status } } });
const isFailed = (data: unknown) =>
  (data as ReturnType<typeof receipt>['data']).cepStatus.status === 'FAILED';
const COPYING: Readonly<Record<string, Way>> = {
  'Apollo Client, whose link copies results': overApollo(() => rxMap((result) => structuredClone(result))),
  'urql, whose exchange copies results': overUrql(() => map(copied)),
};

it.each(
  Object.entries({
    ...COPYING,
    'Apollo Client, whose link drops the last result': overApollo(() =>
      rxFilter(({ data }) => !isFailed(data)),
    ),
  }),
)('over %s, what is watched ends once its final state was shown', async (_, way) => {
  const fake = createFakeSource();
  const watched = watch(way(fake, []), RECEIPT, {}, () => () => {});
  const seen = (async () => {
    const states: string[] = [];
    for await (const { status } of watched) states.push(status);
    return states;
  })();
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.opened();
  for (const status of ['PENDING', 'FAILED']) sink.next(receipt(status));
  sink.ended();
  expect(await seen).toEqual(['PENDING', 'FAILED']);
});

it.each(Object.entries(COPYING))('over %s, a refusal ends a feed', async (_, way) => {
  const fake = createFakeSource();
  const store = { load: () => ({ cursor: 'start' }), save() {} };
  const feed = follow(way(fake, []), EVENT, { store, presence: () => () => {} });
  const next = expect(feed[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'FORBIDDEN' });
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.next({ errors: [{ message: 'No.', extensions: { code: 'FORBIDDEN' } }] });
  sink.ended();
  await next;
});

it.each(Object.entries({ 'Apollo Client': APOLLO, urql: URQL }))(
  'over %s, a subscription that is left hands on nothing of what is held',
  async (_, way) => {
    const fake = createFakeSource();
    const holds: Holds = [];
    const told: unknown[] = [];
    const tell = (value: unknown) => void told.push(value);
    const sink = { opened() {}, next: tell, bookmark: tell, ended: tell };
    const leave = way(fake, holds).subscribe(EVENT, { after: 'start' }, sink);
    const subscription = await until(() => fake.subscriptions[0]);
    subscription.sink.next(event('a'));
    subscription.sink.bookmark('behind a');
    await until(() => holds.length === 1);
    leave();
    holds[0]?.();
    await until(() => fake.subscriptions.length === 0);
    expect(told).toEqual([]);
  },
);
