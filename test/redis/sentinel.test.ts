import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { failoverAuthorityOf } from '../../src/redis/failover.ts';
import { failOverBySentinel, startWithSentinel } from '../helpers/redis-topologies.ts';
import { stillTime } from '../helpers/still-time.ts';
import { until } from '../helpers/until.ts';

interface Relay extends AsyncDisposable {
  readonly port: number;
  /** Connections on which a failover would be announced. */
  readonly listening: number;
  /** Questions for the primary's address that have not been passed on. */
  readonly held: number;
  hold(): void;
  release(): void;
  /** Tells whoever listens of failovers of these groups, all at once. */
  announce(...names: readonly string[]): void;
}

/** Passes everything on to a Sentinel, and holds up the questions for the primary's address when asked to. */
async function startRelay(sentinelPort: number): Promise<Relay> {
  const listeners = new Set<Socket>();
  const sockets = new Set<Socket>();
  let waiting: (() => void)[] | undefined;
  const server = createServer((client) => {
    const sentinel = connect(sentinelPort, '127.0.0.1');
    for (const socket of [client, sentinel]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    sentinel.pipe(client);
    client.on('data', (chunk) => {
      if (waiting !== undefined && chunk.includes('get-master-addr-by-name')) {
        waiting.push(() => sentinel.write(chunk));
      } else {
        sentinel.write(chunk);
      }
    });
    sentinel.on('data', (chunk) => {
      if (chunk.includes('+switch-master')) listeners.add(client);
    });
    client.on('close', () => {
      listeners.delete(client);
      sentinel.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    // A TCP server has a port.
    port: (server.address() as AddressInfo).port,
    get listening() {
      return listeners.size;
    },
    get held() {
      return waiting?.length ?? 0;
    },
    hold: () => {
      waiting = [];
    },
    release: () => {
      for (const pass of waiting ?? []) pass();
      waiting = undefined;
    },
    announce: (...names) => {
      const message = (text: string) => ['message', '+switch-master', text];
      const sent = names.map((name) => inRedis(message(`${name} 127.0.0.1 1 127.0.0.1 2`)));
      for (const listener of listeners) listener.write(sent.join(''));
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Texts as Redis tells them unasked (RESP3). */
const inRedis = (texts: readonly string[]): string =>
  [`>${texts.length}`, ...texts.flatMap((text) => [`$${text.length}`, text]), ''].join('\r\n');

function connected(url: string): Disposable & { readonly client: RedisClient } {
  const client = connectRedis(url, { enableOfflineQueue: false, commandTimeout: 1000, connectTimeout: 1000 });
  client.on('error', () => {});
  return { client, [Symbol.dispose]: () => client.disconnect() };
}

const answers = (client: RedisClient): Promise<boolean> =>
  client.ping().then(
    () => true,
    () => false,
  );

afterEach(() => void vi.useRealTimers());

it('a failover that is announced while the primary is being looked for leaves no connection dead', async () => {
  await using redis = await startWithSentinel();
  await using relay = await startRelay(redis.sentinel.port);
  using connection = connected(`redis+sentinel://127.0.0.1:${relay.port}/events`);
  const { client } = connection;
  await until(() => answers(client));
  await until(() => relay.listening === 1);

  relay.hold();
  await redis.primary.admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
  await until(() => relay.held > 0);
  await failOverBySentinel(redis.sentinel);
  await until(async () => {
    const named = await redis.sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
    return Array.isArray(named) && named[1] === String(redis.replica.port);
  });
  relay.release();

  // A connection that is made again meanwhile answers in between.
  await until(async () => {
    const [role, port] = await Promise.all([client.info('replication'), client.config('GET', 'port')]).catch(
      () => [],
    );
    return role?.includes('role:master') === true && String(port).includes(String(redis.replica.port));
  });
});

it('a Sentinel that was restarted is listened to again', async () => {
  await using redis = await startWithSentinel();
  using connection = connected(redis.url);
  const { client } = connection;
  const { admin } = redis.sentinel;
  const isHeard = async () =>
    /cmd=subscribe/.test(String(await admin.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB')));
  await until(() => answers(client));
  await until(isHeard);
  await redis.sentinel.kill();
  await redis.sentinel.start();
  await until(isHeard);

  // The old primary stays where it is, and takes writes: only the announcement tells that another one took its place.
  await failOverBySentinel(redis.sentinel);
  await until(async () => {
    const info = await client.info('server').catch(() => '');
    return info.includes(`tcp_port:${redis.replica.port}`);
  });
});

it('a Sentinel that was listened to, and refuses that now, ends nothing', async () => {
  await using redis = await startWithSentinel();
  using _connection = connected(redis.url);
  const unhandled = vi.fn<() => void>();
  process.on('unhandledRejection', unhandled);
  onTestFinished(() => void process.off('unhandledRejection', unhandled));
  const { admin } = redis.sentinel;
  const listening = async () => String(await admin.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB'));
  await until(async () => /cmd=subscribe/.test(await listening()));
  await admin.acl('SETUSER', 'default', '-subscribe');
  await admin.call('CLIENT', 'KILL', 'TYPE', 'PUBSUB');
  await until(async () => String(await admin.acl('LOG')).includes('subscribe'));
  expect(unhandled).not.toHaveBeenCalled();
});

it('a Sentinel that takes connections and says nothing is passed over', async () => {
  await using redis = await startWithSentinel();
  await using silent = await startRelay(redis.sentinel.port);
  silent.hold();
  using connection = connected(
    `redis+sentinel://127.0.0.1:${silent.port},127.0.0.1:${redis.sentinel.port}/events`,
  );
  await until(() => answers(connection.client));
  expect(silent.held).toBeGreaterThan(0);
});

it('a connection that is ended stays ended', async () => {
  await using redis = await startWithSentinel();
  using connection = connected(`redis+sentinel://127.0.0.1:${redis.sentinel.port}/events`);
  const { client } = connection;
  await until(() => answers(client));
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const ended = once(client, 'end');
  client.disconnect();
  await ended;
  // Long enough for every kind of reconnecting.
  vi.advanceTimersByTime(60_000);
  expect(client.status).toBe('end');
  await expect(client.ping()).rejects.toThrow('Connection is closed');
});

it('a connection that is ended leaves the Sentinels that it listened to', async () => {
  await using redis = await startWithSentinel();
  await using relay = await startRelay(redis.sentinel.port);
  using connection = connected(`redis+sentinel://127.0.0.1:${relay.port}/events`);
  await until(() => answers(connection.client));
  await until(() => relay.listening === 1);
  connection.client.disconnect();
  await until(() => relay.listening === 0);
});

it('a failover of another group is no news', async () => {
  await using redis = await startWithSentinel();
  await using relay = await startRelay(redis.sentinel.port);
  using connection = connected(`redis+sentinel://127.0.0.1:${relay.port}/events`);
  await until(() => answers(connection.client));
  await until(() => relay.listening === 1);
  const ended = vi.spyOn(connection.client, 'disconnect');
  relay.announce('another', 'events');
  await until(() => ended.mock.calls.length > 0);
  expect(ended.mock.calls).toEqual([[true]]);
  await until(() => answers(connection.client));
});

it('Sentinels with a password are listened to, asked, and left again', async () => {
  await using redis = await startWithSentinel();
  const { admin, port } = redis.sentinel;
  await admin.call('ACL', 'SETUSER', 'default', 'resetpass', '>of the Sentinels');
  const connections = async (type: string) =>
    String(await admin.call('CLIENT', 'LIST', 'TYPE', type))
      .trim()
      .split('\n');
  const url = `redis+sentinel://127.0.0.1:${port}/events?sentinelPassword=of%20the%20Sentinels`;
  using connection = connected(url);
  const { client } = connection;
  await until(() => answers(client));
  await until(async () => (await connections('PUBSUB')).some((line) => line.includes('cmd=subscribe')));
  if (!(client instanceof Redis)) throw new Error('Sentinels name one Redis');
  const authority = failoverAuthorityOf(url);
  const before = (await connections('NORMAL')).length;
  for (let count = 0; count < 5; count += 1)
    expect(await until(() => authority?.ask(client))).toMatchObject({ promotable: 1 });
  await until(async () => (await connections('NORMAL')).length <= before);
});

it('why no Sentinel can be asked is told as it is now', async () => {
  await using redis = await startWithSentinel();
  const { sentinel } = redis;
  await sentinel.kill();
  using connection = connected(`redis+sentinel://127.0.0.1:${sentinel.port}/nobody`);
  let told = '';
  connection.client.on('error', ({ message }) => {
    told = message;
  });
  await until(() => /^No Sentinel can be asked: .*ECONNREFUSED/.test(told));
  await sentinel.start();
  await until(() => told === 'No Sentinel can be asked: ERR No such master with that name');
});

it('that no Sentinel can be asked is not told where one names a server that is gone, whichever was asked last', async () => {
  await using redis = await startWithSentinel();
  const { admin, port } = redis.sentinel;
  // Nobody listens at port 1: neither the server that the Sentinel names, nor the other Sentinel.
  await admin.call('SENTINEL', 'MONITOR', 'gone', '127.0.0.1', '1', '2');
  const told: string[] = [];
  for (const sentinels of [`127.0.0.1:${port}`, `127.0.0.1:1,127.0.0.1:${port}`]) {
    using connection = connected(`redis+sentinel://${sentinels}/gone`);
    const tries = told.length + 5;
    connection.client.on('error', ({ message }) => told.push(message));
    await until(() => told.length >= tries);
  }
  expect(new Set(told)).toEqual(new Set(['connect ECONNREFUSED 127.0.0.1:1']));
});

it('each Sentinel is asked in turn where the first names a server that is gone', async () => {
  await using gone = await startWithSentinel();
  await using redis = await startWithSentinel();
  await gone.sentinel.admin.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', '1', '2');
  const { primary, sentinel } = redis;
  await sentinel.admin.call('SENTINEL', 'MONITOR', 'main', '127.0.0.1', String(primary.port), '2');
  using connection = connected(
    `redis+sentinel://127.0.0.1:${gone.sentinel.port},127.0.0.1:${sentinel.port}/main`,
  );
  await until(() => answers(connection.client));
});

it('a connection that was given up is made again, and never once it is ended', async () => {
  using time = stillTime();
  // Nobody listens there, and ioredis tries once.
  const client = connectRedis('redis://127.0.0.1:1', { retryStrategy: () => null });
  client.on('error', () => {});
  const isGivenUp = () => new Promise((resolve) => client.once('end', resolve));
  await isGivenUp();
  await time.pass(100);
  expect(client.status).toBe('connecting');
  await isGivenUp();
  let tries = 0;
  client.on('connecting', () => {
    tries += 1;
  });
  client.disconnect();
  await time.pass(60_000);
  expect(tries).toBe(0);
});
