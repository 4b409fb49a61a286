import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import type { EventLog, NewEvent } from '../../../src/events/log.ts';
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
import { failOver, type RedisCluster, startCluster, startMigration } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';
import { describeEventLog } from '../log.contract.ts';
import { describeSearch } from '../search.contract.ts';

// A Cluster that was away needs some seconds to agree with itself.
const LONG = { timeout: 300_000 };

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

describeSearch('the log in a Cluster', async (options) => {
  const dataDir = await mkdtemp(join(root, 'data-'));
  return openEventLog({ redisUrl: cluster.url, dataDir, logger: recordingLogger(), ...options });
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
    // Until the replica is in step, what comes is spooled.
    await available(log);
    const events = await log.follow(client);
    const sent = Array.from({ length: 6 }, () => moneyIn());
    for (const event of sent.slice(0, 2)) await log.append(client, event);
    await primary.kill();
    for (const event of sent.slice(2, 4)) await log.append(client, event);
    await available(log);
    for (const event of sent.slice(4)) await log.append(client, event);
    expect(ids(await take(events, 6))).toEqual(sent.map(({ id }) => id));
  });

  it('carries on where a slot is moved to another node, though nobody looks', async () => {
    // The look that comes every ten seconds would find the channel again as well.
    const timer = { unref: () => timer };
    onTestFinished(useClock({ ...clock, setInterval: () => timer }));
    const log = await open();
    logs.push(log);
    const client = randomUUID();
    const events = await log.follow(client);
    const before = moneyIn();
    await log.append(client, before);
    expect(ids(await take(events, 1))).toEqual([before.id]);
    await (await startMigration(cluster, client)).finish();
    const after = moneyIn();
    await log.append(client, after);
    expect(ids(await take(events, 1))).toEqual([after.id]);
  });
});

describe('a Cluster with a replica', () => {
  const openOn = async (url: string): Promise<EventLog> => {
    const dataDir = await mkdtemp(join(root, 'data-'));
    const log = await openEventLog({
      redisUrl: url,
      dataDir,
      retention: 1000,
      metrics: countingMetrics(),
      logger: recordingLogger(),
    });
    logs.push(log);
    return log;
  };

  it.each(['a failover', 'a planned failover', 'resharding'])(
    'takes the events of a slot again that has another owner: %s',
    LONG,
    async (how) => {
      await using own = await startCluster();
      const client = randomUUID();
      const primary = await own.nodeOf(client);
      const replica = await own.addReplica(primary);
      const log = await openOn(own.url);
      await drained(log);
      const sent = Array.from({ length: 6 }, () => moneyIn());
      const taken = (event: NewEvent) => until(async () => (await log.append(client, event)).cursor !== null);
      for (const event of sent.slice(0, 2)) await taken(event);
      if (how === 'a failover') {
        await primary.kill();
      } else if (how === 'a planned failover') {
        await failOver(replica);
      } else {
        await (await startMigration(own, client)).finish();
      }
      for (const event of sent.slice(2)) await log.append(client, event);
      await drained(log);
      const last = moneyIn();
      await taken(last);
      const { events } = await log.readAfter(client, null, 100);
      expect(ids(events)).toEqual([...sent, last].map(({ id }) => id));
    },
  );

  it('is waited for, though another primary was away when the gateway started', LONG, async () => {
    await using own = await startCluster();
    const client = randomUUID();
    const primary = await own.nodeOf(client);
    const replica = await own.addReplica(primary);
    const other = own.nodes.find((node) => node !== primary);
    await other?.kill();
    const log = await openOn(own.url);
    await until(async () => (await log.append(client, moneyIn())).cursor !== null);
    replica.freeze();
    // Its primary alone has it: it waits in the spool as well.
    expect((await log.append(client, moneyIn())).cursor).toBeNull();
    replica.thaw();
    await until(async () => (await log.health()).spooled === 0);
  });

  it(
    'that is gone, while other primaries have theirs, is told by the health, and holds up no connection',
    LONG,
    async () => {
      await using own = await startCluster();
      const client = randomUUID();
      const primary = await own.nodeOf(client);
      const replica = await own.addReplica(primary);
      for (const node of own.nodes) if (node !== primary) await own.addReplica(node);
      const log = await openOn(own.url);
      await drained(log);
      const decided = () => moneyIn({ spoolable: false });
      // A replica on a busy disk may acknowledge too late; the next attempt finds what the first has written.
      const isKept = (event: NewEvent) =>
        until(() =>
          log.append(client, event).then(
            () => true,
            () => false,
          ),
        );
      await isKept(decided());
      await replica.kill();
      await until(async () => !(await log.health()).available);
      await primary.admin.config('RESETSTAT');
      for (let count = 0; count < 5; count += 1) {
        await expect(log.append(client, decided())).rejects.toThrow(StoreUnavailableError);
      }
      expect(await primary.admin.info('commandstats')).not.toContain('cmdstat_wait');
      await replica.start();
      await available(log);
      await isKept(decided());
    },
  );
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
