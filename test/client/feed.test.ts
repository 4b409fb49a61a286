import { expect, it } from 'vitest';
import { createFetch } from '../../packages/client/src/fetch.ts';
import { createEventStreams } from '../../packages/client/src/graphql-sse.ts';
import {
  type Answer,
  follow,
  isGap,
  memoryStore,
  type Present,
  typed,
} from '../../packages/client/src/index.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

type Data = { readonly events: { readonly cursor: string } };
const DOCUMENT = typed<Data, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { cursor } }',
);

/** A feed that is read to its end, over a source that the test answers. */
function startFeed(save: () => void | Promise<void> = () => undefined) {
  const source = createFakeSource();
  let present: Present | undefined;
  const feed = follow(source, DOCUMENT, {
    store: { load: () => ({ cursor: 'start' }), save },
    presence: (given) => {
      present = given;
      return () => undefined;
    },
  });
  const seen: string[] = [];
  const done = (async () => {
    for await (const { cursor } of feed) seen.push(cursor);
  })();
  return { source, feed, seen, done, present: () => until(() => present) };
}

it('a feed that its app has suspended stays so, whatever the network does, until the app resumes it', async () => {
  const { source, feed, done, present } = startFeed();
  const network = await present();
  await until(() => source.subscriptions[0]);
  network.suspend();
  await until(() => source.subscriptions.length === 0);
  network.resume();
  await until(() => source.subscriptions[0]);
  feed.suspend();
  await until(() => source.subscriptions.length === 0);
  network.suspend();
  network.resume();
  // What resuming begins has begun by then.
  await new Promise(setImmediate);
  expect(source.subscriptions).toEqual([]);
  feed.resume();
  await until(() => source.subscriptions[0]);
  feed.close();
  await done;
});

it('the problem of a store is over once it has taken the event, and the event is shown', async () => {
  const failure = new Error('The disk is full.');
  let isFull = true;
  const { source, feed, seen, done } = startFeed(() => {
    if (isFull) throw failure;
  });
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened();
  sink.next({ data: { events: { cursor: 'a' } } });
  await until(() => feed.problem === failure);
  expect(seen).toEqual([]);
  isFull = false;
  await until(() => seen.length === 1);
  expect([seen, feed.problem]).toEqual([['a'], undefined]);
  feed.close();
  await done;
});

it('the problem of the connection stays where that of the store is over', async () => {
  const again = Promise.withResolvers<void>();
  let saves = 0;
  const { source, feed, seen, done } = startFeed(() => {
    saves += 1;
    if (saves === 1) throw new Error('The disk is full.');
    return again.promise;
  });
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened();
  sink.next({ data: { events: { cursor: 'a' } } });
  await until(() => saves === 2);
  const cut = new Error('The connection was cut.');
  sink.ended(cut);
  await until(() => feed.problem === cut);
  again.resolve();
  await until(() => seen.length === 1);
  expect(feed.problem).toBe(cut);
  feed.close();
  await done;
});

it('the problem of a store that goes on failing is told beside a connection that is back', async () => {
  const failure = new Error('The disk is full.');
  const { source, feed, done } = startFeed(() => Promise.reject(failure));
  const first = await until(() => source.subscriptions[0]);
  first.sink.opened();
  first.sink.next({ data: { events: { cursor: 'a' } } });
  await until(() => feed.problem === failure);
  const told: unknown[] = [];
  feed.onChange(() => told.push(feed.problem));
  const cut = new Error('The connection was cut.');
  first.sink.ended(cut);
  const second = await until(() => source.subscriptions[0]);
  second.sink.opened();
  expect([feed.status, feed.problem]).toEqual(['catching up', failure]);
  expect(told).toContain(cut);
  expect(told).not.toContain(undefined);
  feed.close();
  await done;
});

it('the problem of a store that goes on failing is told where the connection is left because too many events wait', async () => {
  const failure = new Error('The disk is full.');
  const { source, feed, seen, done } = startFeed(() => Promise.reject(failure));
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened();
  sink.next({ data: { events: { cursor: 'a' } } });
  await until(() => feed.problem === failure);
  const told: unknown[] = [];
  feed.onChange(() => told.push(feed.problem));
  for (let event = 0; event < 256; event += 1) sink.next({ data: { events: { cursor: String(event) } } });
  await until(() => feed.status === 'offline');
  expect([feed.problem, seen, source.subscriptions]).toEqual([failure, [], []]);
  expect(told).not.toContain(undefined);
  feed.close();
  await done;
});

