import { Component, createElement, type ReactNode, Suspense } from 'react';
import { act, create, type ReactTestRenderer } from 'react-test-renderer';
import { afterEach, expect, it } from 'vitest';
import {
  isGap,
  type KeyValues,
  keyValueStore,
  memoryStore,
  type Store,
  typed,
} from '../../packages/client/src/index.ts';
import { type FeedState, type UseFeedOptions, useFeed } from '../../packages/client/src/react.ts';
import type { Source } from '../../packages/client/src/source.ts';
import { feedStore } from '../../packages/client/src/svelte.ts';
import { createFakeGateway, createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

interface Numbered {
  readonly id: number;
  readonly cursor: string;
}
const DOCUMENT = typed<
  { readonly events: Numbered },
  { readonly after: string | null; readonly owner?: string }
>('subscription S($after: Cursor, $owner: ID) { events(after: $after, types: [CEP]) { id cursor } }');
type Options = UseFeedOptions<Numbered, { readonly after: string | null; readonly owner?: string }>;

let rendered: ReactTestRenderer | undefined;
afterEach(() => rendered?.unmount());

const storageOf = (values: Map<string, string>): KeyValues => ({
  getItem: (key) => values.get(key) ?? null,
  setItem: (key, value) => values.set(key, value),
});

function Screen({ source, options }: { readonly source: Source; readonly options: Options | undefined }) {
  const { items, status } = useFeed(source, DOCUMENT, options);
  return createElement('p', null, `${items.map((item) => (isGap(item) ? 'gap' : item.id)).join()} ${status}`);
}

async function render(source: Source, options?: Options): Promise<void> {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  await act(async () => {
    const element = createElement(Screen, { source, options });
    if (rendered === undefined) rendered = create(element);
    else rendered.update(element);
  });
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
}
afterEach(() => {
  rendered = undefined;
});

const shows = (text: string) =>
  until(() => JSON.stringify(rendered?.toJSON())?.includes(`"${text}"`) === true);

it('useFeed begins its list and its feed with one reading, whatever another tab saves meanwhile', async () => {
  const gateway = createFakeGateway();
  const values = new Map<string, string>();
  const other = keyValueStore<Numbered>(storageOf(values), 'feed');
  await other.load();
  await other.save(undefined, gateway.deliver({ id: 0 }));
  const mine = keyValueStore<Numbered>(storageOf(values), 'feed');
  let readings = 0;
  const store: Store<Numbered> = {
    async load() {
      const saved = await mine.load();
      readings += 1;
      // The other tab is quicker, after each reading.
      const cursor = gateway.deliver({ id: readings });
      await other.save({ id: readings, cursor }, cursor);
      return saved;
    },
    save: (item, cursor) => mine.save(item, cursor),
  };
  await render(gateway.connect(), { store });
  await shows('1 live');
  expect(readings).toBe(1);
});

it('a tab that is slow moves nothing back, and keeps nothing twice, also past what the store holds', async () => {
  const values = new Map<string, string>();
  const [quick, slow] = [0, 1].map(() => keyValueStore<Numbered>(storageOf(values), 'feed', 3));
  for (const tab of [quick, slow]) await tab?.load();
  await quick?.save(undefined, 'start');
  await slow?.load();
  const save = (tab: typeof quick, id: number) => tab?.save({ id, cursor: String(id) }, String(id));
  for (let id = 1; id <= 8; id += 1) await save(quick, id);
  for (let id = 1; id <= 8; id += 1) {
    await save(slow, id);
    expect(await keyValueStore<Numbered>(storageOf(values), 'feed').load()).toMatchObject({
      cursor: '8',
      events: [{ id: 6 }, { id: 7 }, { id: 8 }],
    });
  }
  // Having caught up, it goes on where the other has ended.
  await save(slow, 9);
  expect(await quick?.load()).toMatchObject({ cursor: '9', events: [{ id: 7 }, { id: 8 }, { id: 9 }] });
});

it('useFeed goes on after a write that failed, holds no more than its limit, and can be switched off and on', async () => {
  const gateway = createFakeGateway();
  const values = new Map<string, string>();
  let failures = 1;
  const storage: KeyValues = {
    ...storageOf(values),
    setItem(key, value) {
      failures -= 1;
      if (failures === 0) throw new Error('The disk is full.');
      values.set(key, value);
    },
  };
  const source = gateway.connect();
  const store = keyValueStore<Numbered>(storage, 'feed');
  await render(source, { store, enabled: false, initialItems: [{ id: 0, cursor: '' }], limit: 2 });
  await shows('0 offline');
  await render(source, { store, enabled: true, limit: 2 });
  await shows(' live');
  failures = 2;
  for (let id = 1; id <= 3; id += 1) gateway.deliver({ id });
  await shows('3,2 live');
  // What is switched off is not live.
  await render(source, { store, enabled: false, limit: 2 });
  await shows('3,2 offline');
  await render(source, { store, enabled: true, limit: 2 });
  await shows('3,2 live');
  // Other values of the variables are another feed; an object of the same values is not.
  await render(source, { store, variables: { owner: 'a' }, limit: 2 });
  await render(source, { store, variables: { owner: 'a' }, limit: 2 });
  gateway.deliver({ id: 4 });
  await shows('4,3 live');
});

it('useFeed begins another feed where the values of its variables change, and none where the object alone does', async () => {
  const source = createFakeSource();
  const store: Store<Numbered> = { load: () => ({ cursor: 'start' }), save() {} };
  await render(source, { store, variables: { owner: 'a' } });
  const first = await until(() => source.subscriptions[0]);
  expect(first.variables).toMatchObject({ owner: 'a' });
  await render(source, { store, variables: { owner: 'a' } });
  expect(source.subscriptions[0]).toBe(first);
  await render(source, { store, variables: { owner: 'b' } });
  const second = await until(() => source.subscriptions.find((one) => one !== first));
  expect(second.variables).toMatchObject({ owner: 'b' });
  await until(() => source.subscriptions.length === 1);
});

it('useFeed holds as many items as the stores keep, where it is told no limit', async () => {
  const gateway = createFakeGateway();
  const source = gateway.connect();
  await render(source, { store: memoryStore(500) });
  await shows(' live');
  for (let id = 1; id <= 201; id += 1) gateway.deliver({ id });
  const ids = Array.from({ length: 200 }, (_, index) => 201 - index);
  await shows(`${ids.join()} live`);
});

it('useFeed calls what was rendered, and not what a rendering has brought that was given up', async () => {
  const fake = createFakeSource();
  const told: string[] = [];
  const store: Store<Numbered> = { load: () => ({ cursor: 'start' }), save() {} };
  function Telling({ name, isGivenUp }: { readonly name: string; readonly isGivenUp: boolean }) {
    useFeed(fake, DOCUMENT, { store, onErrors: () => told.push(name) });
    if (isGivenUp) throw new Promise(() => {});
    return null;
  }
  const show = (name: string, isGivenUp: boolean) =>
    createElement(Suspense, null, createElement(Telling, { name, isGivenUp }));
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  await act(async () => {
    rendered = create(show('rendered', false));
  });
  await act(async () => rendered?.update(show('given up', true)));
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: false });
  const { sink } = await until(() => fake.subscriptions[0]);
  sink.next({ data: { events: { id: 1, cursor: 'a' } }, errors: [{ message: 'Not yours.' }] });
  await until(() => told.length > 0);
  expect(told).toEqual(['rendered']);
});

