import { setTimeout as pause } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type Gap,
  isGap,
  type KeyValues,
  keyValueStore,
  memoryStore,
  type Saved,
  type Store,
  sharedStore,
} from '../../packages/client/src/index.ts';

interface Event {
  readonly cursor: string;
}

const event = (cursor: string): Event => ({ cursor });

/** A storage that takes a while, as those of phones do. */
function slowStorage(): KeyValues {
  const values = new Map<string, string>();
  return {
    async getItem(key) {
      await pause(1);
      return values.get(key) ?? null;
    },
    async setItem(key, value) {
      await pause(1);
      values.set(key, value);
    },
  };
}

it.each([
  ['memory', () => memoryStore<Event>(3)],
  ['key-value', () => keyValueStore<Event>(slowStorage(), 'feed', 3)],
] as const)('a %s store keeps the newest events with their place, each once', async (_, make) => {
  const store = make();
  expect((await store.load()) ?? undefined).toBeUndefined();
  await store.save(undefined, 'start');
  expect(await store.load()).toMatchObject({ cursor: 'start', events: [] });
  // At once, as two components of one app may.
  await Promise.all([...'abcd'].map((cursor) => store.save(event(cursor), cursor)));
  expect(await store.load()).toMatchObject({ cursor: 'd', events: [event('b'), event('c'), event('d')] });
  // Another tab has saved it before.
  await store.save(event('c'), 'c');
  expect(await store.load()).toMatchObject({ events: [event('b'), event('c'), event('d')] });
});

it('a gap is kept where it was met; the list that was loaded afresh takes the place of the one before', async () => {
  const store = memoryStore<Event>();
  await store.save(event('a'), 'a');
  const gap: Gap<Event> = { gap: true, reason: 'EVENTS_GAP', cursor: 'oldest' };
  await store.save(gap, 'oldest');
  expect(await store.load()).toMatchObject({ cursor: 'oldest', events: [event('a'), gap] });
  await store.save({ ...gap, cursor: 'z', events: [event('y'), event('z')] }, 'z');
  expect(await store.load()).toMatchObject({
    cursor: 'z',
    events: [{ gap: true, reason: 'EVENTS_GAP' }, event('y'), event('z')],
  });
});

it.each([
  [1, []],
  [2, ['z']],
])('a store of %i holds no more where a gap stands before a list that was loaded', async (kept, held) => {
  const store = memoryStore<Event>(kept);
  const events = ['y', 'z'].map(event);
  await store.save({ gap: true, reason: 'EVENTS_GAP', cursor: 'z', events }, 'z');
  expect(await store.load()).toMatchObject({ events: [{ gap: true }, ...held.map(event)] });
});

it('a tab whose write has failed is no further than before: it writes nothing over what another tab keeps', async () => {
  const values = new Map<string, string>();
  let isFull = false;
  const storage: KeyValues = {
    getItem: (key) => values.get(key) ?? null,
    setItem(key, value) {
      if (isFull) throw new Error('The disk is full.');
      values.set(key, value);
    },
  };
  const [one, other] = [keyValueStore<Event>(storage, 'feed'), keyValueStore<Event>(storage, 'feed')];
  await one.save(event('a'), 'a');
  await Promise.all([one.load(), other.load()]);
  for (let time = 0; time < 2; time += 1) {
    isFull = true;
    await expect(one.save(event('b'), 'b')).rejects.toThrow('The disk is full.');
    isFull = false;
  }
  await other.save(event('b'), 'b');
  await other.save(event('c'), 'c');
  await one.save(event('x'), 'x');
  expect(await other.load()).toMatchObject({ cursor: 'c', events: [event('a'), event('b'), event('c')] });
});

it('one write that has failed does not keep later ones from a storage whose platform has no locks', async () => {
  vi.stubGlobal('navigator', undefined);
  onTestFinished(() => void vi.unstubAllGlobals());
  const values = new Map<string, string>();
  let isFull = true;
  const store = keyValueStore<Event>(
    {
      getItem: (key) => values.get(key) ?? null,
      setItem(key, value) {
        if (isFull) throw new Error('The disk is full.');
        values.set(key, value);
      },
    },
    'feed',
  );
  for (const _time of ['first', 'second'])
    await expect(store.save(event('a'), 'a')).rejects.toThrow('The disk is full.');
  isFull = false;
  await store.save(event('a'), 'a');
  isFull = true;
  await expect(store.save(event('b'), 'b')).rejects.toThrow('The disk is full.');
  isFull = false;
  // The same again, as a feed does.
  await store.save(event('b'), 'b');
  expect(await store.load()).toMatchObject({ cursor: 'b', events: [event('a'), event('b')] });
});

