import { constants } from 'node:fs';
import { access, open, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { leftLogHint, otherStoreProblem } from '../../app/data-folder.ts';
import type { Variables } from '../../app/variables.ts';
import { entropy } from '../../common/entropy.ts';
import { isEarlierSpoolName } from '../../events/spool/earlier-spools.ts';
import { isSpoolName } from '../../events/spool/spool-files.ts';
import { PROBE_BYTES } from '../../events/sqlite/file.ts';
import { type Finding, Findings, reasonOf } from './finding.ts';

/** The first bytes of every SQLite file (https://www.sqlite.org/fileformat.html, 1.3.1). */
const DATABASE_HEADER = 'SQLite format 3\0';
export const UNREADABLE_SPOOL_CURE =
  'Keep a copy of the file, and follow docs/alerts.md, PasarelaSpoolUnreadable.';

const OTHER_STORE_CURE =
  'Set REDIS_URL as that gateway had it, or follow docs/redis.md, "From DATA_DIR to Redis".';

const LEFT_LOG_CURE =
  'Move events.sqlite out of DATA_DIR, or name another, empty folder: docs/redis.md, "From DATA_DIR to Redis".';

/**
 * Checks that this process could write to the folder of the log, the records and the spool, and that no earlier gateway has kept its
 * payments in another store.
 */
export async function lookAtFolder({
  DATA_DIR,
  UPSTREAM_URL,
  REDIS_URL,
}: Variables): Promise<readonly Finding[]> {
  const found = new Findings('folder');
  if (DATA_DIR === undefined && UPSTREAM_URL === undefined) {
    found.ok('a temporary one, gone when the sandbox ends');
    return found.list;
  }
  const folder = resolve(DATA_DIR ?? './data');
  try {
    // First: what keeps another user than the gateway's out of the folder says nothing of the files in it.
    await access(await nearest(folder), constants.X_OK);
    const other = await otherStoreProblem({ dataDir: folder, redisUrl: REDIS_URL });
    if (other !== undefined && UPSTREAM_URL !== undefined)
      found.failure(`the gateway does not start: ${other}`, OTHER_STORE_CURE);
    const left = leftLogHint({ dataDir: folder, redisUrl: REDIS_URL });
    if (left !== undefined && UPSTREAM_URL !== undefined) found.warning(left, LEFT_LOG_CURE);
    await access(await nearest(folder), constants.W_OK);
    await writeInto(folder);
    found.ok(`${folder} can be written`);
    for (const spool of await damagedSpools(folder)) {
      found.failure(
        `${spool} in ${folder} is no database: events in it are delivered to nobody`,
        UNREADABLE_SPOOL_CURE,
      );
    }
  } catch (error) {
    found.failure(
      `${folder} cannot be written: ${reasonOf(error)}`,
      'Set DATA_DIR to a folder on a disk that outlives the process and has room, owned by the user that runs the gateway.',
    );
  }
  return found.list;
}

/** Writes a file as large as the largest event and removes it: a full disk lets a process open files. Does nothing where there is no folder yet. */
async function writeInto(folder: string): Promise<void> {
  if ((await nearest(folder)) !== folder) return;
  const path = join(folder, `doctor-${entropy.uuid()}`);
  try {
    await writeFile(path, Buffer.alloc(PROBE_BYTES), { flush: true, mode: 0o600 });
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * Returns files with the name of a spool that do not begin like a database. Damage further on only the gateway finds, because
 * two processes must never open one spool.
 */
async function damagedSpools(folder: string): Promise<readonly string[]> {
  const names = (await readdir(folder).catch(() => [])).filter(
    (name) => isSpoolName(name) || isEarlierSpoolName(name),
  );
  const damaged = await Promise.all(
    names.map(async (name) => {
      try {
        await using file = await open(join(folder, name));
        const { bytesRead, buffer } = await file.read(Buffer.alloc(DATABASE_HEADER.length), { position: 0 });
        return bytesRead > 0 && buffer.toString('latin1') !== DATABASE_HEADER;
      } catch {
        return true;
      }
    }),
  );
  return names.filter((_, index) => damaged[index]);
}

/** Returns the folder, or the nearest existing one above it, in which it would be made. */
async function nearest(folder: string): Promise<string> {
  for (let path = folder; ; path = dirname(path)) {
    try {
      await access(path);
      return path;
    } catch (error) {
      const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (!isMissing || path === dirname(path)) throw error;
    }
  }
}
