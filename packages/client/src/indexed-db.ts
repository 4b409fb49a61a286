import { type Saved, type Store, sharedStore } from './stores.ts';

const OBJECTS = 'feeds';

/** Keeps a feed in the browser's IndexedDB: each event in one transaction with its cursor, safe between tabs. */
export function indexedDbStore<Event>(key: string, kept?: number): Store<Event> {
  let opened: Promise<IDBDatabase> | undefined;
  /** Where the database cannot be used any more: the next call opens it again. */
  const gone = (): void => {
    opened = undefined;
  };
  const open = async (): Promise<IDBObjectStore> => {
    if (opened === undefined) {
      const request = indexedDB.open('pasarela', 1);
      request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
      opened = result(request);
      opened.then((database) => {
        database.onclose = gone;
      }, gone);
    }
    const database = await opened;
    return database.transaction(OBJECTS, 'readwrite', { durability: 'strict' }).objectStore(OBJECTS);
  };
  // Nobody else writes under this key.
  const read = async (objects: IDBObjectStore) =>
    (await result(objects.get(key))) as Saved<Event> | undefined;
  return sharedStore(
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

function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
