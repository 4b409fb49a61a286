import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { follow, isGap, typed } from '../../packages/client/src/index.ts';
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
