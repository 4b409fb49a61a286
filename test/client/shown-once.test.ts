import { expect, it } from 'vitest';
import { isGap, memoryStore, type Source, type Store, typed } from '../../packages/client/src/index.ts';
import { type FeedState, feedStore } from '../../packages/client/src/svelte.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

type Event = { readonly cursor: string };
const DOCUMENT = typed<{ readonly events: Event }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { cursor } }',
);

it('a screen shows once what comes again behind a gap, where the store keeps it', async () => {
  const source = createFakeSource();
  const store = memoryStore<Event>();
  await store.save(undefined, 'start');
  let state: FeedState<Event> | undefined;
  const leave = feedStore(source, DOCUMENT, { store, presence: () => () => {} }).subscribe((next) => {
    state = next;
  });
  const shown = () => state?.items.map((item) => (isGap(item) ? 'gap' : item.cursor));
  const deliver = async (...cursors: string[]) => {
    const { sink } = await until(() => source.subscriptions[0]);
    sink.opened();
    for (const cursor of cursors) sink.next({ data: { events: { cursor } } });
  };
  await deliver('a', 'b');
  await until(() => shown()?.[0] === 'b');
  const { sink } = await until(() => source.subscriptions[0]);
  sink.next({ errors: [{ message: 'Gone.', extensions: { code: 'EVENTS_GAP', oldest: 'of the gap' } }] });
  await until(() => shown()?.[0] === 'gap');
  await deliver('a', 'b', 'c');
  await until(() => shown()?.[0] === 'c');
  expect(shown()).toEqual(['c', 'gap', 'b', 'a']);
  const saved = await store.load();
  expect(saved?.events?.map((item) => (isGap(item) ? 'gap' : item.cursor)).reverse()).toEqual(shown());
  leave();
});

it('a screen whose store keeps no list shows what it had, and goes on, where it is shown again', async () => {
  const source = createFakeSource();
  let place = 'start';
  const store: Store<Event> = {
    load: () => ({ cursor: place }),
    save(_, cursor) {
      place = cursor;
    },
  };
  let state: FeedState<Event> | undefined;
  const feed = feedStore(source, DOCUMENT, { store, presence: () => () => {} });
  const show = () =>
    feed.subscribe((next) => {
      state = next;
    });
  const shown = () => state?.items.map(({ cursor }) => cursor);
  const deliver = async (...cursors: string[]) => {
    const { sink } = await until(() => source.subscriptions[0]);
    sink.opened();
    for (const cursor of cursors) sink.next({ data: { events: { cursor } } });
    await until(() => shown()?.[0] === cursors.at(-1));
  };
  const leave = show();
  await deliver('a', 'b');
  leave();
  await until(() => source.subscriptions.length === 0);
  const leaveAgain = show();
  await deliver('c');
  expect(shown()).toEqual(['c', 'b', 'a']);
  leaveAgain();
});

it('a function that subscribes twice to a store is called back until it has left twice', async () => {
  const source = createFakeSource();
  const store = feedStore(source, DOCUMENT, { presence: () => () => {}, initialItems: [{ cursor: 'a' }] });
  const told: number[] = [];
  const run = ({ items }: FeedState<Event>) => void told.push(items.length);
  const [leave, leaveAgain] = [store.subscribe(run), store.subscribe(run)];
  expect(told).toEqual([1, 1]);
  // The feed asks where it begins.
  const call = await until(() => source.calls[0]);
  call.answer({ data: { eventCursor: 'start' } });
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened();
  leave();
  leave();
  sink.next({ data: { events: { cursor: 'b' } } });
  await until(() => told.at(-1) === 2);
  expect(source.subscriptions).toHaveLength(1);
  leaveAgain();
  await until(() => source.subscriptions.length === 0);
});

it('a gap takes nothing from a screen that shows more than the store keeps', async () => {
  const source = createFakeSource();
  const store = memoryStore<Event>(2);
  await store.save(undefined, 'start');
  let state: FeedState<Event> | undefined;
  const leave = feedStore(source, DOCUMENT, { store, presence: () => () => {} }).subscribe((next) => {
    state = next;
  });
  const shown = () => state?.items.map((item) => (isGap(item) ? 'gap' : item.cursor));
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened();
  for (const cursor of ['a', 'b', 'c']) sink.next({ data: { events: { cursor } } });
  await until(() => shown()?.[0] === 'c');
  sink.next({ errors: [{ message: 'Gone.', extensions: { code: 'EVENTS_GAP', oldest: 'of the gap' } }] });
  await until(() => shown()?.[0] === 'gap');
  expect(shown()).toEqual(['gap', 'c', 'b', 'a']);
  leave();
});

it('a screen that is left and shown again is told nothing more by the feed from before, which was keeping an event', async () => {
  const fake = createFakeSource();
  const memory = memoryStore<Event>();
  await memory.save(undefined, 'start');
  const kept = Promise.withResolvers<void>();
  let saving = 0;
  const store: Store<Event> = {
    load: () => memory.load(),
    async save() {
      saving += 1;
      await kept.promise;
    },
  };
  const source: Source = {
    ...fake,
    subscribe(document, variables, sink) {
      const leave = fake.subscribe(document, variables, sink);
      sink.opened();
      sink.bookmark('start');
      return leave;
    },
  };
  const screen = feedStore(source, DOCUMENT, { store, presence: () => () => {} });
  let state: FeedState<Event> | undefined;
  const show = () =>
    screen.subscribe((next) => {
      state = next;
    });
  const leave = show();
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.next({ data: { events: { cursor: 'a' } } });
  await until(() => saving === 1);
  leave();
  const leaveAgain = show();
  await until(() => state?.status === 'live');
  kept.resolve();
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect([state?.status, state?.items]).toEqual(['live', []]);
  leaveAgain();
});
