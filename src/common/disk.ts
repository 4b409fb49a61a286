import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** What is kept on the disk of this machine. */
export interface Disk {
  /** Opens a database. `busyTimeoutMs` is how long it waits for another process that writes. */
  open(path: string, busyTimeoutMs?: number): DatabaseSync;
  /** Puts a text in the place of a private file, whole or not at all. `by` names the process among those that write it. */
  replace(path: string, text: string, by: number): Promise<void>;
}

const system: Disk = {
  open: (path, timeout) => new DatabaseSync(path, timeout === undefined ? {} : { timeout }),
  async replace(path, text, by) {
    const own = `${path}.${by}`;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(own, text, { mode: 0o600 });
    await rename(own, path);
  },
};

/** The disk. Always ask for it anew: another may take its place. */
export let disk: Disk = system;

/** Puts another in the place of the system's, as the simulator does: its processes end while Node goes on. @returns puts it back. */
export function useDisk(other: Disk): () => void {
  disk = other;
  return () => {
    disk = system;
  };
}
