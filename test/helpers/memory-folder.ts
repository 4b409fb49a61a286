import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/**
 * A folder in memory, where the machine has one. A file in it is synced at once, whatever else writes to the disk. For what need not
 * outlive the test.
 */
export const MEMORY_FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
