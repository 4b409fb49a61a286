import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EventLog } from '../../../src/events/log.ts';
import { openEventLog } from '../../../src/events/open.ts';
import {
  available,
  countingMetrics,
  drained,
  ids,
  moneyIn,
  recordingLogger,
  take,
} from '../../helpers/events.ts';
import type { RedisServer } from '../../helpers/redis.ts';
import { type RedisCluster, startCluster } from '../../helpers/redis-topologies.ts';
import { describeEventLog } from '../log.contract.ts';

// A Cluster that was away needs some seconds to agree with itself.
const LONG = { timeout: 90_000 };

let cluster: RedisCluster;
let root: string;
const logs: EventLog[] = [];

beforeAll(async () => {
  cluster = await startCluster();
  root = await mkdtemp(join(tmpdir(), 'pasarela-cluster-'));
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});
afterEach(() => Promise.all(logs.splice(0).map((log) => log.stop())));

async function open(retention = 1000, metrics = countingMetrics()): Promise<EventLog> {
  const dataDir = await mkdtemp(join(root, 'data-'));
  return openEventLog({ redisUrl: cluster.url, dataDir, retention, metrics, logger: recordingLogger() });
}

describeEventLog('the log in a Cluster', async ({ retention, metrics }) => {
  const dataDir = await mkdtemp(join(root, 'data-'));
  return openEventLog({ redisUrl: cluster.url, dataDir, retention, metrics, logger: recordingLogger() });
});

describe('a Cluster of three', () => {
  it('carries the events of clients on every node from one process to another', async () => {
    const [one, other] = [await open(), await open()];
    logs.push(one, other);
    const clients = Array.from({ length: 12 }, () => randomUUID());
    const nodes = new Set(await Promise.all(clients.map((client) => cluster.nodeOf(client))));
    expect(nodes.size).toBeGreaterThan(1);
    await Promise.all(
      clients.map(async (client) => {
        const events = await one.follow(client);
        const sent = Array.from({ length: 20 }, () => moneyIn());
        for (const event of sent) await other.append(client, event);
        expect(ids(await take(events, 20))).toEqual(sent.map((event) => event.id));
      }),
    );
  });

  it('loses no event of the clients on a node that is killed, nor of any other', async () => {
    const [one, other] = [await open(), await open()];
    logs.push(one, other);
    const client = randomUUID();
    const node = await cluster.nodeOf(client);
    let elsewhere = randomUUID();
    while ((await cluster.nodeOf(elsewhere)) === node) elsewhere = randomUUID();
    const events = await one.follow(client);
    const others = await one.follow(elsewhere);
    const sent: string[] = [];
    const send = async (count: number): Promise<void> => {
      for (let made = 0; made < count; made += 1) {
        const event = moneyIn();
        await other.append(client, event);
        sent.push(event.id);
      }
    };
    await send(5);
    await node.kill();
    await send(5);
    const untouched = moneyIn();
    expect((await other.append(elsewhere, untouched)).duplicate).toBe(false);
    expect(ids(await take(others, 1))).toEqual([untouched.id]);
    await node.start();
    await send(5);
    expect(ids(await take(events, 15))).toEqual(sent);
  });

  it(
    'goes on after all of it was away, however often, and however its nodes went and came',
    LONG,
    async () => {
      const log = await open();
      logs.push(log);
      const clients = [...(await clientsOnEachNode())];
      const streams = await Promise.all(clients.map((client) => log.follow(client)));
      const outages = [
        () => Promise.all(cluster.nodes.map((node) => node.kill())),
        // One after another, with time for the others to notice.
        async () => {
          for (const node of cluster.nodes) {
            await node.kill();
            await Promise.all(clients.map((client) => log.append(client, event())));
          }
        },
      ];
      let sent: string[] = [];
      const event = () => {
        const made = moneyIn();
        sent.push(made.id);
        return made;
      };
      for (const away of [...outages, ...outages]) {
        sent = [];
        await away();
        await Promise.all(clients.map((client) => log.append(client, event())));
        for (const node of cluster.nodes) await node.start();
        await drained(log);
        await Promise.all(clients.map((client) => log.append(client, event())));
        const each = sent.length / clients.length;
        const seen = await Promise.all(streams.map((events) => take(events, each)));
        expect(new Set(ids(seen.flat()))).toEqual(new Set(sent));
      }
    },
  );

  it('goes on when a replica takes over from its primary', LONG, async () => {
    await using own = await startCluster();
    const client = randomUUID();
    const primary = await own.nodeOf(client);
    await own.addReplica(primary);
    const log = await openEventLog({
      redisUrl: own.url,
      dataDir: await mkdtemp(join(root, 'data-')),
      retention: 1000,
      metrics: countingMetrics(),
      logger: recordingLogger(),
    });
    logs.push(log);
    const events = await log.follow(client);
    const sent = Array.from({ length: 6 }, () => moneyIn());
    for (const event of sent.slice(0, 2)) await log.append(client, event);
    await primary.kill();
    for (const event of sent.slice(2, 4)) await log.append(client, event);
    await available(log);
    for (const event of sent.slice(4)) await log.append(client, event);
    expect(ids(await take(events, 6))).toEqual(sent.map(({ id }) => id));
  });

  it('carries on where a slot is moved to another node', async () => {
    const log = await open();
    logs.push(log);
    const client = randomUUID();
    const events = await log.follow(client);
    const before = moneyIn();
    await log.append(client, before);
    expect(ids(await take(events, 1))).toEqual([before.id]);
    await moveSlotOf(client);
    const after = moneyIn();
    await log.append(client, after);
    expect(ids(await take(events, 1))).toEqual([after.id]);
  });
});

/** A client on each node. */
async function clientsOnEachNode(): Promise<Iterable<string>> {
  const clients = new Map<RedisServer, string>();
  while (clients.size < cluster.nodes.length) {
    const client = randomUUID();
    clients.set(await cluster.nodeOf(client), client);
  }
  return clients.values();
}

/** Moves the slot of a client's keys, and the keys, as resharding does (Redis Cluster specification). */
async function moveSlotOf(client: string): Promise<void> {
  const source = await cluster.nodeOf(client);
  const target = cluster.nodes.find((node) => node !== source);
  if (target === undefined) throw new Error('there are three');
  const slot = await source.admin.cluster('KEYSLOT', `{${client}}`);
  const [sourceId, targetId] = [await source.admin.cluster('MYID'), await target.admin.cluster('MYID')];
  await target.admin.cluster('SETSLOT', slot, 'IMPORTING', sourceId);
  await source.admin.cluster('SETSLOT', slot, 'MIGRATING', targetId);
  const keys = await source.admin.cluster('GETKEYSINSLOT', slot, 100);
  await source.admin.migrate('127.0.0.1', target.port, '', 0, 5000, 'KEYS', ...keys);
  for (const node of [target, source, ...cluster.nodes])
    await node.admin.cluster('SETSLOT', slot, 'NODE', targetId);
}
