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
      // In whatever version it is there: another tab may run a later release.
      const request = indexedDB.open('pasarela');
      request.onupgradeneeded = () => request.result.createObjectStore(OBJECTS);
      opened = result(request);
      opened.then((database) => {
        database.onclose = gone;
        // Another tab changes or deletes it, and waits for this one.
        database.onversionchange = () => {
          gone();
          database.close();
        };
      }, gone);
    }
    const database = await opened;
    return database.transaction(OBJECTS, 'readwrite', { durability: 'strict' }).objectStore(OBJECTS);
  };
  // Nobody else writes under this key.
  const read = (objects: IDBObjectStore) => result<Saved<Event> | undefined>(objects.get(key));
  return sharedStore(
    async () => read(await open()),
    async (change) => {
      const objects = await open();
      const { transaction } = objects;
      await Promise.all([
        new Promise<void>((resolve, reject) => {
          transaction.oncomplete = () => resolve();
          transaction.onabort = () => reject(transaction.error);
        }),
        read(objects).then((saved) => result(objects.put(change(saved), key))),
      ]);
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
