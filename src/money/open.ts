import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from './ambient.ts';
import type { MoneyRecords } from './record.ts';
import { openRedisRecords } from './redis-record.ts';
import { openSqliteRecords } from './sqlite-record.ts';

/**
 * The record of each intent to pay: in Redis when there is one, else in `money.sqlite` in the data folder.
 *
 * @param options.redisUrl as `connectRedis` takes it; undefined for the file.
 * @param options.dataDir made when it is not there.
 */
export async function openMoneyRecords(options: {
  readonly redisUrl: string | undefined;
  readonly dataDir: string;
  readonly logger: Logger;
}): Promise<MoneyRecords> {
  if (options.redisUrl !== undefined) return openRedisRecords(options.redisUrl, options.logger);
  mkdirSync(options.dataDir, { recursive: true });
  return openSqliteRecords(join(options.dataDir, 'money.sqlite'));
}