describe('two tabs with a key-value store in a page without Web Locks', () => {
  let stored: () => Promise<string>;
  let one: Store<Event>;
  let other: Store<Event>;
  /** Holds the next write of the other tab, which has read by then. */
  let hold: () => { readonly isHeld: Promise<void>; release(): void };
  beforeEach(async () => {
    vi.stubGlobal('navigator', undefined);
    onTestFinished(() => void vi.unstubAllGlobals());
    const values = new Map<string, string>();
    const tab = (beforeWriting?: () => void | Promise<void>) =>
      keyValueStore<Event>(
        {
          getItem: (key) => values.get(key) ?? null,
          async setItem(key, value) {
            await beforeWriting?.();
            values.set(key, value);
          },
        },
        'feed',
      );
    let held = (): void | Promise<void> => {};
    hold = () => {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      held = () => {
        held = () => {};
        reached.resolve();
        return released.promise;
      };
      return { isHeld: reached.promise, release: released.resolve };
    };
    [one, other] = [tab(), tab(() => held())];
    stored = async () => {
      const { cursor, events = [] } = (await tab().load()) ?? expect.unreachable();
      return `${events.map((item) => (isGap(item) ? 'gap' : item.cursor)).join(' ')}, ${cursor}`;
    };
    for (const each of [one, other]) {
      await each.load();
      await each.save(event('a'), 'a');
    }
    // The other writes over what the one has written since the other has read.
    const { isHeld, release } = hold();
    const late = other.save(event('b'), 'b');
    await isHeld;
    for (const cursor of ['b', 'c']) await one.save(event(cursor), cursor);
    expect(await stored()).toBe('a b c, c');
    release();
    await late;
    expect(await stored()).toBe('a b, b');
  });

  it('may move the place back where both write at once: the tab that was slower saves on, and nothing is missing', async () => {
    for (const cursor of ['c', 'd']) await other.save(event(cursor), cursor);
    await one.save(event('d'), 'd');
    await one.save(event('e'), 'e');
    expect(await stored()).toBe('a b c d e, e');
  });

  it('say that some are missing where the slower one has gone then', async () => {
    for (const cursor of ['d', 'e']) await one.save(event(cursor), cursor);
    for (const place of ['e', 'e', 'later']) await one.save(undefined, place);
    await one.save(event('f'), 'f');
    expect(await stored()).toBe('a b gap f, f');
  });
});

/** Makes the stores of tabs that share what is stored. */
const SHARED: Readonly<Record<string, () => () => Store<Event>>> = {
  'a key-value store'() {
    const values = new Map<string, string>();
    return () =>
      keyValueStore(
        { getItem: (key) => values.get(key) ?? null, setItem: (key, value) => values.set(key, value) },
        'feed',
      );
  },
  'a store of the app’s own'() {
    let stored: Saved<Event> | undefined;
    return () =>
      sharedStore(
        async () => stored,
        async (change) => {
          stored = change(stored);
        },
      );
  },
};

describe.each(Object.keys(SHARED))('two tabs with %s', (kind) => {
  let one: Store<Event>;
  let other: Store<Event>;
  /** What is stored, by cursors, and the place that it reaches to. */
  let stored: () => Promise<string>;
  beforeEach(async () => {
    const make = SHARED[kind]?.() ?? expect.unreachable();
    [one, other] = [make(), make()];
    stored = async () => {
      const { cursor, events = [] } = (await make().load()) ?? expect.unreachable();
      return `${events.map((item) => (isGap(item) ? 'gap' : item.cursor)).join(' ')}, ${cursor}`;
    };
    for (const tab of [one, other]) {
      await tab.load();
      await tab.save(event('a'), 'a');
    }
  });
  const gap: Gap<Event> = { gap: true, reason: 'EVENTS_GAP', cursor: 'oldest' };

  it('that wakes with old bookmarks moves the place back by none of them', async () => {
    await one.save(undefined, 'newer');
    await other.save(undefined, 'old');
    expect(await stored()).toBe('a, newer');
    // The tab that stores the place lives.
    await one.save(undefined, 'newest');
    await other.save(undefined, 'old still');
    expect(await stored()).toBe('a, newest');
    for (const tab of [other, one]) await tab.save(event('b'), 'b');
    await other.save(undefined, 'behind b');
    expect(await stored()).toBe('a b, behind b');
  });

  it('of which one has gone keep the place of the one that lives', async () => {
    await one.save(undefined, 'of one');
    await other.save(undefined, 'of the other');
    expect(await stored()).toBe('a, of one');
    for (const place of ['x', 'y']) {
      await other.save(undefined, place);
      expect(await stored()).toBe(`a, ${place}`);
    }
  });

  it.each(['oldest', 'newer'])(
    'tell of no gap that only one that has slept has met, at a place: %s',
    async (place) => {
      await one.save(undefined, 'newer');
      // The place that the gap gives may be the one that the other tab has kept.
      await other.save({ ...gap, cursor: place }, place);
      expect(await stored()).toBe('a, newer');
      await other.load();
      await other.save(event('b'), 'b');
      expect(await stored()).toBe('a b, b');
    },
  );

  it('both save after a gap of one, once the other is level', async () => {
    await one.save(gap, 'oldest');
    await one.save(event('b'), 'b');
    for (const cursor of ['b', 'c']) await other.save(event(cursor), cursor);
    expect(await stored()).toBe('a gap b c, c');
    for (const tab of [one, other]) await tab.save(event('d'), 'd');
    await other.save(event('e'), 'e');
    expect(await stored()).toBe('a gap b c d e, e');
  });

  it('save after a gap of one that has gone then, and say that some are missing', async () => {
    await one.save(gap, 'oldest');
    await one.save(event('b'), 'b');
    // Behind all that the first has stored, as far as anybody knows.
    for (const cursor of ['c', 'd']) await other.save(event(cursor), cursor);
    await other.save(undefined, 'behind d');
    expect(await stored()).toBe('a gap b, b');
    await other.save(undefined, 'later');
    await other.save(event('e'), 'e');
    expect(await stored()).toBe('a gap b gap e, e');
    // Where it was only asleep, it moves nothing back.
    for (const cursor of ['c', 'd', 'e', 'f']) await one.save(event(cursor), cursor);
    expect(await stored()).toBe('a gap b gap e f, f');
  });
});
