import { added, type Saved, type Store } from './stores.ts';

const OBJECTS = 'feeds';

/** Keeps a feed in the browser's IndexedDB: each event in one transaction with its cursor, safe between tabs. */
export function indexedDbStore<Event>(key: string, kept?: number): Store<Event> {
  let opened: Promise<IDBDatabase> | undefined;
  const open = async (): Promise<IDBObjectStore> => {
    opened ??= openDatabase();
    const database = await opened;
    return database.transaction(OBJECTS, 'readwrite', { durability: 'strict' }).objectStore(OBJECTS);
  };
  return {
    // Nobody else writes under this key.
    load: async () => (await result((await open()).get(key))) as Saved<Event> | undefined,
    async save(item, cursor) {
      const objects = await open();
      const { transaction } = objects;
      const done = new Promise<void>((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error);
      });
      const saved = (await result(objects.get(key))) as Saved<Event> | undefined;
      objects.put(added(saved, item, cursor, kept), key);
      await done;
    },
  };
}

async function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open('pasarela', 1);
  request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
  return result(request);
}

function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