it('useFeed and feedStore keep a feed in memory where they are given no store', async () => {
  const gateway = createFakeGateway();
  const source = gateway.connect();
  await render(source);
  let shown = '';
  const subscribe = () =>
    feed.subscribe(({ items, status }) => {
      shown = `${items.map((item) => (isGap(item) ? 'gap' : item.id)).join()} ${status}`;
    });
  const feed = feedStore(gateway.connect(), DOCUMENT);
  let leave = subscribe();
  await shows(' live');
  await until(() => shown === ' live');
  gateway.deliver({ id: 1 });
  await shows('1 live');
  await until(() => shown === '1 live');
  for (const id of [2, 3]) {
    leave();
    await render(source, { enabled: false });
    await shows(
      `${[1, 2]
        .slice(0, id - 1)
        .reverse()
        .join()} offline`,
    );
    gateway.deliver({ id });
    leave = subscribe();
    await render(source);
    const all = [1, 2, 3].slice(0, id).reverse().join();
    await shows(`${all} live`);
    await until(() => shown === `${all} live`);
  }
  leave();
  // Of other variables, another one: nothing of the feed before is in it.
  await render(source, { variables: { owner: 'a' } });
  await shows(' live');
});

it('useFeed refuses what would begin another feed at each rendering, with a sentence', async () => {
  const gateway = createFakeGateway();
  const source = gateway.connect();
  function Careless() {
    const { status } = useFeed(source, DOCUMENT, { store: memoryStore<Numbered>() });
    return createElement('p', null, status);
  }
  let told = '';
  class Boundary extends Component<{ readonly children: ReactNode }> {
    static getDerivedStateFromError() {
      return { isOver: true };
    }
    override state = { isOver: false };
    override componentDidCatch(error: Error) {
      told = error.message;
    }
    override render() {
      return this.state.isOver ? 'refused' : this.props.children;
    }
  }
  rendered = create(createElement(Boundary, null, createElement(Careless)));
  await until(() => told !== '');
  expect(told).toMatch(/outside of the component/);
});

