import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { type Running, shutDown } from '../../src/app/shutdown.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { silentLogger } from '../../src/common/logger.ts';
import { Secret } from '../../src/common/secret.ts';
import { createMoney } from '../../src/money/execute.ts';
import { recordName } from '../../src/money/intent.ts';
import { RecordsUnavailableError } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { buildServer } from '../helpers/composition.ts';
import { collectingLogger } from '../helpers/gateway.ts';
import { gatewayConfig } from '../helpers/gateway-config.ts';
import { startRedis } from '../helpers/redis.ts';
import { serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { order } from '../money/orders.ts';
import { startUpstream } from '../money/upstream.ts';

it('the parts end in their order, each once the one before has: payments before what they need', async () => {
  const told: string[] = [];
  /** An end that takes a while, so that whoever does not wait for it shows. */
  const ends = (name: string) => async (): Promise<void> => {
    told.push(`${name} …`);
    await new Promise(setImmediate);
    told.push(name);
  };
  const tells = (name: string) => (): void => void told.push(name);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const running: Running = {
    server,
    connections: { watch: tells('watched'), end: tells('connections') },
    drain: {
      isEnding: false,
      isDraining: false,
      plugin: {},
      markEnding: tells('ending'),
      begin: ends('operations'),
    },
    ingress: { handle: ends('webhook'), drain: ends('webhooks') },
    sockets: { stop: ends('sockets') },
    events: { stop: ends('events') },
    money: { drain: ends('looks'), stop: ends('money') },
    last: [{ stop: ends('token') }, { stop: ends('service') }],
    logger: { ...collectingLogger([]), info: (fields) => told.push(`delay ${JSON.stringify(fields)}`) },
  };
  await shutDown({ delayMs: 1, graceMs: 60_000 }, running);
  expect(server.listening).toBe(false);
  expect(told).toEqual([
    // Proxies let go of their connections while everything is still served.
    ...['ending', 'connections', 'delay {"delayMs":1}'],
    ...['operations …', 'webhooks …', 'looks …', 'operations', 'webhooks', 'looks'],
    ...['sockets …', 'sockets', 'events …', 'events'],
    ...['money …', 'money', 'token …', 'token', 'service …', 'service'],
  ]);
});

const NOT_ENDING = { isEnding: false, isDraining: false, plugin: {}, markEnding: () => {} };

it('the grace is as long after a delay as without one', async () => {
  const DELAY_MS = 120_000;
  /** Which times the parts are given, where no time passes but the delay. */
  const given = async (delayMs: number): Promise<readonly number[]> => {
    const times: number[] = [];
    let now = 0;
    const restoreClock = useClock({
      ...clock,
      monotonic: () => now,
      async sleep(ms) {
        if (ms === DELAY_MS) now += ms;
      },
      timeoutSignal(ms) {
        times.push(ms);
        return new AbortController().signal;
      },
    });
    const spreads = { stop: async (withinMs: number) => void times.push(withinMs) };
    const nothing = async (): Promise<void> => {};
    await shutDown(
      { delayMs, graceMs: 60_000 },
      {
        server: createServer(),
        connections: { watch: () => {}, end: () => {} },
        drain: { ...NOT_ENDING, begin: nothing },
        ingress: { handle: nothing, drain: nothing },
        sockets: spreads,
        events: spreads,
        money: { drain: nothing, stop: nothing },
        last: [],
        logger: silentLogger,
      },
    ).finally(restoreClock);
    return times;
  };
  const without = await given(0);
  expect(without).toHaveLength(3);
  expect(await given(DELAY_MS)).toEqual(without);
});

it('a part that cannot be closed keeps no other open', async () => {
  const told: string[] = [];
  const ends = (name: string) => async (): Promise<void> => void told.push(name);
  const fails = (name: string) => (): Promise<void> => Promise.reject(new Error(name));
  const lines: string[] = [];
  const running: Running = {
    server: createServer(),
    connections: { watch: () => {}, end: () => {} },
    drain: { ...NOT_ENDING, begin: ends('operations') },
    ingress: { handle: ends('webhook'), drain: ends('webhooks') },
    sockets: { stop: fails('sockets') },
    events: { stop: fails('events') },
    money: { drain: ends('looks'), stop: ends('money') },
    last: [{ stop: fails('token') }, { stop: ends('service') }],
    logger: collectingLogger(lines),
  };
  await shutDown({ delayMs: 0, graceMs: 1_000 }, running);
  expect(told).toEqual(['operations', 'webhooks', 'looks', 'money', 'service']);
  expect(lines.map((line) => /Error: (\w+)/.exec(line)?.[1])).toEqual(['sockets', 'events', 'token']);
});

it('a request that never ends is cut off within the grace, and payments end after that as ever', async () => {
  const told: string[] = [];
  const ends = (name: string) => async (): Promise<void> => void told.push(name);
  const server = createServer(() => told.push('request')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const unanswered = fetch(`http://127.0.0.1:${port}`).catch(() => told.push('cut off'));
  await until(() => told.length === 1);
  await shutDown(
    { delayMs: 0, graceMs: 400 },
    {
      server,
      connections: { watch: () => {}, end: () => {} },
      drain: { ...NOT_ENDING, begin: ends('operations') },
      ingress: { handle: ends('webhook'), drain: ends('webhooks') },
      sockets: { stop: ends('sockets') },
      events: { stop: ends('events') },
      money: { drain: ends('looks'), stop: ends('money') },
      last: [{ stop: ends('token') }],
      logger: collectingLogger([]),
    },
  );
  await unanswered;
  expect(told).toEqual(expect.arrayContaining(['cut off', 'money', 'token']));
});

it('an answer that the store cannot take at the end is tried again within the grace, until the store is back', async () => {
  await using cleanup = new AsyncDisposableStack();
  const upstream = cleanup.use(await startUpstream());
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  cleanup.defer(() => records.stop());
  let isEnding = false;
  let triesAtEnd = 0;
  const money = createMoney({
    records: {
      ...records,
      async answer(...args) {
        if (isEnding) triesAtEnd += 1;
        if (triesAtEnd < 3) throw new RecordsUnavailableError('answer', new Error('The store is away.'));
        return records.answer(...args);
      },
    },
    logger: silentLogger,
  });
  const paid = order(upstream.url, 'createInternalTransaction', 'a key');
  const limits = { deadline: Date.now() + 60_000, signal: new AbortController().signal };
  expect(await money.execute(paid, limits)).toMatchObject({ kind: 'done' });
  const nothing = async (): Promise<void> => {};
  await shutDown(
    { delayMs: 0, graceMs: 60_000 },
    {
      server: createServer(),
      connections: { watch: () => {}, end: () => {} },
      drain: { ...NOT_ENDING, begin: nothing },
      ingress: { handle: nothing, drain: nothing },
      sockets: { stop: nothing },
      events: { stop: nothing },
      money: {
        drain: money.drain,
        stop(over) {
          isEnding = true;
          return money.stop(over);
        },
      },
      last: [],
      logger: silentLogger,
    },
  );
  expect(await records.read(recordName(paid))).toMatchObject({ state: 'answered' });
});

it('a gateway whose port is taken closes all that it has opened', async () => {
  await using redis = await startRedis();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  const client = { clientId: '11111111-2222-4333-8444-555555555555', apiKey: 'key', clientSecret: 'secret' };
  const service = serviceFor(client);
  const config = gatewayConfig('http://127.0.0.1:9', dataDir);
  const server = buildServer(
    { ...config, port, service, redisUrl: new Secret(redis.url) },
    collectingLogger([]),
  );
  await expect(server.start()).rejects.toMatchObject({ code: 'EADDRINUSE' });
  // A start that has failed leaves nothing to stop.
  await server.stop();
  const own = new Redis(redis.url);
  await until(
    async () =>
      String(await own.client('LIST'))
        .trim()
        .split('\n').length === 1,
  );
  own.disconnect();
  taken.close();
  await rm(dataDir, { recursive: true });
});
