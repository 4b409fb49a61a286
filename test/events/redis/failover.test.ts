import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import {
  EventsGapError,
  OtherHistoryError,
  StoreUnavailableError,
  UnreplicatedError,
} from '../../../src/events/errors.ts';
import { redisKeys } from '../../../src/events/redis/keys.ts';
import { RedisLog } from '../../../src/events/redis/redis-log.ts';
import { countingMetrics, ids, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { DURABLE, type RedisServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';

const opened: RedisLog[] = [];
afterEach(() => Promise.all(opened.splice(0).map((log) => log.stop())));

async function open(redisUrl: string): Promise<RedisLog> {
  const log = new RedisLog({
    redisUrl,
    retention: 1000,
    logger: recordingLogger(),
    metrics: countingMetrics(),
    now: Date.now,
  });
  opened.push(log);
  await log.settled();
  return log;
}

const startPrimary = (): Promise<RedisServer> => startRedis([...DURABLE, '--repl-diskless-sync-delay', '0']);

async function startReplica(primary: RedisServer): Promise<RedisServer> {
  const replica = await startRedis();
  await replica.admin.replicaof('127.0.0.1', primary.port);
  await until(async () => (await primary.admin.info('replication')).includes('state=online'));
  return replica;
}

/** Resolves with what is read once it is certain what there is. */
const patiently = <T>(read: () => Promise<T>): Promise<T> =>
  until(async () => {
    try {
      return { found: await read() };
    } catch (error) {
      if (error instanceof StoreUnavailableError) return undefined;
      throw error;
    }
  }).then(({ found }) => found);

it('a client without events is given no cursor of a log that the replica may not have', async () => {
  await using primary = await startPrimary();
  await using replica = await startReplica(primary);
  const [one, other] = [await open(primary.url), await open(primary.url)];
  // Both learn of the replica.
  for (const log of [one, other]) await patiently(() => log.append(randomUUID(), moneyIn()));
  const client = randomUUID();
  replica.freeze();
  // The first one begins the log, the other finds it, and the first one finds it too. Each asks everything at once: a replica that
  // is away for half a minute counts no more.
  for (const log of [one, other, one]) {
    const asked = [
      log.head(client),
      log.bounds(client),
      log.readAfter(client, null, 1),
      // Told that its cursor is invalid, a reader could not learn where the log begins.
      log.readAfter(client, 'of another log', 1),
      log.follow(client),
    ];
    await Promise.all(asked.map((answer) => expect(answer).rejects.toThrow(StoreUnavailableError)));
  }
  replica.thaw();
  const cursors = await patiently(() => Promise.all([one.head(client), other.head(client)]));
  const epoch = await replica.admin.hget(`{${client}}:meta`, 'epoch');
  const lives = cursors.map((cursor) => Buffer.from(cursor, 'base64url').toString().split('|')[1]);
  expect(lives).toEqual([epoch, epoch]);

  // What is known to stay is not proved again.
  replica.freeze();
  expect(await one.readAfter(client, cursors[0] ?? '', 1)).toEqual({ events: [], hasMore: false });
  expect(await other.head(client)).toBe(cursors[0]);
});

it('who asks a server that was replaced is told no gap, but that it is not certain', async () => {
  await using primary = await startPrimary();
  await using replica = await startReplica(primary);
  const log = await open(primary.url);
  const client = randomUUID();
  const [kept, ahead] = [moneyIn(), moneyIn()];
  await patiently(() => log.append(client, kept));

  // The replica takes the primary's place, which does not know it, and whose readers do not either.
  await replica.admin.replicaof('NO', 'ONE');
  await until(async () => !(await primary.admin.info('replication')).includes('slave0'));
  const elsewhere = await open(replica.url);
  // It does not count until the server that was replaced has it, but is there.
  await expect(elsewhere.append(client, ahead)).rejects.toThrow(StoreUnavailableError);
  const cursor = await elsewhere.head(client);
  for (const how of ['readAfter', 'readBefore'] as const)
    await expect(log[how](client, cursor, 10)).rejects.toThrow(StoreUnavailableError);
  await expect(log.follow(client, { after: cursor })).rejects.toThrow(StoreUnavailableError);

  await primary.admin.replicaof('127.0.0.1', replica.port);
  expect(await patiently(() => log.readAfter(client, cursor, 10))).toMatchObject({ events: [] });
  const { events } = await log.readBefore(client, cursor, 10);
  expect(ids(events)).toEqual([kept.id]);
});

it('what comes after events that no replica has is not taken by a log that was flushed meanwhile', async () => {
  await using primary = await startPrimary();
  await using replica = await startReplica(primary);
  const log = await open(primary.url);
  const client = randomUUID();
  await patiently(() => log.append(client, moneyIn()));
  replica.freeze();
  const unreplicated = async (history?: string): Promise<string> => {
    // A write that was not answered in time says nothing.
    const error = await until(async () => {
      const thrown: unknown = await log.appendAll(client, [moneyIn()], history).catch((reason) => reason);
      const isCertain = thrown instanceof UnreplicatedError || thrown instanceof OtherHistoryError;
      return (isCertain || !(thrown instanceof StoreUnavailableError)) && { thrown };
    });
    if (error.thrown instanceof UnreplicatedError) return error.thrown.history;
    throw error.thrown;
  };
  const history = await unreplicated();
  expect(await unreplicated(history)).toBe(history);
  const info = /^master_replid:\w+/m;
  const [before] = info.exec(await primary.admin.info('replication')) ?? [];
  await primary.admin.flushall();
  // The history of the server's data goes on.
  expect((await primary.admin.info('replication')).match(info)?.[0]).toBe(before);
  await expect(unreplicated(history)).rejects.toThrow(OtherHistoryError);
  expect(await primary.admin.exists(redisKeys(client).log)).toBe(0);
  expect(await unreplicated()).not.toBe(history);
});

it('a gap is told where all servers that should follow do', async () => {
  await using primary = await startPrimary();
  await using _replica = await startReplica(primary);
  const log = await open(primary.url);
  const client = randomUUID();
  await patiently(() => log.append(client, moneyIn()));
  const cursor = await log.head(client);
  await primary.admin.flushall();
  const error = await patiently(() =>
    log.readAfter(client, cursor, 10).catch((thrown: unknown) => {
      if (thrown instanceof EventsGapError) return thrown;
      throw thrown;
    }),
  );
  expect(error).toMatchObject({ gap: { clientId: client, reason: 'begun-anew' } });
});

/** An address that leads to whoever is the primary; connections stay where they are when that changes, as those of a Service of Kubernetes do. */
async function startAddress(first: RedisServer) {
  const address = { leadsTo: first, url: '' };
  const server = createServer((client) => {
    const onward = connect(address.leadsTo.port, '127.0.0.1');
    for (const socket of [client, onward]) socket.on('error', () => {});
    client.pipe(onward).pipe(client);
    client.on('close', () => onward.destroy());
    onward.on('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  address.url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(address, { [Symbol.asyncDispose]: async () => void server.close() });
}

it('a reader whose connections a failover has left at the old primary hears what comes, each time', async () => {
  await using first = await startPrimary();
  await using second = await startReplica(first);
  await using address = await startAddress(first);
  const log = await open(address.url);
  const client = randomUUID();
  await patiently(() => log.append(client, moneyIn()));
  const heard: string[] = [];
  const stream = await log.follow(client);
  stream.connect({ take: ({ id }) => void heard.push(id), finish: () => undefined });

  let [primary, replica] = [first, second];
  for (const _time of [1, 2]) {
    await replica.admin.replicaof('NO', 'ONE');
    address.leadsTo = replica;
    // It follows nobody that there is: whoever goes on reading there hears of nothing any more.
    await primary.admin.replicaof('127.0.0.1', 1);
    const after = moneyIn();
    // It is in the log, though it does not count before a replica has it.
    await until(async () => {
      await log.append(client, after).catch(() => undefined);
      return heard.includes(after.id);
    });
    const { channel } = redisKeys(client);
    await until(async () => (await replica.admin.pubsub('NUMSUB', channel))[1] === 1);
    await primary.admin.replicaof('127.0.0.1', replica.port);
    await until(async () => (await primary.admin.info('replication')).includes('master_link_status:up'));
    [primary, replica] = [replica, primary];
  }
  stream.stop();
});
