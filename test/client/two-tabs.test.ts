import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import {
  follow,
  type Gap,
  isGap,
  type KeyValues,
  keyValueStore,
  typed,
} from '../../packages/client/src/index.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

/** Two tabs with one store, which meet one gap one after the other. */

interface Credit {
  readonly id: string;
  readonly cursor: string;
}
const DOCUMENT = typed<{ readonly moneyIn: Credit }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { moneyIn(after: $after) { id cursor } }',
);
const credit = (id: string): Credit => ({ id, cursor: id });
const credits = (count: number): readonly Credit[] =>
  Array.from({ length: count }, (_, index) => credit(`x${index + 1}`));
const told = (items: readonly (Credit | Gap<Credit>)[] = []): string =>
  items
    .map((item) =>
      isGap(item) ? ['gap', ...(item.events ? [`{${told(item.events)}}`] : [])].join('') : item.id,
    )
    .join(' ');

/** What makes the tabs of a test stop. */
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Makes the tabs of one browser, whose store holds the credit `a`. @param kept how many items it keeps */
function browser(kept?: number) {
  const values = new Map<string, string>();
  const storage: KeyValues = {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => values.set(key, value),
  };
  const stored = () => keyValueStore<Credit>(storage, 'credits').load();
  values.set('credits', JSON.stringify({ cursor: 'a', events: [credit('a')] }));
  return {
    async stored() {
      const saved = await stored();
      return `${told(saved?.events)}, ${saved?.cursor}`;
    },
    /** @param list what `getState` loads in the tab */
    tab(list?: () => readonly Credit[]) {
      const source = createFakeSource();
      const shown: (Credit | Gap<Credit>)[] = [];
      const store = keyValueStore<Credit>(storage, 'credits', kept);
      let saves = 0;
      const feed = follow(source, DOCUMENT, {
        store: {
          load: () => store.load(),
          async save(...saved) {
            await store.save(...saved);
            saves += 1;
          },
        },
        presence: () => () => {},
        ...(list && { getState: async () => list() }),
      });
      stops.push(() => feed.close());
      void (async () => {
        for await (const item of feed) shown.push(item);
      })();
      const after = (place: string) =>
        until(() => source.subscriptions.find(({ variables }) => variables['after'] === place)?.sink);
      return {
        get shown() {
          return told(shown);
        },
        /** How many times it has been to the store to write. */
        get saves() {
          return saves;
        },
        after,
        /** The log has been trimmed past the place. @param oldest from where it can be read; without it, where it ends */
        async meetsGap(place: string, oldest: string, head = oldest) {
          const sink = await after(place);
          sink.next({ errors: [{ message: 'Gone.', extensions: { code: 'EVENTS_GAP', oldest, head } }] });
          if (list === undefined) return;
          const call = await until(() => source.calls.find(({ query }) => query.includes('EventCursor')));
          call.answer({ data: { eventCursor: head } });
        },
      };
    },
  };
}

it('a list that another tab has loaded before is shown once, and what came behind it too', async () => {
  const { stored, tab } = browser();
  const [one, other] = [tab(() => credits(20)), tab(() => credits(20))];
  await one.meetsGap('a', 'old', 'x20');
  const sink = await one.after('x20');
  sink.bookmark('h');
  await until(async () => (await stored()).endsWith(', h'));
  sink.next({ data: { moneyIn: credit('x21') } });
  await until(async () => (await stored()).endsWith(', x21'));
  await other.meetsGap('a', 'old', 'x20');
  const behind = await other.after('x21');
  behind.next({ data: { moneyIn: credit('x22') } });
  await until(() => other.shown.endsWith('x22'));
  expect(other.shown).toBe(`gap{${told(credits(21))}} x22`);
});

it('a credit that a tab’s list holds, and that of a quicker tab does not, is shown and kept once', async () => {
  const { stored, tab } = browser();
  const [one, other] = [tab(() => credits(20)), tab(() => credits(21))];
  await one.meetsGap('a', 'old', 'x20');
  const sink = await one.after('x20');
  sink.bookmark('h');
  await until(async () => (await stored()).endsWith(', h'));
  await other.meetsGap('a', 'old', 'x21');
  const behind = await other.after('h');
  behind.next({ data: { moneyIn: credit('x21') } });
  behind.next({ data: { moneyIn: credit('x22') } });
  await until(() => other.shown.endsWith('x22'));
  expect(other.shown).toBe(`gap{${told(credits(20))}} x21 x22`);
  expect(await stored()).toBe(`gap ${told(credits(22))}, x22`);
});

