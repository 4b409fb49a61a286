import { expect, it } from 'vitest';
import { SettingsWatch } from '../../../src/events/redis/settings-watch.ts';
import { connectRedis } from '../../../src/redis/connection.ts';
import { recordingLogger } from '../../helpers/events.ts';
import { startRedis } from '../../helpers/redis.ts';

it('what an operator changes while Redis runs is seen with the next look, and told once each time', async () => {
  await using redis = await startRedis();
  const client = connectRedis(redis.url, {});
  await client.ping();
  const logger = recordingLogger();
  const watch = new SettingsWatch(client, redis.url, logger);
  const aboutSync = () => logger.lines.filter(({ message }) => message.includes('appendfsync')).length;
  await watch.look();
  expect(aboutSync()).toBe(0);
  for (const times of [1, 2]) {
    await redis.admin.config('SET', 'appendfsync', 'everysec');
    for (const _look of ['first', 'second']) await watch.look();
    expect(aboutSync()).toBe(times);
    await redis.admin.config('SET', 'appendfsync', 'always');
    await watch.look();
  }
  client.disconnect();
});
