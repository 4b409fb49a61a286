import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { showFeed, startState } from '../../packages/client/src/feed-state.ts';
import { follow, isGap, memoryStore, Refused, type Store, typed } from '../../packages/client/src/index.ts';
import { createFakeGateway } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

type Event = { readonly id: string; readonly cursor: string };
const EVENTS = typed<{ readonly events: Event }, { readonly after: string | null }>(
  'subscription Events($after: Cursor) { events(after: $after) { id cursor } }',
);

it('a list whose last event the log no longer holds is loaded once for a gap, and the feed goes on from the oldest', async () => {
  const gateway = createFakeGateway();
  const first = { id: '1', cursor: gateway.deliver({ id: '1' }) };
  for (const id of ['2', '3', '4', '5']) gateway.deliver({ id });
  gateway.forget(3);
  let loaded = 0;
  const seen: string[] = [];
  const feed = follow(gateway.connect(), EVENTS, {
    getState: async () => {
      loaded += 1;
      await setImmediate();
      return [first];
    },
  });
  const ended = (async () => {
    for await (const item of feed)
      seen.push(isGap(item) ? `${item.reason} behind ${item.events?.at(-1)?.id}` : item.id);
  })();
  await until(() => seen.includes('5'));
  expect(seen).toEqual(['FIRST_START behind 1', 'EVENTS_GAP behind 1', '4', '5']);
  expect(loaded).toBe(2);
  feed.close();
  await ended;
});

it.each(['EVENTS_GAP', 'CURSOR_INVALID'])(
  'a list whose next page is %s is loaded anew, and the feed goes on',
  async (code) => {
    const gateway = createFakeGateway();
    const first = { id: '1', cursor: gateway.deliver({ id: '1' }) };
    const lists = [
      () => {
        throw new Refused({ message: 'Gone.', extensions: { code } });
      },
      () => [first],
    ];
    const feed = follow(gateway.connect(), EVENTS, { getState: async () => lists.shift()?.() ?? [] });
    const seen: unknown[] = [];
    const ended = (async () => {
      for await (const item of feed) seen.push(isGap(item) ? item.events : item);
    })();
    await Promise.race([ended, until(() => feed.status === 'live')]);
    expect(seen).toEqual([[first]]);
    expect(feed.problem).toBeUndefined();
    feed.close();
    await ended;
  },
);

it('a gap is kept before the list that was loaded for it, so that an app that ends before it is told of the gap shows it', async () => {
  const gateway = createFakeGateway();
  const list = ['1', '2', '3'].map((id) => ({ id, cursor: gateway.deliver({ id }) }));
  const kept = memoryStore<Event>(3);
  await kept.save(undefined, 'a place that is gone');
  let state = startState<Event>();
  const show = (save: Store<Event>['save']) => {
    state = startState();
    const store = { load: () => kept.load(), save };
    const options = { store, getState: async () => list, presence: () => () => {}, limit: 3 };
    return showFeed(gateway.connect(), EVENTS, options, (change) => {
      state = change(state);
    });
  };
  const rows = () => state.items.map((item) => (isGap(item) ? item.reason : item.id));
  let isKept = false;
  const end = show(async (item, cursor) => {
    await kept.save(item, cursor);
    isKept = true;
    // The app ends here.
    await new Promise(() => {});
  });
  await until(() => isKept);
  expect(rows()).toEqual([]);
  end();
  const leave = show((item, cursor) => kept.save(item, cursor));
  await until(() => state.status === 'live');
  expect(rows()).toEqual(['3', '2', 'CURSOR_INVALID']);
  expect(new Set(state.items.map(({ cursor }) => cursor)).size).toBe(3);
  leave();
});

it('a list shows the gap before what was loaded for it as soon as it is told', async () => {
  const gateway = createFakeGateway();
  const list = ['1', '2'].map((id) => ({ id, cursor: gateway.deliver({ id }) }));
  const store = memoryStore<Event>();
  await store.save(undefined, 'a place that is gone');
  let state = startState<Event>();
  const options = { store, getState: async () => list, presence: () => () => {} };
  const leave = showFeed(gateway.connect(), EVENTS, options, (change) => {
    state = change(state);
  });
  await until(() => state.status === 'live');
  expect(state.items.map((item) => (isGap(item) ? item.reason : item.id))).toEqual([
    '2',
    '1',
    'CURSOR_INVALID',
  ]);
  leave();
});

it('a feed goes on behind its list where a store without events has been taken further by another process', async () => {
  const gateway = createFakeGateway();
  const [first, second] = ['1', '2'].map((id) => ({ id, cursor: gateway.deliver({ id }) }));
  let place = '';
  const seen: string[] = [];
  const feed = follow(gateway.connect(), EVENTS, {
    store: {
      load: () => (place === '' ? undefined : { cursor: place }),
      save() {
        place = second?.cursor ?? '';
      },
    },
    getState: () => Promise.resolve(first === undefined ? [] : [first]),
  });
  const ended = (async () => {
    for await (const item of feed) seen.push(isGap(item) ? `list to ${item.events?.at(-1)?.id}` : item.id);
  })();
  await until(() => feed.status === 'live');
  gateway.deliver({ id: '3' });
  await until(() => seen.includes('3'));
  expect(seen).toEqual(['list to 1', '2', '3']);
  feed.close();
  await ended;
});
