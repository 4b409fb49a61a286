import { chmodSync, closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** SQLite keeps these beside a database. It gives new ones the database's mode. */
const SUFFIXES = ['', '-wal', '-shm', '-journal'];
const OF_OTHERS = 0o077;

/**
 * Makes a database file, if there is none, that only this user can read, in a folder of the same kind, because it holds
 * personal data. A file that is already there loses the rights of other users.
 *
 * A file that exists is never opened here. POSIX drops all locks that a process holds on a file as soon as the process closes
 * any descriptor of it. A second process could then take a database that this one still writes.
 *
 * @returns true if the file was made
 * @throws when the folder or the file cannot be made
 */
export function makePrivate(path: string): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const made = create(path);
  for (const suffix of SUFFIXES) {
    const file = path + suffix;
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.isFile() === true && (found.mode & OF_OTHERS) !== 0) chmodSync(file, found.mode & ~OF_OTHERS);
  }
  return made;
}

function create(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
