import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { connectRedis, type RedisClient } from '../../src/redis/connection.ts';
import { failOverBySentinel, startWithSentinel } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

interface Relay extends AsyncDisposable {
  readonly port: number;
  /** Connections on which a failover would be announced. */
  readonly listening: number;
  /** Questions for the primary's address that have not been passed on. */
  readonly held: number;
  hold(): void;
  release(): void;
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
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

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
  await until(() => relay.held === 1);
  await failOverBySentinel(redis.sentinel);
  await until(async () => {
    const named = await redis.sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
    return Array.isArray(named) && named[1] === String(redis.replica.port);
  });
  relay.release();

  await until(() => answers(client));
  expect(await client.info('replication')).toContain('role:master');
  expect(await client.config('GET', 'port')).toContain(String(redis.replica.port));
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
