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

it.each(Object.keys(WAYS))(
  '%s goes on in a worker of Cloudflare, which lets no listener capture',
  async (way) => {
    const { addEventListener, removeEventListener } = globalThis;
    vi.stubGlobal('document', undefined);
    for (const change of [addEventListener, removeEventListener])
      vi.stubGlobal(
        change.name.replace('bound ', ''),
        (type: string, listener: EventListener, capture: unknown) => {
          if (capture) throw new TypeError('useCapture must be false.');
          change(type, listener);
        },
      );
    const leave = await begin(way);
    await tell('online');
    expect(checks).toBe(1);
    leave();
    await vi.advanceTimersByTimeAsync(0);
    await tell('online');
    expect(checks).toBe(1);
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

type Listener<State> = (state: State) => void;
interface NetworkState {
  readonly type?: string;
  readonly isConnected: boolean;
  readonly isInternetReachable?: boolean;
}

/** A phone, whose life the test tells. */
function phone() {
  let tellApp: Listener<string> = () => {};
  const networks = new Set<Listener<NetworkState>>();
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
        networks.add(listener);
        return { remove: () => networks.delete(listener) };
      },
    },
  );
  return {
    told,
    networks,
    watch: () => watching({ suspend: () => told.push('suspend'), resume: () => told.push('resume') }),
    tellApp: (state: string) => tellApp(state),
    tellNetwork: (state: NetworkState) => {
      for (const listener of networks) listener(state);
    },
  };
}

it('a phone in the background is left alone when its network returns', () => {
  const { told, watch, tellApp, tellNetwork } = phone();
  const stop = watch();
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual(['resume']);
  tellApp('background');
  tellNetwork({ isConnected: false });
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual(['suspend']);
  // A dialog over the app, such as that of a permission.
  tellApp('inactive');
  tellNetwork({ isConnected: false });
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual([]);
  tellApp('active');
  tellNetwork({ isConnected: false });
  tellNetwork({ isConnected: true });
  expect(told.splice(0)).toEqual(['resume', 'resume']);
  stop();
  expect(told).toEqual(['app left']);
});

it('a phone checks its connection when its network is another one, and not as the signal changes', () => {
  const { told, watch, tellNetwork } = phone();
  watch();
  const wifi = { type: 'WIFI', isConnected: true, isInternetReachable: true };
  const cellular = { ...wifi, type: 'CELLULAR' };
  // The last was suspended for a call.
  const changes = [wifi, cellular, { ...cellular, isInternetReachable: false }, cellular];
  for (const state of changes) {
    tellNetwork(state);
    expect(told.splice(0)).toEqual(['resume']);
    // Android tells of each change of the signal.
    for (let change = 0; change < 3; change += 1) tellNetwork({ ...state });
    expect(told).toEqual([]);
  }
  tellNetwork({ type: 'NONE', isConnected: false, isInternetReachable: false });
  expect(told).toEqual([]);
  tellNetwork(cellular);
  expect(told).toEqual(['resume']);
});

it('a phone hears of its network also after all feeds were left once', () => {
  const { networks, watch } = phone();
  // A server that renders the app imports it, and has no network to listen to.
  expect(networks.size).toBe(0);
  const stop = watch();
  expect(networks.size).toBe(2);
  stop();
  // expo-network cancels its monitor on iOS with the last listener, and a monitor that was cancelled never begins again.
  expect(networks.size).toBe(1);
});
