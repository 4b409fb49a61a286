import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Cluster } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { clock, type Timer, useClock } from '../../src/common/clock.ts';
import { connectRedis, silenceOf } from '../../src/redis/connection.ts';
import { inTime } from '../../src/redis/in-time.ts';
import { logOutages } from '../../src/redis/outages.ts';
import { parseRedisUrl, withTlsFiles } from '../../src/redis/url.ts';
import { recordingLogger } from '../helpers/events.ts';
import { DURABLE, freePort, startRedis } from '../helpers/redis.ts';
import { startCluster } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

const plain = {
  tls: false,
  username: undefined,
  password: undefined,
  db: 0,
  primaryName: undefined,
  sentinelPassword: undefined,
  tlsFiles: {},
};

describe('REDIS_URL', () => {
  it('names one Redis, with the usual port and database when none are given', () => {
    expect(parseRedisUrl('redis://cache')).toEqual({
      ...plain,
      form: 'standalone',
      nodes: [{ host: 'cache', port: 6379 }],
    });
  });

  it('carries credentials, percent-decoded, a database and TLS', () => {
    expect(parseRedisUrl('rediss://app:p%40ss:w@cache:7000/3')).toEqual({
      ...plain,
      form: 'standalone',
      nodes: [{ host: 'cache', port: 7000 }],
      tls: true,
      username: 'app',
      password: 'p@ss:w',
      db: 3,
    });
  });

  it.each([
    'rediss://cache',
    'rediss://cache/3?tlsKey=%2Fkey.pem',
    'rediss+sentinel://one,two/primary?sentinelPassword=s',
  ])('carries the files of the environment beside what it says itself: %s', (url) => {
    const own = parseRedisUrl(url);
    expect(parseRedisUrl(withTlsFiles(url, { ca: '/a&b.pem', cert: undefined, key: undefined }))).toEqual({
      ...own,
      tlsFiles: { ...own.tlsFiles, ca: '/a&b.pem' },
    });
  });

  it('names Sentinels, the primary they watch, and their own password', () => {
    expect(parseRedisUrl('redis+sentinel://:pw@a:1,b,[::1]:3/main?db=2&sentinelPassword=sp')).toEqual({
      form: 'sentinel',
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26379 },
        { host: '::1', port: 3 },
      ],
      tls: false,
      username: undefined,
      password: 'pw',
      db: 2,
      primaryName: 'main',
      sentinelPassword: 'sp',
      tlsFiles: {},
    });
  });

  it.each([
    ['a+b/c==', 'a+b/c=='],
    ['a%2Bb%26c%25d%20e', 'a+b&c%d e'],
    ['50%off', '50%off'],
  ])('carries the password of the Sentinels that is written as %s', (written, password) => {
    const url = `redis+sentinel://s1/main?sentinelPassword=${written}&db=2`;
    expect(parseRedisUrl(url)).toMatchObject({ sentinelPassword: password, db: 2 });
  });

  it('ignores a parameter that it does not know, but for what may be the rest of a password', () => {
    expect(parseRedisUrl('redis://cache?family=4')).toEqual(parseRedisUrl('redis://cache'));
    for (const password of ['one&hidden', 'one&hidden=2', 'hidden&']) {
      const cut = (): unknown => parseRedisUrl(`redis+sentinel://s1/main?sentinelPassword=${password}`);
      expect(cut).toThrow(/%26/);
      expect(cut).not.toThrow(/hidden/);
    }
  });

  it('names the nodes of a Cluster', () => {
    expect(parseRedisUrl('rediss+cluster://a:1,b:2')).toEqual({
      ...plain,
      form: 'cluster',
      tls: true,
      nodes: [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
      ],
    });
  });

  it.each([
    ['http://cache'],
    ['redis://'],
    ['redis://a:1,b:2'],
    ['redis+sentinel://a:1'],
    ['redis+cluster://a:1?db=1'],
    ['redis://cache/one'],
    ['redis://:hidden@cache:port'],
  ])('that is %s is refused with the forms wanted, and never repeated', (url) => {
    const refusal = (): unknown => parseRedisUrl(url);
    expect(refusal).toThrow(/redis\+cluster:\/\//);
    expect(refusal).not.toThrow(/hidden/);
  });
});

it('a connection that is ended while it waits to be made again is not made again', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const before = clock;
  const timers = new Set<Timer | undefined>();
  const restore = useClock({
    ...before,
    setTimeout(callback, ms, ...args) {
      const timer = before.setTimeout(callback, ms, ...args);
      timers.add(timer);
      return timer;
    },
    clearTimeout(timer) {
      timers.delete(timer);
      before.clearTimeout(timer);
    },
  });
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = connectRedis(url, { retryStrategy: () => null });
  await new Promise<void>((ended) => client.once('end', () => ended()));
  expect(timers.size).toBe(1);
  client.disconnect();
  expect(timers.size).toBe(0);
  restore();
  server.close();
});

