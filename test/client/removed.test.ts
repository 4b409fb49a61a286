import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  follow,
  type Gap,
  keyValueStore,
  type Saved,
  type Store,
  sharedStore,
  typed,
} from '../../packages/client/src/index.ts';
import { feedStore } from '../../packages/client/src/svelte.ts';
import { createFakeGateway } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

/** Stores that are removed while a feed goes on, as at a sign-out in another tab. */

interface Credit {
  readonly cursor: string;
}
const DOCUMENT = typed<{ readonly moneyIn: Credit }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { moneyIn(after: $after) { cursor } }',
);
const credit = (cursor: string): Credit => ({ cursor });
const GAP: Gap<Credit> = { gap: true, reason: 'EVENTS_GAP', cursor: 'oldest' };
const REMOVED = { name: 'Refused', code: 'STORE_REMOVED', message: expect.stringContaining('was removed') };

/** What tabs share, and how an app takes it out. */
interface Place {
  tab(): Store<Credit>;
  remove(): void;
  /** What is stored, as it is written. */
  stored(): Saved<Credit> | undefined;
  write(saved: Saved<Credit>): void;
}

const PLACES: Readonly<Record<string, () => Place>> = {
  'a key-value store'() {
    const values = new Map<string, string>();
    const storage = {
      getItem: (key: string) => values.get(key) ?? null,
      setItem: (key: string, value: string) => values.set(key, value),
    };
    return {
      tab: () => keyValueStore(storage, 'feed'),
      remove: () => values.clear(),
      stored: () => JSON.parse(values.get('feed') ?? 'null') ?? undefined,
      write: (saved) => values.set('feed', JSON.stringify(saved)),
    };
  },
  'a key-value store of a phone'() {
    const values = new Map<string, string>();
    const storage = {
      getItem: async (key: string) => values.get(key) ?? null,
      setItem: async (key: string, value: string) => void values.set(key, value),
    };
    return {
      tab: () => keyValueStore(storage, 'feed'),
      remove: () => values.clear(),
      stored: () => JSON.parse(values.get('feed') ?? 'null') ?? undefined,
      write: (saved) => values.set('feed', JSON.stringify(saved)),
    };
  },
  'a store of the app’s own'() {
    let stored: Saved<Credit> | undefined;
    return {
      tab: () =>
        sharedStore(
          async () => stored,
          async (change) => {
            stored = change(stored);
          },
        ),
      remove() {
        stored = undefined;
      },
      stored: () => stored,
      write(saved) {
        stored = saved;
      },
    };
  },
};