it('one gap is one row, on the screen and in the store, and a feed store shows the same', async () => {
  const gateway = createFakeGateway();
  const values = new Map<string, string>();
  const store = () => keyValueStore<Numbered>(storageOf(values), 'feed');
  await render(gateway.connect(), { store: store() });
  let shown = '';
  const stop = feedStore(gateway.connect(), DOCUMENT, { store: store() }).subscribe(({ items, status }) => {
    shown = `${items.map((item) => (isGap(item) ? 'gap' : item.id)).join()} ${status}`;
  });
  await until(() => shown === ' live');
  await shows(' live');
  gateway.deliver({ id: 1 });
  await until(() => shown === '1 live');
  for (const last of [4, 7]) {
    gateway.down();
    for (const id of [last - 2, last - 1, last]) gateway.deliver({ id });
    gateway.forget(last === 4 ? 3 : 3);
    gateway.up();
    await until(() => shown.startsWith(`${last},gap`) && shown.endsWith('live'));
    await shows(shown);
  }
  expect(shown).toBe('7,gap,4,gap,1 live');
  const saved = await store().load();
  expect(saved?.events?.map((item) => (isGap(item) ? 'gap' : item.id))).toEqual([1, 'gap', 4, 'gap', 7]);
  stop();
});

it('a gap behind one that a server has rendered is one row with it, where the store keeps no list', async () => {
  const source = createFakeSource();
  const store: Store<Numbered> = { load: () => ({ cursor: 'start' }), save() {} };
  const rendered = { gap: true, reason: 'EVENTS_GAP', cursor: 'rendered' } as const;
  let items: FeedState<Numbered>['items'] = [];
  const leave = feedStore(source, DOCUMENT, {
    store,
    initialItems: [rendered, { id: 1, cursor: '1' }],
  }).subscribe((state) => {
    items = state.items;
  });
  const { sink } = await until(() => source.subscriptions[0]);
  const extensions = { code: 'EVENTS_GAP', oldest: 'oldest', head: 'head' };
  sink.next({ errors: [{ message: 'Gone.', extensions }] });
  await until(() => items[0]?.cursor === 'oldest');
  expect(items.map((item) => (isGap(item) ? 'gap' : item.id))).toEqual(['gap', 1]);
  leave();
});

it('a feed tells of a store that fails for as long as it does, although its connection is live', async () => {
  const gateway = createFakeGateway();
  const values = new Map<string, string>();
  let isFull = false;
  const store = keyValueStore<Numbered>(
    {
      ...storageOf(values),
      setItem(key, value) {
        if (isFull) throw new Error('The disk is full.');
        values.set(key, value);
      },
    },
    'feed',
  );
  let state: Pick<FeedState<Numbered>, 'status' | 'problem' | 'items'> | undefined;
  const leave = feedStore(gateway.connect(), DOCUMENT, { store }).subscribe((next) => {
    state = next;
  });
  await until(() => state?.status === 'live');
  isFull = true;
  gateway.deliver({ id: 1 });
  await until(() => state?.problem !== undefined);
  expect(state).toMatchObject({ status: 'live', items: [] });
  isFull = false;
  await until(() => state?.items.length === 1);
  await until(() => state?.problem === undefined);
  expect(state?.status).toBe('live');
  leave();
});

it('a feed that the gateway refuses for good has ended; one whose connection is lost has not', async () => {
  const source = createFakeSource();
  const store = { load: () => ({ cursor: 'start' }), save() {} };
  let state: Pick<FeedState<Numbered>, 'status' | 'problem'> | undefined;
  const leave = feedStore(source, DOCUMENT, { store }).subscribe((next) => {
    state = next;
  });
  await until(() => source.subscriptions.length === 1);
  source.subscriptions[0]?.sink.ended(new Error('The network is gone.'));
  await until(() => state?.problem !== undefined);
  expect(state?.status).toBe('offline');
  await until(() => source.subscriptions.length === 1);
  source.subscriptions[0]?.sink.next({ errors: [{ message: 'No.', extensions: { code: 'FORBIDDEN' } }] });
  await until(() => state?.status === 'ended');
  expect(state?.problem).toMatchObject({ code: 'FORBIDDEN' });
  expect(source.subscriptions).toEqual([]);
  leave();
});
