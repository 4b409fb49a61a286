import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import type { Entry } from '../../../src/events/entry.ts';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import { silentMetrics } from '../../../src/events/metrics.ts';
import { RedisChannels } from '../../../src/events/redis/channels.ts';
import { redisKeys } from '../../../src/events/redis/keys.ts';
import type { SubscriberEvents } from '../../../src/events/redis/subscribers.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/connection.ts';
import { recordingLogger } from '../../helpers/events.ts';
import { stillTime } from '../../helpers/still-time.ts';

/** Channels of which the test answers each question to subscribe one, and tells what happens on the connections. */
function start() {
  const connection = connectRedis('redis://127.0.0.1', { lazyConnect: true });
  const asked: PromiseWithResolvers<RedisClient>[] = [];
  const left: [string, RedisClient][] = [];
  let events: SubscriberEvents | undefined;
  const logger = recordingLogger();
  const channels = new RedisChannels(
    (heard) => {
      events = heard;
      return {
        connections: [],
        isReady: true,
        subscribe() {
          const answer = Promise.withResolvers<RedisClient>();
          asked.push(answer);
          return answer.promise;
        },
        unsubscribe: (channel, from) => void left.push([channel, from]),
        prune: () => {},
        stop: () => {},
      };
    },
    logger,
    silentMetrics,
  );
  onTestFinished(() => {
    channels.stop();
    connection.disconnect();
  });
  if (events === undefined) throw new Error('it listens');
  return { channels, connection, asked, left, events, logger };
}

it('who follows a client anew is told of its events, also where the one before could not be subscribed in the end', async () => {
  const clientId = randomUUID();
  const { channels, connection, asked, events } = start();
  const heard: string[] = [];
  const listener = (name: string) => ({
    receive: ({ event }: Entry) => void heard.push(`${name} ${event.id}`),
    resync: () => {},
  });
  const first = channels.attach(clientId, listener('first'));
  channels.detach(clientId);
  const second = channels.attach(clientId, listener('second'));
  asked[1]?.resolve(connection);
  await second;
  asked[0]?.reject(new Error('the connection has ended'));
  await expect(first).rejects.toBeInstanceOf(StoreUnavailableError);
  const event = { id: 'event-1', type: 'MONEY_IN', receivedAt: '2026-01-01T00:00:00.000Z', payload: {} };
  events.message(redisKeys(clientId).channel, `epoch|epoch|1-0|${JSON.stringify(event)}`);
  expect(heard).toEqual(['second event-1']);
});

it('a channel that its server no longer carries is subscribed again on a connection that stands, and its log looked at, each time', async () => {
  using time = stillTime();
  const { channels, connection, asked, events } = start();
  let looks = 0;
  const resync = () => {
    looks += 1;
  };
  const attached = channels.attach(randomUUID(), { receive: () => {}, resync });
  asked[0]?.resolve(connection);
  await attached;
  for (const count of [1, 2]) {
    expect([channels.isComplete, asked.length, looks]).toEqual([true, count, count - 1]);
    events.lost(connection);
    expect(channels.isComplete).toBe(false);
    await time.pass(500);
    asked[count]?.resolve(connection);
    await time.pass(0);
  }
  expect([channels.isComplete, asked.length, looks]).toEqual([true, 3, 2]);
});

it('a channel whose listener has gone while it was subscribed is left again, and not asked for after that', async () => {
  using time = stillTime();
  const clientId = randomUUID();
  const { channels, connection, asked, left, events } = start();
  const attached = channels.attach(clientId, { receive: () => {}, resync: () => {} });
  channels.detach(clientId);
  expect(left).toEqual([]);
  asked[0]?.resolve(connection);
  await attached;
  expect(left).toEqual([[redisKeys(clientId).channel, connection]]);
  events.lost(connection);
  await time.pass(500);
  expect([channels.isComplete, asked.length]).toEqual([true, 1]);
});

it('a channel that is subscribed too late for its listener is left again, and stays where another listens by then', async () => {
  using time = stillTime();
  const { channels, connection, asked, left } = start();
  const [gone, followed] = [randomUUID(), randomUUID()];
  const listener = { receive: () => {}, resync: () => {} };
  const attached = [gone, followed].map((clientId) => channels.attach(clientId, listener));
  const refused = Promise.all(
    attached.map((one) => expect(one).rejects.toBeInstanceOf(StoreUnavailableError)),
  );
  await time.pass(2_000);
  await refused;
  const again = channels.attach(followed, listener);
  for (const question of asked) question.resolve(connection);
  await again;
  expect(left).toEqual([[redisKeys(gone).channel, connection]]);
});

it('a check that is asked for while channels are subscribed again subscribes all once more, though a connection is lost then', async () => {
  using time = stillTime();
  const { channels, connection, asked, events } = start();
  for (const attached of [0, 1]) {
    const attaching = channels.attach(randomUUID(), { receive: () => {}, resync: () => {} });
    asked[attached]?.resolve(connection);
    await attaching;
  }
  channels.check();
  expect(asked).toHaveLength(4);
  channels.check();
  const other = connectRedis('redis://127.0.0.1', { lazyConnect: true });
  events.lost(other);
  await time.pass(500);
  for (const question of asked.slice(2)) question.resolve(connection);
  await time.pass(0);
  expect(asked).toHaveLength(6);
  other.disconnect();
});

it('a lost channel is asked for again and again, however often that fails', async () => {
  using time = stillTime();
  const { channels, connection, asked, events } = start();
  let looks = 0;
  const resync = () => {
    looks += 1;
  };
  const attached = channels.attach(randomUUID(), { receive: () => {}, resync });
  asked[0]?.resolve(connection);
  await attached;
  events.lost(connection);
  for (const failed of [1, 2, 3]) {
    await time.pass(500);
    expect([asked.length, channels.isComplete, looks]).toEqual([failed + 1, false, 0]);
    asked[failed]?.reject(new Error('the connection has ended'));
    await time.pass(0);
  }
  await time.pass(500);
  asked[4]?.resolve(connection);
  await time.pass(0);
  expect([asked.length, channels.isComplete, looks]).toEqual([5, true, 1]);
});

it('a channel that a check could not subscribe again is not carried from then on, and asked for soon, each time', async () => {
  using time = stillTime();
  const { channels, connection, asked } = start();
  const attached = channels.attach(randomUUID(), { receive: () => {}, resync: () => {} });
  asked[0]?.resolve(connection);
  await attached;
  for (const failed of [1, 3]) {
    channels.check();
    asked[failed]?.reject(new Error('the connection does not answer'));
    await time.pass(0);
    expect([asked.length, channels.isComplete]).toEqual([failed + 1, false]);
    await time.pass(500);
    expect(asked).toHaveLength(failed + 2);
    asked[failed + 1]?.resolve(connection);
    await time.pass(0);
    expect(channels.isComplete).toBe(true);
  }
});

it('that channels cannot be subscribed again is told once, and once more after they could', async () => {
  using time = stillTime();
  const { channels, connection, asked, events, logger } = start();
  const attached = channels.attach(randomUUID(), { receive: () => {}, resync: () => {} });
  asked[0]?.resolve(connection);
  await attached;
  for (const outage of [1, 2]) {
    events.lost(connection);
    for (const answer of ['no', 'no', 'yes']) {
      await time.pass(500);
      if (answer === 'yes') asked.at(-1)?.resolve(connection);
      else asked.at(-1)?.reject(new Error('the connection has ended'));
      await time.pass(0);
    }
    expect(logger.lines.map(({ level }) => level)).toEqual(Array.from({ length: outage }, () => 'warn'));
  }
});