it.each([
  ['the refusal itself', { retryAfterMs: 250 }, 250],
  ['the head of the answer, where the refusal says nothing', {}, 7_000],
])('how long to wait is told by %s', async (_by, extensions, retryAfterMs) => {
  const errors = [{ message: 'Too many.', extensions: { code: 'RATE_LIMITED', ...extensions } }];
  const headers = { 'retry-after': '7', 'content-type': 'application/json' };
  const source = createFetch({
    url: 'http://gateway/graphql',
    token: () => 'a token',
    fetch: async () => new Response(JSON.stringify({ errors }), { status: 429, headers }),
  });
  const answer = await source.query('{ eventCursor }', {});
  expect(answer.errors?.[0]?.extensions).toMatchObject({ retryAfterMs });
});

it.each([
  ['fetch', createFetch],
  ['graphql-sse', createEventStreams],
])('over %s a name is whole, wherever the network has cut the stream', async (_, create) => {
  const event = JSON.stringify({ data: { events: { cursor: 'a', payer: 'Íñigo Muñoz 🦤' } } });
  const bytes = new TextEncoder().encode(`event: next\ndata: ${event}\n\nevent: complete\ndata:\n\n`);
  const stream = new ReadableStream({
    start(body) {
      for (const byte of bytes) body.enqueue(Uint8Array.of(byte));
      body.close();
    },
  });
  const source = create({
    url: 'http://gateway/graphql',
    token: () => 'a token',
    fetch: async () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const seen: unknown[] = [];
  await new Promise((ended) => {
    const next = ({ data }: Answer<Data>) => void seen.push(data?.events);
    source.subscribe(DOCUMENT, { after: null }, { opened() {}, next, bookmark() {}, ended });
  });
  expect(seen).toEqual([{ cursor: 'a', payer: 'Íñigo Muñoz 🦤' }]);
});

it('behind a gap what the log still holds is handed out again: a store of the app’s own is given it again, that of the package keeps it once', async () => {
  const kept = memoryStore<Data['events']>();
  await kept.save(undefined, 'start');
  const saved: (string | undefined)[] = [];
  const source = createFakeSource();
  const feed = follow(source, DOCUMENT, {
    store: {
      load: () => kept.load(),
      async save(item, cursor) {
        await kept.save(item, cursor);
        saved.push(item === undefined || isGap(item) ? undefined : item.cursor);
      },
    },
    presence: () => () => undefined,
  });
  const seen: string[] = [];
  const done = (async () => {
    for await (const item of feed) seen.push(isGap(item) ? 'gap' : item.cursor);
  })();
  const send = async (after: string, ...cursors: readonly string[]) => {
    const { sink } = await until(() =>
      source.subscriptions.find(({ variables }) => variables['after'] === after),
    );
    for (const cursor of cursors) sink.next({ data: { events: { cursor } } });
    return sink;
  };
  const sink = await send('start', 'a', 'b');
  await until(() => seen.length === 2);
  // The log has lost its end, and goes on from its oldest event.
  sink.next({
    errors: [{ message: 'Lost.', extensions: { code: 'EVENTS_GAP', oldest: 'before a', head: 'a' } }],
  });
  await send('before a', 'a', 'c');
  await until(() => seen.at(-1) === 'c');
  expect(seen).toEqual(['a', 'b', 'gap', 'a', 'c']);
  expect(saved).toEqual(['a', 'b', undefined, 'a', 'c']);
  expect((await kept.load())?.events?.map((item) => (isGap(item) ? 'gap' : item.cursor))).toEqual([
    'a',
    'b',
    'gap',
    'c',
  ]);
  feed.close();
  await done;
});

it('goes on behind a gap also where the store cannot be read for a moment just then, and says so meanwhile', async () => {
  const kept = memoryStore<Data['events']>();
  await kept.save(undefined, 'start');
  const failure = new Error('Connection to Indexed Database server lost.');
  let readings = 0;
  const source = createFakeSource();
  const feed = follow(source, DOCUMENT, {
    store: {
      async load() {
        readings += 1;
        if (readings === 2) throw failure;
        return kept.load();
      },
      save: (item, cursor) => kept.save(item, cursor),
    },
    presence: () => () => undefined,
  });
  const problems: unknown[] = [];
  feed.onChange(() => problems.push(feed.problem));
  const seen: string[] = [];
  const done = (async () => {
    for await (const item of feed) seen.push(isGap(item) ? 'gap' : item.cursor);
  })();
  const first = await until(() => source.subscriptions[0]);
  first.sink.next({
    errors: [{ message: 'Lost.', extensions: { code: 'EVENTS_GAP', oldest: 'oldest', head: 'head' } }],
  });
  const { sink } = await until(() =>
    source.subscriptions.find(({ variables }) => variables['after'] === 'oldest'),
  );
  sink.next({ data: { events: { cursor: 'a' } } });
  await until(() => seen.at(-1) === 'a');
  expect(seen).toEqual(['gap', 'a']);
  expect(problems).toContain(failure);
  expect(feed.problem).toBeUndefined();
  feed.close();
  await done;
});
