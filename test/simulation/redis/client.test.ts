import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectRedis } from '../../../src/redis/connection.ts';
import { type RedisServer as RealServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { Simulation } from '../core.ts';
import { SimulatedRedis } from './client.ts';
import { RedisServer } from './server.ts';

let real: RealServer;

beforeAll(async () => {
  real = await startRedis();
});

afterAll(() => real.stop());

/** What becomes of commands that have left together. */
const ended = (commands: readonly Promise<unknown>[]): Promise<readonly unknown[]> =>
  Promise.all(commands.map((command) => command.catch((error: Error) => error.message)));

/** What both clients are used by here. */
interface Client {
  get(key: string): Promise<unknown>;
  set(key: string, value: string): Promise<unknown>;
}

const send = (client: Client): readonly Promise<unknown>[] => [
  client.set('key', 'after'),
  client.get('key'),
  client.set('key', 'last'),
];

async function ofReal(enableOfflineQueue: boolean): Promise<readonly unknown[]> {
  const client = connectRedis(real.url, { enableOfflineQueue });
  client.on('error', () => {});
  await once(client, 'ready');
  await client.set('key', 'before');
  await real.admin.call('REPLICAOF', '127.0.0.1', '1');
  const isOver = once(client, 'close').then(() => real.admin.call('REPLICAOF', 'NO', 'ONE'));
  const replies = await ended(send(client));
  await isOver;
  client.disconnect();
  return replies;
}

async function ofModel(enableOfflineQueue: boolean): Promise<readonly unknown[]> {
  const sim = new Simulation('client');
  const server = new RedisServer(sim, 'model', true);
  const place = { server: () => server, isCut: () => false, replyOf: () => 'arrives' as const };
  const client = new SimulatedRedis(sim, sim.chance('client'), place, { enableOfflineQueue });
  await sim.runUntil(100);
  server.run('SET', ['key', 'before']);
  server.isPrimary = false;
  client.once('close', () => {
    server.isPrimary = true;
  });
  const replies = ended(send(client));
  await sim.runUntil(10_000);
  client.disconnect();
  return replies;
}

it('of a server that was demoted, a command that may not wait fails at once, and what is under way is answered', async () => {
  const notWriteable = "Stream isn't writeable and enableOfflineQueue options is false";
  const replies = await ofReal(false);
  expect(replies).toEqual([notWriteable, 'before', notWriteable]);
  expect(await ofModel(false)).toEqual(replies);
});

it('a command that may wait is sent once more, to the server that is the primary by then', async () => {
  const replies = await ofReal(true);
  expect(replies).toEqual(['OK', 'before', 'OK']);
  expect(await ofModel(true)).toEqual(replies);
});

/** What is said to who waits for replicas as the server begins to follow another, and to who waits after that. */
const WAIT = ['WAIT', '1', '60000'] as const;
const firstWords = (replies: readonly unknown[]): readonly string[] =>
  replies.map((reply) => String(reply).split(' ', 2).join(' '));

async function waitsOfReal(): Promise<readonly unknown[]> {
  const client = connectRedis(real.url, {});
  client.on('error', () => {});
  await once(client, 'ready');
  // A server without a write has nothing to wait for.
  await client.set('key', 'before');
  const closed = once(client, 'close');
  const waiting = ended([client.call(...WAIT)]);
  await until(async () => (await real.admin.info('clients')).includes('blocked_clients:1'));
  await real.admin.call('REPLICAOF', '127.0.0.1', '1');
  const replies = await waiting;
  await closed;
  await once(client, 'ready');
  const later = await ended([client.call(...WAIT)]);
  client.disconnect();
  await real.admin.call('REPLICAOF', 'NO', 'ONE');
  return [...replies, ...later];
}

async function waitsOfModel(): Promise<readonly unknown[]> {
  const sim = new Simulation('client');
  const [server, other] = [new RedisServer(sim, 'model', true), new RedisServer(sim, 'other', true)];
  const place = { server: () => server, isCut: () => false, replyOf: () => 'arrives' as const };
  const client = new SimulatedRedis(sim, sim.chance('client'), place, {});
  let closes = 0;
  client.on('close', () => {
    closes += 1;
  });
  await sim.runUntil(100);
  void client.set('key', 'before');
  const waiting = ended([client.call(...WAIT)]);
  await sim.runUntil(200);
  server.follow(other, false);
  await sim.runUntil(1_000);
  expect(closes).toBe(1);
  const later = ended([client.call(...WAIT)]);
  await sim.runUntil(2_000);
  client.disconnect();
  return [...(await waiting), ...(await later)];
}

it('a server that follows another ends the connection of who waits for replicas, and lets nobody wait', async () => {
  const replies = firstWords(await waitsOfReal());
  expect(replies).toEqual(['UNBLOCKED force', 'ERR WAIT']);
  expect(firstWords(await waitsOfModel())).toEqual(replies);
});
