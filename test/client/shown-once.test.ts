import { expect, it } from 'vitest';
import { isGap, memoryStore, typed } from '../../packages/client/src/index.ts';
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
