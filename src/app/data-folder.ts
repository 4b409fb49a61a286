import { constants, existsSync } from 'node:fs';
import { access, mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { rootReason } from '../common/root-reason.ts';
import { sqliteLogIn } from '../events/sqlite/sqlite-log.ts';
import { sqliteRecordsIn } from '../money/open-money.ts';
import { otherStoreFile, otherStoreIn } from '../money/other-store.ts';
import { RETENTION_DAYS } from '../money/record.ts';
import { ConfigError } from './config.ts';
import type { ServerConfig } from './server-config.ts';

/**
 * Makes the folder of the log, the records and the spool if there is none.
 *
 * @throws ConfigError that names `DATA_DIR`, if the operating system does not let this process write there.
 */
export async function prepareDataFolder(dataDir: string): Promise<void> {
  const folder = resolve(dataDir);
  try {
    await make(folder);
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/, \w+ '.*/s, '') : String(error);
    throw new ConfigError(
      `The configuration is wrong:\n  DATA_DIR: got ${JSON.stringify(dataDir)}, which cannot be used (${reason}); wants a folder that this process may write to.`,
      { cause: error },
    );
  }
}

/**
 * Says that the folder's earlier gateway has kept its payments in another store than this one would, or may have, what would happen, and
 * what to do.
 *
 * @returns undefined where it has not
 */
export async function otherStoreProblem({
  dataDir,
  redisUrl,
}: Pick<ServerConfig, 'dataDir' | 'redisUrl'>): Promise<string | undefined> {
  const store = { dataDir, redisUrl: redisUrl?.reveal() };
  let found: string | undefined;
  let says = 'says';
  try {
    found = await otherStoreIn(store);
  } catch (error) {
    found = otherStoreFile(store);
    says = `cannot be read (${rootReason(error)}) and may say`;
  }
  if (found === undefined) return undefined;
  const [is, had, how] =
    redisUrl === undefined
      ? [
          'is not set',
          'with Redis',
          'rename that file where a gateway has run here without Redis since; otherwise name another, empty folder in DATA_DIR',
        ]
      : [
          'is set',
          'without Redis',
          'move events.sqlite and each file whose name begins with money.sqlite out of that folder',
        ];
  return `REDIS_URL: ${is}, and ${found} ${says} that this folder's gateway has made payments ${had} within the last ${RETENTION_DAYS} days. This gateway would not know their keys: a payment that an app sends again would be made again. docs/redis.md, "From DATA_DIR to Redis", says how to change the store. To go on all the same, ${how}.`;
}

/** @throws ConfigError where there is an {@link otherStoreProblem} */
export async function refuseOtherStore(config: Pick<ServerConfig, 'dataDir' | 'redisUrl'>): Promise<void> {
  const problem = await otherStoreProblem(config);
  if (problem !== undefined) throw new ConfigError(`The configuration is wrong:\n  ${problem}`);
}

/**
 * Returns what a gateway without Redis says that finds no record of payments in its folder: at the first start, and in another folder than
 * before, as an unset `DATA_DIR` depends on where the process is started, and a container's on its volume.
 */
export function newRecordHint({
  dataDir,
  redisUrl,
}: Pick<ServerConfig, 'dataDir' | 'redisUrl'>): string | undefined {
  if (redisUrl !== undefined || existsSync(sqliteRecordsIn(dataDir))) return undefined;
  return `DATA_DIR: ${resolve(dataDir)} holds no record of payments, and this gateway begins one. If a gateway has made payments before, end this one, and name the folder of that: otherwise a payment that an app sends again is made again.`;
}

/**
 * Returns what a gateway with Redis says that finds the log of one without Redis in its folder. Without `REDIS_URL` a later gateway would go on in
 * it: its epoch and its end are those of before, so no reader would be told of a gap.
 */
export function leftLogHint({
  dataDir,
  redisUrl,
}: Pick<ServerConfig, 'dataDir' | 'redisUrl'>): string | undefined {
  const log = resolve(sqliteLogIn(dataDir));
  if (redisUrl === undefined || !existsSync(log)) return undefined;
  return `DATA_DIR: ${log} is the log of a gateway without Redis, and a gateway with REDIS_URL does not read it. Move it out of the folder: without REDIS_URL a gateway here would go on in it, and tell no reader that the events in Redis are missing.`;
}

/**
 * Makes one folder after the other. `mkdir` with `recursive` never ends if the system denies that a parent exists, as in
 * /proc.
 */
async function make(folder: string): Promise<void> {
  const found = await stat(folder).catch(ignoreMissing);
  if (found?.isDirectory() === false) throw new Error(`ENOTDIR: ${folder} is no folder`);
  if (found !== undefined) return;
  await make(dirname(folder));
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    // Another process has made the folder meanwhile.
    if (error.code !== 'EEXIST') throw error;
  });
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
