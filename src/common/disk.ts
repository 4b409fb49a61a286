import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { entropy } from './entropy.ts';

/** The disk of this machine. */
export interface Disk {
  /** Opens a database. `busyTimeoutMs` is how long it waits for another process that writes, in milliseconds. */
  open(path: string, busyTimeoutMs?: number): DatabaseSync;
  /** Replaces the content of a private file, completely or not at all, also where other processes do so at the same moment. */
  replace(path: string, text: string): Promise<void>;
}

const system: Disk = {
  open: (path, timeout) => new DatabaseSync(path, timeout === undefined ? {} : { timeout }),
  async replace(path, text) {
    // Processes in two containers may have the same number.
    const own = `${path}.${entropy.uuid()}`;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
      await writeFile(own, text, { mode: 0o600 });
      await rename(own, path);
    } catch (error) {
      await rm(own, { force: true }).catch(() => undefined);
      throw error;
    }
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
