import { type KeyValues, slot } from './stores.ts';
import { browser, inTurn } from './turns.ts';

/** One intent to pay, from before it is first sent until the app has shown how it ended. */
export interface Intent {
  readonly idempotencyKey: string;
  /** The mutation's field, such as `createMoneyOut`. */
  readonly mutation: string;
  /** Without the key. */
  readonly input: Readonly<Record<string, unknown>>;
  /** When it was made, as ISO 8601 text. */
  readonly createdAt: string;
  /** When the key could be used first, as ISO 8601 text, where it was derived from something older than the intent (`keySince`). */
  readonly keySince?: string;
  /**
   * How many calls may have moved money: all that were begun but those that were answered "this call has moved nothing". One more where
   * another device may pay under the same key (`sharedKey`).
   */
  readonly unanswered: number;
  /** The mutation's result, by which it ended. */
  readonly result?: unknown;
  /** When the app had shown how it ended. The intent is kept for a while longer, for a `pay` that is still running. */
  readonly acknowledgedAt?: string;
}

/**
 * Where intents are kept; one store for each signed-in person. A store of your own is two functions that read and write the
 * whole list. If several processes or tabs share it, `save` is a compare-and-set: if the list is no longer `before`, which
 * `load` gave, it writes nothing and returns false.
 */
export interface IntentStore {
  load(): readonly Intent[] | Promise<readonly Intent[]>;
  // biome-ignore lint/suspicious/noConfusingVoidType: a store that nobody shares has nothing to say.
  save(intents: readonly Intent[], before: readonly Intent[]): void | boolean | Promise<void | boolean>;
}

export function memoryIntents(): IntentStore {
  let intents: readonly Intent[] = [];
  return {
    load: () => intents,
    save(next) {
      intents = next;
    },
  };
}

/**
 * Makes a store that keeps intents as one value of a storage: `intentStore(localStorage, 'payments')`, or React Native's
 * AsyncStorage. Tabs take turns by Web Locks. A page without these (over plain http, or in an old WebView) gets an error
 * before anything is sent: it needs `indexedDbIntents`.
 */
export function intentStore(storage: KeyValues, key: string): IntentStore {
  const { load, change } = slot<readonly Intent[]>(storage, key);
  return {
    load: async () => (await load()) ?? [],
    async save(intents, before) {
      const { document, navigator } = browser();
      if (document && !navigator?.locks)
        throw new Error('No Web Locks in this page: use https, or indexedDbIntents.');
      let isWritten = false;
      await change((now) => {
        isWritten = JSON.stringify(now ?? []) === JSON.stringify(before);
        return isWritten ? intents : undefined;
      });
      return isWritten;
    },
  };
}

/**
 * Changes the list of intents. The list that `change` returns is written before this resolves. If another tab or process was
 * quicker, `change` is called again.
 */
export const changeIntents = (
  store: IntentStore,
  change: (intents: readonly Intent[]) => readonly Intent[],
): Promise<void> =>
  inTurn(store, async () => {
    for (;;) {
      const before = await store.load();
      const after = change(before);
      if (after === before || (await store.save(after, before)) !== false) return;
    }
  });

/** True if two inputs mean the same payment, whatever the order of their fields. A null says the same as no field. */
export const isSameInput = (one: unknown, other: unknown): boolean => canonical(one) === canonical(other);

const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(
          Object.entries(part)
            .filter(([, value]) => value != null)
            .sort(),
        )
      : part,
  );

/** Returns a random key of 128 bits. */
export function randomKey(): string {
  if (globalThis.crypto?.getRandomValues === undefined) {
    throw new Error('crypto is missing here: pass newKey.');
  }
  return globalThis.crypto.getRandomValues(new Uint32Array(4)).join('-');
}
