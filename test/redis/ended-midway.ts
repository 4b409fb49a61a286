import { setTimeout as pause } from 'node:timers/promises';
import { connectRedis } from '../../src/redis/connection.ts';

/** Makes many connections to the Redis named, ends each a little later than the one before, and says so once all are closed. */
const CONNECTIONS = 300;
const LONGEST_MS = 15;

process.once('beforeExit', () => console.log('all ended'));
for (let index = 0; index < CONNECTIONS; index += 1) {
  const redis = connectRedis(process.argv[2] ?? '', { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  redis.on('error', () => undefined);
  await pause((index / CONNECTIONS) * LONGEST_MS);
  redis.disconnect();
}
