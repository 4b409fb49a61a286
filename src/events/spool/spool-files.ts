import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Spool } from './spool.ts';

/** Spool files of one folder. A process that would need another one gets no spool. */
const MOST_FILES = 256;

/** A file with the name of a spool that cannot be read, so that its events, if it holds any, cannot be reached. */
interface UnreadableSpool {
  /** The file's name, without the folder. */
  readonly name: string;
  readonly reason: string;
}

/**
 * Opens the first file of the folder that no other process has, with what an earlier process left in it. A file that holds
 * something else is passed over; `openAbandoned` names it.
 *
 * @param damaged paths of spools that must not be taken, because what is added to one could not be read again
 * @throws when the folder cannot be written
 */
export function openSpool(dataDir: string, damaged: ReadonlySet<string> = new Set()): Spool {
  for (let index = 0; index < MOST_FILES; index += 1) {
    const path = join(dataDir, `spooled-${index}.sqlite`);
    if (damaged.has(path)) continue;
    try {
      const spool = Spool.openFile(path);
      if (spool !== undefined) return spool;
    } catch (error) {
      // If an empty file, or none, could not be opened here, the next one would fail too.
      if (!isFilled(path)) throw error;
    }
  }
  throw new Error(`${dataDir} holds ${MOST_FILES} spools that are in use`);
}

/**
 * Returns the spools of processes that have ended, if they hold events, and the files that cannot be opened. It opens no
 * file of this process again, and none that another process has.
 *
 * @param own the paths of the spools that this process has
 * @param earlier names of spools of earlier versions that no process uses any more; an empty one is removed
 * @throws when the folder cannot be read
 */
export function openAbandoned(
  dataDir: string,
  own: readonly string[],
  earlier: readonly string[],
): { readonly abandoned: readonly Spool[]; readonly unreadable: readonly UnreadableSpool[] } {
  const abandoned: Spool[] = [];
  const unreadable: UnreadableSpool[] = [];
  for (const name of readdirSync(dataDir)) {
    const path = join(dataDir, name);
    if (!(isSpoolName(name) || earlier.includes(name)) || own.includes(path)) continue;
    try {
      const spool = Spool.openFile(path);
      if (spool === undefined) continue;
      if (spool.size > 0) abandoned.push(spool);
      else spool.leave();
    } catch (error) {
      unreadable.push({ name, reason: String(error) });
    }
  }
  return { abandoned, unreadable };
}

/** Whether a file of `DATA_DIR` is, or should be, a spool. */
export function isSpoolName(name: string): boolean {
  return /^spooled-\d+\.sqlite$/.test(name);
}

/** Whether anything is at the path but an empty file. */
function isFilled(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (!found.isFile() || found.size > 0);
}
