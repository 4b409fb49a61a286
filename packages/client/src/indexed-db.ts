import { type Saved, type Store, sharedStore } from './stores.ts';

const OBJECTS = 'feeds';

/**
 * Makes a store that keeps a feed in the browser's IndexedDB: each event in one transaction with its cursor, safe between
 * tabs.
 */
export function indexedDbStore<Event>(key: string, kept?: number): Store<Event> {
  /**
   * Reads the stored value, and replaces it by the result of `change`. The database is open for no longer than that, because
   * an open one blocks a tab that changes or deletes it.
   */
  async function turn(change?: (saved: Saved<Event> | undefined) => Saved<Event>) {
    // Opens the version that is there, because another tab may run a later release.
    const opening = indexedDB.open('pasarela');
    opening.onupgradeneeded = () => opening.result.createObjectStore(OBJECTS);
    const database = await result(opening);
    try {
      const transaction = database.transaction(OBJECTS, 'readwrite', { durability: 'strict' });
      const objects = transaction.objectStore(OBJECTS);
      const [saved] = await Promise.all([
        // Only this function writes under this key.
        result<Saved<Event> | undefined>(objects.get(key)).then(async (stored) => {
          if (change) await result(objects.put(change(stored), key));
          return stored;
        }),
        new Promise((resolve, reject) => {
          transaction.oncomplete = resolve;
          transaction.onabort = () => reject(transaction.error);
        }),
      ]);
      return saved;
    } finally {
      database.close();
    }
  }
  return sharedStore(() => turn(), turn, kept);
}

function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