it('a gap behind a place that both tabs had reached is kept, and told in both', async () => {
  const { stored, tab } = browser();
  const [one, other] = [tab(), tab()];
  const first = await one.after('a');
  first.bookmark('q');
  await until(async () => (await stored()) === 'a, q');
  // Something has come that the feed does not ask for. The store refuses the place to the tab that is not the last writer.
  const sink = await other.after('a');
  sink.bookmark('p');
  await until(() => other.saves === 1);
  first.ended(new Error('The network is gone.'));
  const second = await one.after('q');
  second.opened();
  second.bookmark('p');
  await until(async () => (await stored()) === 'a, p');
  // Both sleep until the log has been trimmed past that place.
  await other.meetsGap('a', 'o');
  (await other.after('o')).next({ data: { moneyIn: credit('o1') } });
  await until(() => other.shown.endsWith('o1'));
  await one.meetsGap('q', 'o');
  await one.after('o1');
  await until(() => one.shown.endsWith('o1'));
  expect([one.shown, other.shown, await stored()]).toEqual(['gap o1', 'gap o1', 'a gap o1, o1']);
});

it('a gap is told again behind what another tab had kept, although it gives the same place', async () => {
  const { stored, tab } = browser(3);
  const [one, other] = [tab(), tab()];
  await one.meetsGap('a', 'n');
  const sink = await one.after('n');
  for (const id of ['n1', 'n2']) sink.next({ data: { moneyIn: credit(id) } });
  await until(async () => (await stored()) === 'gap n1 n2, n2');
  // The other wakes after all of that has left the log.
  await other.meetsGap('a', 'o');
  await other.meetsGap('n2', 'o');
  (await other.after('o')).next({ data: { moneyIn: credit('o1') } });
  await until(() => other.shown.endsWith('o1'));
  expect([other.shown, await stored()]).toEqual(['gap n1 n2 gap o1', 'n2 gap o1, o1']);
});

it('a tab behind one that has gone saves on at its second bookmark, also where nothing comes any more', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { stored, tab } = browser();
  const [one, other] = [tab(), tab()];
  await one.meetsGap('a', 'o');
  (await one.after('o')).next({ data: { moneyIn: credit('o1') } });
  await until(async () => (await stored()) === 'a gap o1, o1');
  const sink = await other.after('a');
  sink.next({ data: { moneyIn: credit('o2') } });
  await until(() => other.saves === 1);
  expect([other.shown, await stored()]).toEqual(['o2', 'a gap o1, o1']);
  for (const [saves, kept] of [
    [2, 'a gap o1, o1'],
    [3, 'a gap o1 gap, o2'],
  ] as const) {
    // As the gateway sends one at least once a minute.
    sink.bookmark('o2');
    await until(() => other.saves === saves);
    expect(await stored()).toBe(kept);
    vi.setSystemTime(Date.now() + 60_000);
  }
  // The place is where it belongs now, and is not saved again and again.
  sink.bookmark('o2');
  sink.next({ data: { moneyIn: credit('o3') } });
  await until(() => other.shown === 'o2 o3');
  expect([other.saves, await stored()]).toEqual([4, 'a gap o1 gap o3, o3']);
});

it('of a list that reaches back to what was shown before, nothing is shown again', async () => {
  const { stored, tab } = browser();
  const before = [credit('a'), ...credits(2)];
  const [one, other] = [tab(() => before), tab(() => before)];
  await one.meetsGap('a', 'old', 'x2');
  await one.after('x2');
  await other.meetsGap('a', 'old', 'x2');
  await other.after('x2');
  (await one.after('x2')).next({ data: { moneyIn: credit('x3') } });
  await until(async () => (await stored()).endsWith(', x3'));
  await other.meetsGap('x2', 'new', 'x3');
  (await other.after('x3')).next({ data: { moneyIn: credit('x4') } });
  await until(() => other.shown.endsWith('x4'));
  expect(other.shown).toBe('gap{a x1 x2} x3 x4');
});
