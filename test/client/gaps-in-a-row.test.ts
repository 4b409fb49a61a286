import { afterEach, expect, it } from 'vitest';
import type { FeedState } from '../../packages/client/src/feed-state.ts';
import { type Answer, follow, isGap, memoryStore, typed } from '../../packages/client/src/index.ts';
import { subscribeFor } from '../../packages/client/src/resume.ts';
import { feedStore } from '../../packages/client/src/svelte.ts';
import { createFakeSource, type FakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

/** A gap whose own place is a gap as well: what a feed does next, and what it tells. */

interface Numbered {
  readonly id: string;
  readonly cursor: string;
}
const TEXT = 'subscription S($after: Cursor) { events(after: $after) { id cursor } }';
const DOCUMENT = typed<{ readonly events: Numbered }, { readonly after: string | null }>(TEXT);

type Told = (told: string) => void;
/** Ways to follow the log, which begin at `start`. Each returns a function that ends it. */
const WAYS: Readonly<Record<string, (source: FakeSource, told: Told) => () => void>> = {
  follow(source, told) {
    const feed = follow(source, DOCUMENT, { store: begun(), presence: () => () => {} });
    void (async () => {
      for await (const item of feed) told(isGap(item) ? item.reason : item.id);
    })();
    return () => feed.close();
  },
  'a feed as a list': (source, told) => {
    let before: FeedState<Numbered>['items'] = [];
    return feedStore(source, DOCUMENT, { store: begun(), presence: () => () => {} }).subscribe(
      ({ items }) => {
        // A gap takes the row of the one before it.
        expect(items.some((item, index) => isGap(item) && isGap(items[index + 1] ?? {}))).toBe(false);
        for (const item of items.filter((row) => !before.includes(row)).toReversed())
          told(isGap(item) ? item.reason : item.id);
        before = items;
      },
    );
  },
  'a plain subscription': (source, told) => subscribed(source, TEXT, { after: 'start' }, told),
  'a plain subscription that names its place': (source, told) =>
    subscribed(source, 'subscription { events(after: "start") { id cursor } }', {}, told),
};

const subscribed = (
  source: FakeSource,
  text: string,
  variables: Readonly<Record<string, string>>,
  told: Told,
) =>
  subscribeFor(
    source,
    text,
    variables,
    undefined,
    {
      next: ({ data, errors }) =>
        told(
          String(
            errors?.[0]?.extensions?.['code'] ??
              (data as { readonly events: Numbered } | undefined)?.events.id,
          ),
        ),
      ended() {},
    },
    {},
  );

/** A store that has been written before. */
function begun() {
  const store = memoryStore<Numbered>();
  void store.save(undefined, 'start');
  return store;
}

const streamAfter = (source: FakeSource, place: string) =>
  until(() => source.subscriptions.find(({ variables }) => Object.values(variables).includes(place))?.sink);
const gap = (code: string, place: string) => ({
  errors: [
    { message: 'Gone.', extensions: { code, oldest: `oldest of ${place}`, head: `head of ${place}` } },
  ],
});

let leave = () => {};
afterEach(() => leave());

it.each(Object.keys(WAYS))(
  '%s goes on from the oldest event that an older process names, which does not know the place of the gap before',
  async (way) => {
    const source = createFakeSource();
    const told: string[] = [];
    leave = WAYS[way]?.(source, (what) => told.push(what)) ?? leave;
    (await streamAfter(source, 'start')).next(gap('EVENTS_GAP', 'the new process'));
    (await streamAfter(source, 'oldest of the new process')).next(gap('CURSOR_INVALID', 'the old process'));
    const sink = await streamAfter(source, 'oldest of the old process');
    sink.next({ data: { events: { id: 'retained', cursor: 'retained' } } });
    await until(() => told.includes('retained'));
    // What came since the first gap was told may be missing as well, and the app has to load its list again.
    expect(told).toEqual(['EVENTS_GAP', 'CURSOR_INVALID', 'retained']);
  },
);

it.each(Object.keys(WAYS))(
  '%s goes on from the oldest event also where the log is trimmed again before it is back, from the end after the fourth time, and tells each gap',
  async (way) => {
    const source = createFakeSource();
    const told: string[] = [];
    leave = WAYS[way]?.(source, (what) => told.push(what)) ?? leave;
    let place = 'start';
    const trim = async (which: string) => {
      (await streamAfter(source, place)).next(gap('EVENTS_GAP', which));
      place = `oldest of ${which}`;
    };
    for (const which of ['1', '2', '3']) await trim(which);
    (await streamAfter(source, 'oldest of 3')).next(gap('EVENTS_GAP', '4'));
    const sink = await streamAfter(source, 'head of 4');
    sink.next({ data: { events: { id: 'new', cursor: 'new' } } });
    sink.ended(new Error('The network is gone.'));
    place = 'new';
    for (const which of ['5', '6', '7']) await trim(which);
    const again = await streamAfter(source, 'oldest of 7');
    again.bookmark('a bookmark');
    again.ended(new Error('The network is gone.'));
    place = 'a bookmark';
    await trim('8');
    await streamAfter(source, 'oldest of 8');
    const gaps = Array.from({ length: 4 }, () => 'EVENTS_GAP');
    expect(told).toEqual([...gaps, 'new', ...gaps]);
  },
);

it.each(['follow', 'a feed as a list'])(
  '%s is told once of a gap that gives the same place again, and of the end that it falls to',
  async (way) => {
    const source = createFakeSource();
    const told: string[] = [];
    leave = WAYS[way]?.(source, (what) => told.push(what)) ?? leave;
    const refused = new Set<unknown>();
    const next = (place: string) =>
      until(() => {
        const { sink, variables } = source.subscriptions.at(-1) ?? {};
        return variables?.['after'] === place && !refused.has(sink) ? sink : undefined;
      });
    for (const place of ['start', 'oldest of it', 'oldest of it', 'oldest of it']) {
      const sink = await next(place);
      refused.add(sink);
      sink.next(gap('EVENTS_GAP', 'it'));
    }
    (await next('head of it')).next({ data: { events: { id: 'new', cursor: 'new' } } });
    await until(() => told.includes('new'));
    expect(told).toEqual(['EVENTS_GAP', 'EVENTS_GAP', 'new']);
  },
);

it('a plain subscription ends where the gateway refuses for good to say where it goes on after a gap', async () => {
  const source = createFakeSource();
  const told: unknown[] = [];
  const over = Promise.withResolvers<unknown>();
  const next = ({ errors }: Answer<unknown>) => void told.push(errors?.[0]?.extensions?.['code']);
  leave = subscribeFor(source, TEXT, { after: 'start' }, undefined, { next, ended: over.resolve }, {});
  const sink = await streamAfter(source, 'start');
  sink.next({ errors: [{ message: 'Gone.', extensions: { code: 'EVENTS_GAP' } }] });
  const call = await until(() => source.calls[0]);
  call.answer({ errors: [{ message: 'Not yours.', extensions: { code: 'FORBIDDEN' } }] });
  expect(await over.promise).toBeUndefined();
  expect(told).toEqual(['EVENTS_GAP', 'FORBIDDEN']);
});
