import { mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { entropy } from './entropy.ts';

/** The disk of this machine. */
export interface Disk {
  /** Opens a database. `busyTimeoutMs` is how long it waits for another process that writes, in milliseconds. */
  open(path: string, busyTimeoutMs?: number): DatabaseSync;
  /**
   * Replaces the content of a private file, completely or not at all, also where other processes do so at the same moment, or the machine loses
   * its power.
   */
  replace(path: string, text: string): Promise<void>;
  /** Resolves once the disk has what was written into a file. Keeps nobody else waiting. */
  sync(path: string): Promise<void>;
}

const system: Disk = {
  open(path, timeout) {
    const database = new DatabaseSync(path, timeout === undefined ? {} : { timeout });
    // To make an index, or to sort, of more than 2 MB SQLite would need a temporary file. A container with a read-only root has no place
    // for one, and the statement fails there.
    database.exec('PRAGMA temp_store = MEMORY');
    return database;
  },
  async replace(path, text) {
    // Processes in two containers may have the same number.
    const own = `${path}.${entropy.uuid()}`;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      // Some file systems (XFS) would else put the name in its place before the content is on the disk.
      await writeFile(own, text, { mode: 0o600, flush: true });
      await rename(own, path);
    } catch (error) {
      await rm(own, { force: true }).catch(() => undefined);
      throw error;
    }
  },
  async sync(path) {
    await using file = await open(path);
    await file.datasync();
  },
};

/** The disk. Read this binding for each use, and keep no copy: the simulator replaces it. */
export let disk: Disk = system;

/**
 * Replaces the system's disk, as the simulator does, whose processes end while Node goes on. @returns a function that
 * restores it.
 */
export function useDisk(other: Disk): () => void {
  disk = other;
  return () => {
    disk = system;
  };
}
