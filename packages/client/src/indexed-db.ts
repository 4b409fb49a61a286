import type { Intent, IntentStore } from './intents.ts';
import { type Saved, type Store, sharedStore } from './stores.ts';

/** The databases. An app deletes that of feeds at signing out. That of intents holds the keys of payments that are unclear. */
const FEEDS = 'pasarela';
const INTENTS = 'pasarela payments';
/** The one object store of each, with a value for each feed, or each list of intents. */
const OBJECTS = 'feeds';

/**
 * Makes a store that keeps a feed in the browser's IndexedDB: each event in one transaction with its cursor, safe between
 * tabs.
 */
export function indexedDbStore<Event>(key: string, kept?: number): Store<Event> {
  const turn = (change?: (saved: Saved<Event> | undefined) => Saved<Event>) =>
    inTransaction(FEEDS, key, change);
  return sharedStore(() => turn(), turn, kept);
}

/**
 * Makes a store that keeps intents to pay in the browser's IndexedDB, whose transactions let one tab write at a time. It needs
 * no Web Locks, which a page over plain http and an old WebView lack.
 * Its database, `pasarela payments`, is another one than that of the feeds: it must outlive a sign-out.
 */
export function indexedDbIntents(key: string): IntentStore {
  type Intents = readonly Intent[];
  return {
    load: async () => (await inTransaction<Intents>(INTENTS, key)) ?? [],
    async save(intents, before) {
      let isWritten = false;
      await inTransaction<Intents>(INTENTS, key, (now = []) => {
        isWritten = JSON.stringify(now) === JSON.stringify(before);
        return isWritten ? intents : now;
      });
      return isWritten;
    },
  };
}

/**
 * Reads the stored value, and replaces it by the result of `change`. The database is open for no longer than that, because
 * an open one blocks a tab that changes or deletes it.
 *
 * @returns the value before
 */
async function inTransaction<Value>(
  name: string,
  key: string,
  change?: (value: Value | undefined) => Value,
): Promise<Value | undefined> {
  // Opens the version that is there, because another tab may run a later release.
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore(OBJECTS);
  const database = await result(opening);
  try {
    const transaction = database.transaction(OBJECTS, 'readwrite', { durability: 'strict' });
    const objects = transaction.objectStore(OBJECTS);
    const [before] = await Promise.all([
      // Only this function writes under this key.
      result<Value | undefined>(objects.get(key)).then(async (stored) => {
        if (change) await result(objects.put(change(stored), key));
        return stored;
      }),
      new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      }),
    ]);
    return before;
  } finally {
    database.close();
  }
}

function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