describe.each(Object.keys(PLACES))('%s that is removed', (kind) => {
  let place: Place;
  let tab: Store<Credit>;
  beforeEach(async () => {
    place = PLACES[kind]?.() ?? expect.unreachable();
    tab = place.tab();
    await tab.load();
    await tab.save(undefined, 'start');
  });

  const WRITES: readonly (readonly [string, Credit | Gap<Credit> | undefined, string])[] = [
    ['an event', credit('b'), 'b'],
    ['a bookmark', undefined, 'later'],
    ['the bookmark that it has had', undefined, 'start'],
    ['a gap', GAP, 'oldest'],
    ['a list', { ...GAP, events: [credit('y'), credit('z')] }, 'z'],
  ];

  it.each(WRITES)('takes nothing of a feed that is still open: %s', async (_, item, cursor) => {
    for (const event of [undefined, credit('a')]) {
      if (event) await tab.save(event, 'a');
      const before = place.stored() ?? expect.unreachable();
      place.remove();
      for (const _time of ['first', 'second']) {
        await expect(tab.save(item, cursor)).rejects.toMatchObject(REMOVED);
        expect(place.stored()).toBeUndefined();
      }
      place.write(before);
    }
    await tab.save(credit('c'), 'c');
    expect(place.stored()).toMatchObject({ cursor: 'c', events: [credit('a'), credit('c')] });
  });

  it.each(WRITES)('and begun anew takes nothing of the feed before either: %s', async (_, item, cursor) => {
    place.remove();
    const next = place.tab();
    await next.load();
    // As late as a clock that counts milliseconds can tell.
    const now = Date.now();
    await until(() => Date.now() > now);
    await next.save(undefined, 'of the next');
    for (const _time of ['first', 'second', 'third']) {
      await expect(tab.save(item, cursor)).rejects.toMatchObject(REMOVED);
      expect(place.stored()).toMatchObject({ cursor: 'of the next', events: [] });
    }
    await next.save(credit('n'), 'n');
    expect(place.stored()).toMatchObject({ cursor: 'n', events: [credit('n')] });
  });

  it('takes a feed that begins after that, with the same store too', async () => {
    place.remove();
    expect((await tab.load()) ?? undefined).toBeUndefined();
    await tab.save(undefined, 'again');
    await tab.save(credit('b'), 'b');
    expect(place.stored()).toMatchObject({ cursor: 'b', events: [credit('b')] });
  });

  it('takes nothing of a feed either that began it beside another tab', async () => {
    place.remove();
    const [one, other] = [place.tab(), place.tab()];
    for (const each of [one, other]) await each.load();
    for (const each of [one, other]) await each.save(credit('a'), 'a');
    await other.save(credit('b'), 'b');
    expect(place.stored()).toMatchObject({ cursor: 'b', events: [credit('a'), credit('b')] });
    place.remove();
    for (const each of [one, other]) {
      await expect(each.save(credit('c'), 'c')).rejects.toMatchObject(REMOVED);
    }
    expect(place.stored()).toBeUndefined();
  });

  it('and that version 0.2.0 has written is known for removed, and taken for another list by no tab beside that version', async () => {
    const { begun: _, ...old } = place.stored() ?? expect.unreachable();
    // A tab of that version writes without the member.
    place.write(old);
    await tab.save(credit('a'), 'a');
    expect(place.stored()).toMatchObject({ cursor: 'a', events: [credit('a')] });
    const other = place.tab();
    await other.load();
    place.remove();
    for (const each of [tab, other]) {
      await expect(each.save(credit('b'), 'b')).rejects.toMatchObject(REMOVED);
    }
    await place.tab().save(undefined, 'anew');
    for (const each of [tab, other]) {
      await expect(each.save(credit('b'), 'b')).rejects.toMatchObject(REMOVED);
    }
    expect(place.stored()).toMatchObject({ cursor: 'anew', events: [] });
  });
});

describe('a feed', () => {
  let leave: () => void;
  afterEach(() => leave());
  /** Credits beside which a feed in another tab, in the same storage, is followed by a feed store. */
  function open() {
    const gateway = createFakeGateway();
    const place = PLACES['a key-value store']?.() ?? expect.unreachable();
    let state = {} as { status?: string; problem?: unknown; items: readonly (Credit | Gap<Credit>)[] };
    leave = feedStore(gateway.connect(), DOCUMENT, { store: place.tab() }).subscribe((next) => {
      state = next;
    });
    return { gateway, place, state: () => state };
  }

  it('whose list was removed ends with a sentence, and keeps nothing; the next one begins with its own list', async () => {
    const { gateway, place, state } = open();
    await until(() => state().status === 'live');
    const first = gateway.deliver({});
    await until(() => state().items.length === 1);
    place.remove();
    const second = gateway.deliver({});
    await until(() => state().status === 'ended');
    expect(state().problem).toMatchObject(REMOVED);
    expect(state().items).toMatchObject([credit(first)]);
    expect(place.stored()).toBeUndefined();
    const next = follow(gateway.connect(), DOCUMENT, {
      store: place.tab(),
      getState: async () => [credit(first), credit(second)],
    });
    for await (const item of next) {
      expect(item).toMatchObject({ reason: 'FIRST_START', events: [credit(first), credit(second)] });
      break;
    }
    expect(place.stored()?.events).toEqual([credit(first), credit(second)]);
  });

  it('whose list was begun by another person meanwhile shows and keeps nothing of it', async () => {
    const { gateway, place, state } = open();
    await until(() => state().status === 'live');
    const old = Number(place.stored()?.begun);
    gateway.down();
    place.remove();
    for (const _event of [1, 2, 3]) gateway.deliver({});
    place.write({ cursor: 'place-3', events: [credit('theirs')], begun: old + 1 });
    gateway.forget(3);
    gateway.up();
    await until(() => state().status === 'ended');
    expect(state().problem).toMatchObject(REMOVED);
    expect(state().items).toEqual([]);
    expect(place.stored()).toEqual({ cursor: 'place-3', events: [credit('theirs')], begun: old + 1 });
  });
});
