import { type Counted, countedStore, type Store } from './stores.ts';

const OBJECTS = 'feeds';

/** Keeps a feed in the browser's IndexedDB: each event in one transaction with its cursor, safe between tabs. */
export function indexedDbStore<Event>(key: string, kept?: number): Store<Event> {
  let opened: Promise<IDBDatabase> | undefined;
  const open = async (): Promise<IDBObjectStore> => {
    opened ??= openDatabase(() => {
      opened = undefined;
    });
    const database = await opened;
    return database.transaction(OBJECTS, 'readwrite', { durability: 'strict' }).objectStore(OBJECTS);
  };
  // Nobody else writes under this key.
  const read = async (objects: IDBObjectStore) =>
    (await result(objects.get(key))) as Counted<Event> | undefined;
  return countedStore(
    async () => read(await open()),
    async (change) => {
      const objects = await open();
      const { transaction } = objects;
      const done = new Promise<void>((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error);
      });
      objects.put(change(await read(objects)), key);
      await done;
    },
    kept,
  );
}

/** @param gone called where the database cannot be used: the next call opens it again */
async function openDatabase(gone: () => void): Promise<IDBDatabase> {
  try {
    const request = indexedDB.open('pasarela', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
    const database = await result(request);
    database.onclose = gone;
    return database;
  } catch (cause) {
    gone();
    throw cause;
  }
}

function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
