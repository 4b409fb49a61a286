import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { JournalEntries } from '../../src/money/journal/entries.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { order, repeatable } from './orders.ts';
import { startUpstream, type Upstream } from './upstream.ts';

/** A way to Redis that is cut once Redis has carried out what bears a mark, before its reply comes back. */
interface Way {
  readonly url: string;
  /** How often it is cut so from now on. */
  cuts: number;
  /** Whether nothing passes any more once it was cut. */
  isClosedByCut: boolean;
  open(): void;
  /** How often it has been cut. */
  readonly cut: number;
}

async function startWay(redis: RedisServer, mark: string, cleanup: AsyncDisposableStack): Promise<Way> {
  const sockets = new Set<Socket>();
  let isClosed = false;
  const open = () => {
    isClosed = false;
  };
  const way = { url: '', cuts: 0, isClosedByCut: false, cut: 0, open };
  const listener = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {}).on('close', () => sockets.delete(client));
    if (isClosed) return void client.destroy();
    const server = connect(redis.port, '127.0.0.1');
    server.on('error', () => {}).on('close', () => client.destroy());
    client.on('close', () => server.destroy());
    let isMarked = false;
    client.on('data', (chunk) => {
      if (way.cuts > 0 && !isMarked && chunk.includes(mark)) {
        isMarked = true;
        way.cuts -= 1;
      }
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (!isMarked) return void client.write(chunk);
      way.cut += 1;
      isClosed ||= way.isClosedByCut;
      client.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  cleanup.defer(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  // A TCP server has a port.
  way.url = `redis://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return way;
}

const KEY = 'unclear-sending';
let cleanup: AsyncDisposableStack;
let redis: RedisServer;
let way: Way;
let upstream: Upstream;
let money: Money;
beforeEach(async () => {
  cleanup = new AsyncDisposableStack();
  redis = await startRedis();
  cleanup.defer(() => redis.stop());
  upstream = cleanup.use(await startUpstream());
  // The body of the request is in the one step alone that notes it as sent.
  way = await startWay(redis, `"reference":"${KEY}"`, cleanup);
  const records = await openMoneyRecords({ redisUrl: way.url, dataDir: '/dev/null/nowhere', logger });
  cleanup.defer(() => records.stop());
  money = createMoney({ records, logger, leaseMs: 1_000 });
  cleanup.defer(() => money.stop());
  // Redis has the scripts from now on: without them the reply that is lost would be that it has not done the step.
  await using another = await startUpstream();
  const first = repeatable(order(another.url, 'createMoneyOut', 'before'));
  await money.execute(first, { deadline: Date.now() + 25_000, signal: new AbortController().signal });
});
afterEach(() => cleanup.disposeAsync());

const OPERATIONS = ['createMoneyOut', 'createInternalTransaction'] as const;
const pay = (mutation: (typeof OPERATIONS)[number]) =>
  money.execute(repeatable(order(upstream.url, mutation, KEY)), {
    deadline: Date.now() + 25_000,
    signal: new AbortController().signal,
  });

/** The second time finds the payment made. */
async function isPaidOnce(mutation: (typeof OPERATIONS)[number]): Promise<void> {
  for (const _time of ['once', 'again']) {
    const result = await until(async () => {
      const found = await pay(mutation).catch(() => undefined);
      return found?.kind === 'done' && found;
    });
    expect(result).toMatchObject({ kind: 'done' });
  }
  expect(upstream.ledger.get(KEY)).toBe(1);
}

it.each(OPERATIONS)('is noted once more where its reply was lost, and sent once: %s', async (mutation) => {
  way.cuts = 1;
  expect(await pay(mutation)).toMatchObject({ kind: 'done', replayed: false });
  expect(way.cut).toBe(1);
  expect(upstream.received).toHaveLength(1);
  await isPaidOnce(mutation);
});

/** What is recorded as sent, and cannot be taken back at once, the gateway may send by itself where the service knows a repeat. */
const saysSo = (mutation: (typeof OPERATIONS)[number], told: unknown): void => {
  const wanted =
    mutation === 'createMoneyOut' ? { kind: 'unknown', safeToRetry: true } : { code: 'STORE_UNAVAILABLE' };
  expect(told).toMatchObject(wanted);
};

it.each(OPERATIONS)('sends nothing where each reply is lost, and says so: %s', async (mutation) => {
  way.cuts = Number.POSITIVE_INFINITY;
  saysSo(mutation, await pay(mutation).catch((error: unknown) => error));
  expect(way.cut).toBeGreaterThan(1);
  expect(upstream.received).toEqual([]);
  way.cuts = 0;
  await isPaidOnce(mutation);
});

it.each(OPERATIONS)('sends nothing where Redis is gone with the reply, and says so: %s', async (mutation) => {
  way.cuts = 1;
  way.isClosedByCut = true;
  saysSo(mutation, await pay(mutation).catch((error: unknown) => error));
  expect(upstream.received).toEqual([]);
  way.open();
  await isPaidOnce(mutation);
});

it('ends with nothing_moved, and a repeat pays, where somebody was told that it is unknown before it could be taken back', async () => {
  way.cuts = 1;
  way.isClosedByCut = true;
  const told = await pay('createInternalTransaction').catch((error: unknown) => error);
  expect(told).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  const records = await openMoneyRecords({ redisUrl: redis.url, dataDir: '/dev/null/nowhere', logger });
  cleanup.defer(() => records.stop());
  const elsewhere = createMoney({ records, logger, leaseMs: 1_000 });
  cleanup.defer(() => elsewhere.stop());
  const same = repeatable(order(upstream.url, 'createInternalTransaction', KEY));
  const limits = { deadline: Date.now() + 25_000, signal: new AbortController().signal };
  expect(await elsewhere.execute(same, limits)).toMatchObject({ kind: 'unknown', safeToRetry: false });
  const lastStep = async () => {
    const lines = await records.journal.read(same.clientId, undefined, 100);
    return (await new JournalEntries(records, same.clientId).of(lines)).at(-1)?.step;
  };
  expect(await lastStep()).toBe('sent');
  way.open();
  await until(async () => (await lastStep()) === 'nothing_moved');
  expect(upstream.received).toEqual([]);
  await isPaidOnce('createInternalTransaction');
});