it.each([
  ['one Redis', (port: number) => `redis://127.0.0.1:${port}`],
  ['Sentinel', (port: number) => `redis+sentinel://127.0.0.1:${port}/events`],
  ['a Cluster', (port: number) => `redis+cluster://127.0.0.1:${port}`],
])('a command that may not wait fails while %s is away', async (_what, url) => {
  const client = connectRedis(url(await freePort()), {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 50,
  });
  client.on('error', () => {});
  try {
    await expect(client.get('key')).rejects.toThrow('enableOfflineQueue');
  } finally {
    client.disconnect();
  }
});

it('a command that has timed out is not sent when the connection is made again', async () => {
  await using redis = await startRedis();
  let isSilent = false;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const redisSide = connect(redis.port, '127.0.0.1');
    for (const socket of [client, redisSide]) sockets.add(socket.on('error', () => {}));
    client.on('data', (data) => isSilent || redisSide.write(data));
    redisSide.pipe(client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connectRedis(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    maxRetriesPerRequest: 1,
    commandTimeout: 200,
    socketTimeout: 200,
    connectTimeout: 200,
    retryStrategy: () => 20,
  });
  client.on('error', () => {});
  const ready = () => new Promise<void>((resolve) => void client.once('ready', resolve));
  try {
    await ready();
    isSilent = true;
    const late = new Error('Command timed out');
    const sent = [client.set('alone', ''), client.pipeline().set('piped', '').wait(0, 1).exec()];
    expect(await Promise.allSettled(sent)).toEqual([
      { status: 'rejected', reason: late },
      { status: 'fulfilled', value: [[late], [late]] },
    ]);
    // As a server that stands still, or a proxy without one, the next connection is silent too.
    await new Promise<void>((resolve) => void client.once('reconnecting', resolve));
    const back = ready();
    isSilent = false;
    await back;
    const kept = await until(() => client.mget('alone', 'piped').catch(() => undefined));
    expect(kept).toEqual([null, null]);
    expect(await until(() => client.set('later', '').catch(() => undefined))).toBe('OK');
  } finally {
    client.disconnect();
    server.close();
    for (const socket of sockets) socket.destroy();
  }
});

it.each([
  ['one Redis', () => startRedis()],
  ['a Cluster', () => startCluster()],
])(
  'an answer of %s that came while the process was busy counts, however late it is read',
  async (_, start) => {
    await using redis = await start();
    const client = connectRedis(redis.url, {
      maxRetriesPerRequest: 0,
      commandTimeout: 100,
      socketTimeout: 100,
    });
    client.on('error', () => {});
    const [alone, piped] = ['{of one slot}', '{of one slot}:piped'];
    try {
      await until(() =>
        client.set(alone, 'before').then(
          () => true,
          () => false,
        ),
      );
      // What must be on replicas is written by the node itself.
      const nodes = client instanceof Cluster ? client.nodes('master') : [client];
      const node = nodes.find(({ status }) => status === 'ready');
      const answers = Promise.all([
        client.get(alone),
        client.pipeline().set(piped, '').get(piped).exec(),
        inTime(client.set(alone, 'after'), 100),
        node?.pipeline().ping().exec(),
      ]);
      // Commands leave in this turn of the event loop; their answers lie in the socket when it ends.
      await clock.immediate();
      const begun = performance.now();
      while (performance.now() - begun < 1_000);
      const pipeline = [
        [null, 'OK'],
        [null, ''],
      ];
      expect(await answers).toEqual(['before', pipeline, 'OK', [[null, 'PONG']]]);
      expect(client.status).toBe('ready');
    } finally {
      client.disconnect();
    }
  },
);

it('why a connection could not be made is not told of the silence that comes after it was', async () => {
  await using redis = await startRedis();
  const client = connectRedis(redis.url, { maxRetriesPerRequest: 0, retryStrategy: () => 20 });
  try {
    await once(client, 'ready');
    const late = new Error('Command timed out');
    expect(silenceOf(client, late)).toBe('Command timed out');
    await redis.kill();
    await until(() => silenceOf(client, late) === 'connect ECONNREFUSED');
    const ready = new Promise((resolve) => client.once('ready', resolve));
    await redis.start();
    await ready;
    expect(silenceOf(client, late)).toBe('Command timed out');
  } finally {
    client.disconnect();
  }
});

