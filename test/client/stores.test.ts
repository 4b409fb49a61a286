import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Gap, type KeyValues, keyValueStore, memoryStore } from '../../packages/client/src/index.ts';

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
  expect(await store.load()).toEqual({ cursor: 'start', events: [] });
  // At once, as two components of one app may.
  await Promise.all([...'abcd'].map((cursor) => store.save(event(cursor), cursor)));
  expect(await store.load()).toEqual({ cursor: 'd', events: [event('b'), event('c'), event('d')] });
  // Another tab has saved it before.
  await store.save(event('c'), 'c');
  expect(await store.load()).toMatchObject({ events: [event('b'), event('c'), event('d')] });
});

it('a gap is kept where it was met; the list that was loaded afresh takes the place of the one before', async () => {
  const store = memoryStore<Event>();
  await store.save(event('a'), 'a');
  const gap: Gap<Event> = { gap: true, reason: 'EVENTS_GAP', cursor: 'oldest' };
  await store.save(gap, 'oldest');
  expect(await store.load()).toEqual({ cursor: 'oldest', events: [event('a'), gap] });
  await store.save({ ...gap, cursor: 'z', events: [event('y'), event('z')] }, 'z');
  expect(await store.load()).toEqual({ cursor: 'z', events: [event('y'), event('z')] });
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
  expect(await other.load()).toEqual({ cursor: 'c', events: [event('a'), event('b'), event('c')] });
});
