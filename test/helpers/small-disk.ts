import { disk, useDisk } from '../../src/common/disk.ts';

/**
 * Opens what keeps a database by `open`, and leaves its file so little room: a write that needs more fails as on a full disk.
 *
 * @param room in pages of 4 KiB
 */
export function withRoom<T>(room: number, open: () => T): T {
  const system = disk;
  const opened: ReturnType<typeof disk.open>[] = [];
  const restore = useDisk({
    ...system,
    open(...of) {
      const database = system.open(...of);
      opened.push(database);
      return database;
    },
  });
  try {
    const result = open();
    for (const database of opened) {
      const pages = Number(database.prepare('PRAGMA page_count').get()?.['page_count']);
      database.exec(`PRAGMA max_page_count = ${pages + room}`);
    }
    return result;
  } finally {
    restore();
  }
}