it('that the other side has hung up hides no reason that was told before', () => {
  const client = connectRedis('redis://127.0.0.1', { lazyConnect: true });
  const said = (code: string, message: string) => {
    client.emit('error', Object.assign(new Error(message), { code }));
    return silenceOf(client, new Error('Connection is closed.'));
  };
  expect([
    said('ECONNRESET', 'read ECONNRESET'),
    said('DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'),
    said('ECONNRESET', 'read ECONNRESET'),
  ]).toEqual(['read ECONNRESET', 'self-signed certificate', 'self-signed certificate']);
  client.disconnect();
});

it('why a connection could not be made names no address, neither that of the server nor the own one', () => {
  const client = connectRedis('redis://127.0.0.1', { lazyConnect: true });
  // So Node says it at once where there is no way to a network.
  client.emit('error', new Error('connect ENETUNREACH 10.20.30.40:6379 - Local (0.0.0.0:0)'));
  expect(silenceOf(client, new Error('Connection is closed.'))).toBe('connect ENETUNREACH');
  client.disconnect();
});

describe('a database that Redis refuses', () => {
  // In database 0 no payment of the other one is known, so that a key used there would pay again.
  const within = (url: string) =>
    connectRedis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 0, retryStrategy: () => 20 });

  it('is never taken for database 0', async () => {
    await using redis = await startRedis();
    const client = within(`${redis.url}/99`);
    const [taken, again] = [vi.fn<() => void>(), vi.fn<() => void>()];
    client.on('error', () => {});
    client.on('ready', taken);
    client.on('reconnecting', again);
    try {
      await until(() => taken.mock.calls.length > 0 || again.mock.calls.length > 1);
      expect(taken).not.toHaveBeenCalled();
      expect(silenceOf(client, new Error('no answer'))).toBe('ERR DB index is out of range');
      await expect(client.set('key', 'in another database')).rejects.toThrow('enableOfflineQueue');
    } finally {
      client.disconnect();
    }
  });

  it('is waited for where the right to it was taken away', async () => {
    await using redis = await startRedis();
    const client = within(`${redis.url}/3`);
    const ready = () => new Promise<void>((resolve) => void client.once('ready', resolve));
    client.on('error', () => {});
    try {
      await ready();
      await client.set('key', 'kept');
      await redis.admin.acl('SETUSER', 'default', '-select');
      const back = ready();
      await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal');
      await until(() => /'select'/.test(silenceOf(client, new Error('no answer'))));
      await redis.admin.acl('SETUSER', 'default', '+select');
      await back;
      expect(await client.get('key')).toBe('kept');
    } finally {
      client.disconnect();
    }
  });

  it('is reached with a password where Redis speaks the older protocol alone', async () => {
    await using redis = await startRedis([...DURABLE, '--rename-command', 'HELLO', '']);
    await redis.admin.config('SET', 'requirepass', 'word');
    const client = within(`redis://:word@127.0.0.1:${redis.port}/3`);
    client.on('error', () => {});
    try {
      await new Promise<void>((resolve) => void client.once('ready', resolve));
      await client.set('key', 'kept');
      expect(await client.info('keyspace')).toContain('db3:keys=1');
    } finally {
      client.disconnect();
    }
  });
});

it('an answer that has come in time leaves no timer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  expect(await inTime(Promise.resolve('answer'), 1_000)).toBe('answer');
  await expect(inTime(Promise.reject(new Error('refused')), 1_000)).rejects.toThrow('refused');
  expect(vi.getTimerCount()).toBe(0);
});

it('an outage is told once for each reason, five at most, and its end once; and so is the next one', () => {
  const redis = connectRedis('redis://127.0.0.1', { lazyConnect: true });
  onTestFinished(() => redis.disconnect());
  const logger = recordingLogger();
  logOutages(redis, logger, 'Redis is away');
  redis.emit('ready');
  expect(logger.lines).toEqual([]);
  for (const _outage of ['first', 'second']) {
    for (const reason of ['refused', 'refused', 'reset', 'refused']) redis.emit('error', new Error(reason));
    for (const time of [1, 2, 3, 4, 5]) redis.emit('error', new Error(`it may be tried at ${time}`));
    for (const _time of ['once', 'and again']) redis.emit('ready');
    const told = logger.lines.splice(0);
    const reasons = ['refused', 'reset', ...[1, 2, 3].map((time) => `it may be tried at ${time}`)];
    expect(told.slice(0, -1)).toEqual(
      reasons.map((reason) => ({ level: 'warn', fields: { reason }, message: 'Redis is away' })),
    );
    expect(told.at(-1)).toEqual({ level: 'info', fields: {}, message: 'No longer: Redis is away' });
  }
});
