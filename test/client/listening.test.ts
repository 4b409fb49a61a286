import { afterEach, expect, it } from 'vitest';
import {
  follow,
  isGap,
  memoryStore,
  type Present,
  type Store,
  typed,
} from '../../packages/client/src/index.ts';
import { createFakeGateway, createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

interface Numbered {
  readonly id: string;
  readonly cursor: string;
}
const DOCUMENT = typed<{ readonly events: Numbered }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { id cursor } }',
);
const FOLLOWED: Store<Numbered> = { load: () => ({ cursor: 'start' }), save() {} };
const event = (id: number) => ({ data: { events: { id: String(id), cursor: `at ${id}` } } });

const reported: unknown[] = [];
const report = (cause: unknown) => reported.push(cause);
afterEach(() => {
  process.off('unhandledRejection', report);
  reported.length = 0;
});

it('a listener that throws is reported, and keeps no event back and no other listener from hearing', async () => {
  process.on('unhandledRejection', report);
  const gateway = createFakeGateway();
  const inner = memoryStore<Numbered>();
  let saves = 0;
  let failures = 1;
  const store: Store<Numbered> = {
    load: () => inner.load(),
    async save(item, cursor) {
      if (item === undefined) return inner.save(item, cursor);
      failures -= 1;
      if (failures >= 0) throw new Error('The disk is full.');
      saves += 1;
      return inner.save(item, cursor);
    },
  };
  const feed = follow(gateway.connect(), DOCUMENT, { store, presence: () => () => {} });
  let heard = 0;
  feed.onChange(() => {
    throw new Error('The screen is gone.');
  });
  feed.onChange(() => {
    heard += 1;
  });
  const seen: string[] = [];
  const ended = (async () => {
    for await (const item of feed) seen.push(isGap(item) ? item.reason : item.id);
  })();
  await until(() => feed.status === 'live');
  gateway.deliver({ id: 'one' });
  await until(() => seen.length > 0);
  expect(seen).toEqual(['one']);
  expect(saves).toBe(1);
  expect(feed.problem).toBeUndefined();
  expect(heard).toBeGreaterThan(0);
  feed.close();
  await ended;
  await until(() => reported.length === heard);
  expect(reported).toContainEqual(new Error('The screen is gone.'));
});

it('a feed whose app reads too slowly is offline, until its events have been read', async () => {
  const source = createFakeSource();
  const feed = follow(source, DOCUMENT, { store: FOLLOWED, presence: () => () => {} });
  const events = feed[Symbol.asyncIterator]();
  const first = events.next();
  const { sink } = await until(() => source.subscriptions[0]);
  sink.opened(undefined);
  sink.bookmark?.('start');
  expect(feed.status).toBe('live');
  // One more than wait: the app has the first.
  for (let id = 0; id <= 256; id += 1) sink.next(event(id));
  await until(() => feed.status === 'offline');
  expect(source.subscriptions).toEqual([]);
  expect(await first).toMatchObject({ value: { id: '0' } });
  const seen = ['0'];
  feed.suspend();
  while (seen.length < 256) seen.push(((await events.next()).value as Numbered).id);
  const last = events.next();
  void last.catch(() => {});
  expect(feed.status).toBe('offline');
  feed.resume();
  await until(() => source.subscriptions[0]);
  expect(new Set(seen).size).toBe(256);
  feed.close();
});

it('what the app has suspended itself, only the app resumes', async () => {
  const source = createFakeSource();
  let present: Present | undefined;
  const feed = follow(source, DOCUMENT, {
    store: FOLLOWED,
    presence(told) {
      present = told;
      return () => {};
    },
  });
  void feed[Symbol.asyncIterator]().next();
  await until(() => source.subscriptions[0]);
  feed.suspend();
  expect(source.subscriptions).toEqual([]);
  present?.resume();
  await new Promise(setImmediate);
  expect(source.subscriptions).toEqual([]);
  feed.resume();
  await until(() => source.subscriptions[0]);
  present?.suspend();
  expect(source.subscriptions).toEqual([]);
  present?.resume();
  await until(() => source.subscriptions[0]);
  feed.close();
});

it('a list that ends in another log makes the feed go on from the present place, where the gateway names no other', async () => {
  const source = createFakeSource();
  const list = [{ id: 'old', cursor: 'of another log' }];
  const feed = follow(source, DOCUMENT, {
    store: memoryStore<Numbered>(),
    getState: async () => list,
    presence: () => () => {},
  });
  const seen: string[] = [];
  void (async () => {
    for await (const item of feed) seen.push(isGap(item) ? item.reason : item.id);
  })();
  const tellPlace = async () =>
    (await until(() => source.calls[0])).answer({ data: { eventCursor: 'the present place' } });
  await tellPlace();
  const { sink, variables } = await until(() => source.subscriptions[0]);
  expect(variables['after']).toBe('of another log');
  sink.next({ errors: [{ message: 'Another log.', extensions: { code: 'CURSOR_INVALID' } }] });
  await tellPlace();
  const next = await until(() => source.subscriptions.find((one) => one.sink !== sink));
  expect(next.variables['after']).toBe('the present place');
  expect(seen).toEqual(['FIRST_START', 'CURSOR_INVALID']);
  feed.close();
});
