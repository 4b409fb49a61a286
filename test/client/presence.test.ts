import { ApolloClient, gql, InMemoryCache } from '@apollo/client';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLink } from '../../packages/client/src/apollo.ts';
import { follow, type Source, typed, watch } from '../../packages/client/src/index.ts';
import { nativePresence } from '../../packages/client/src/react-native.ts';
import { createFakeSource, type FakeSource } from '../../packages/client/src/testing.ts';

const EVENTS = 'subscription S($after: Cursor) { events(after: $after) { cursor } }';
const DOCUMENT = typed<{ readonly events: { readonly cursor: string } }, { readonly after: string }>(EVENTS);
const STATUS = typed<{ readonly cepStatus: { readonly at: string } }, object>(
  'subscription { cepStatus { at } }',
);
const FOLLOWED = { load: () => ({ cursor: 'start' }), save() {} };
/** Longer than a machine that is awake lets pass between two looks at the clock, and longer than any pause between tries. */
const NIGHT_MS = 8 * 3_600_000;

/** Subscribes in the way that it is named for. @returns what leaves */
const WAYS: Readonly<Record<string, (source: Source) => () => void>> = {
  follow(source) {
    const feed = follow(source, DOCUMENT, { store: FOLLOWED });
    void feed[Symbol.asyncIterator]().next();
    return () => feed.close();
  },
  watch(source) {
    const watched = watch(source, STATUS, {});
    return () => watched.close();
  },
  'a plain subscription'(source) {
    const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
    const subscription = client
      .subscribe({ query: gql(EVENTS), variables: { after: 'start' }, fetchPolicy: 'no-cache' })
      .subscribe(() => {});
    return () => subscription.unsubscribe();
  },
};

/** What a browser has, and Node has not. */
let page: EventTarget & { hidden: boolean };
let fake: FakeSource;
let source: Source;
let checks: number;

beforeEach(() => {
  vi.useFakeTimers();
  page = Object.assign(new EventTarget(), { hidden: false });
  vi.stubGlobal('document', page);
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
  vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page));
  checks = 0;
  fake = createFakeSource();
  const check = () => {
    checks += 1;
  };
  source = { ...fake, check };
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Lets what has been set off come to its end, without the clock going on. */
const settle = () => vi.advanceTimersByTimeAsync(0);
/** Nothing runs, and the clock goes on. */
const sleep = () => vi.setSystemTime(Date.now() + NIGHT_MS);
const tell = async (event: string) => {
  page.dispatchEvent(new Event(event));
  await settle();
};

async function begin(way: string): Promise<() => void> {
  const leave = WAYS[way]?.(source);
  await settle();
  fake.subscriptions[0]?.sink.opened();
  await settle();
  expect(fake.subscriptions).toHaveLength(1);
  return leave ?? expect.fail(way);
}

it.each(Object.keys(WAYS))('%s checks its connection once the page is back, each time', async (way) => {
  const leave = await begin(way);
  for (const [round, event] of ['pageshow', 'visibilitychange', 'pageshow', 'visibilitychange'].entries()) {
    sleep();
    await tell(event);
    expect(checks, event).toBe(round + 1);
    // The page was shown, and nothing had slept meanwhile.
    await tell('pageshow');
    await tell('visibilitychange');
    expect(checks, event).toBe(round + 1);
  }
  leave();
});

it.each(Object.keys(WAYS))('%s checks its connection once the clock has leapt, each time', async (way) => {
  const leave = await begin(way);
  // Awake, the clock leaps nowhere.
  await vi.advanceTimersByTimeAsync(60_000);
  expect(checks).toBe(0);
  for (const round of [1, 2]) {
    sleep();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(checks).toBe(round);
  }
  leave();
});

it.each(Object.keys(WAYS))(
  '%s checks its connection once the clock has leapt where there is no page',
  async (way) => {
    for (const name of ['document', 'addEventListener', 'removeEventListener'])
      vi.stubGlobal(name, undefined);
    const leave = await begin(way);
    sleep();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(checks).toBe(1);
    leave();
  },
);

it.each(Object.keys(WAYS))('%s is left alone while nobody sees the page', async (way) => {
  const leave = await begin(way);
  page.hidden = true;
  await tell('visibilitychange');
  sleep();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(checks).toBe(0);
  page.hidden = false;
  await tell('visibilitychange');
  expect(checks).toBe(1);
  leave();
});

it.each(Object.keys(WAYS))(
  '%s comes back at once after a sleep, without the rest of its pause',
  async (way) => {
    const leave = await begin(way);
    for (const event of ['pageshow', 'visibilitychange', 'online']) {
      fake.subscriptions[0]?.sink.ended(new Error('The network is gone.'));
      // Until the pauses are long ones.
      for (const begun = Date.now(); Date.now() - begun < 90_000; await vi.advanceTimersByTimeAsync(100)) {
        fake.subscriptions[0]?.sink.ended(new Error('The network is gone.'));
      }
      fake.subscriptions[0]?.sink.ended(new Error('The network is gone.'));
      await settle();
      expect(fake.subscriptions, event).toHaveLength(0);
      sleep();
      await tell(event);
      expect(fake.subscriptions, event).toHaveLength(1);
      fake.subscriptions[0]?.sink.opened();
    }
    leave();
  },
);

it('a plain subscription that has no place yet asks for it at once when the network is back', async () => {
  const client = new ApolloClient({ cache: new InMemoryCache(), link: createLink(source) });
  const subscription = client.subscribe({ query: gql(EVENTS), fetchPolicy: 'no-cache' }).subscribe(() => {});
  await settle();
  // Until the pauses are long ones.
  for (const begun = Date.now(); Date.now() - begun < 90_000; await vi.advanceTimersByTimeAsync(100))
    fake.calls[0]?.lose();
  fake.calls[0]?.lose();
  await settle();
  expect(fake.calls).toEqual([]);
  await tell('online');
  expect(fake.calls).toHaveLength(1);
  subscription.unsubscribe();
});

it.each(Object.keys(WAYS))('%s watches nothing any more once it is left', async (way) => {
  const added = vi.spyOn(globalThis, 'addEventListener');
  const removed = vi.spyOn(globalThis, 'removeEventListener');
  (await begin(way))();
  await settle();
  expect(added.mock.calls.map(([event]) => event).toSorted()).toEqual([
    'online',
    'pageshow',
    'visibilitychange',
  ]);
  expect(removed.mock.calls).toEqual(added.mock.calls);
  // What was asked for goes on until its answer.
  for (const call of [...fake.calls]) call.lose();
  await settle();
  expect(vi.getTimerCount()).toBe(0);
});

it('a phone in the background is left alone when its network returns', () => {
  type Listener<State> = (state: State) => void;
  let tellApp: Listener<string> = () => {};
  let tellNetwork: Listener<{ isConnected: boolean }> = () => {};
  const told: string[] = [];
  const watching = nativePresence(
    {
      addEventListener: (_, listener) => {
        tellApp = listener;
        return { remove: () => told.push('app left') };
      },
    },
    {
      addNetworkStateListener: (listener) => {
        tellNetwork = listener;
        return { remove: () => told.push('network left') };
      },
    },
  );
  const stop = watching({ suspend: () => told.push('suspend'), resume: () => told.push('resume') });
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual(['resume']);
  tellApp('background');
  tellNetwork({ isConnected: false });
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual(['suspend']);
  // A dialog over the app, such as that of a permission.
  tellApp('inactive');
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual([]);
  tellApp('active');
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual(['resume', 'resume']);
  stop();
  expect(told).toEqual(['app left', 'network left']);
});
