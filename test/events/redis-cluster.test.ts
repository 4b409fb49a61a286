import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { EventLog } from '../../src/events/log.ts';
import { openEventLog } from '../../src/events/open.ts';
import { countingMetrics, ids, moneyIn, recordingLogger, take } from '../helpers/events.ts';
import { type RedisCluster, startCluster } from '../helpers/redis-topologies.ts';
import { describeEventLog } from './log.contract.ts';

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
        const events = await one.follow(client, { signal: new AbortController().signal });
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
    const { signal } = new AbortController();
    const events = await one.follow(client, { signal });
    const others = await one.follow(elsewhere, { signal });
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
});
