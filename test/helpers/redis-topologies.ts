import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { startNetwork, TEST_ADDRESS } from './network.ts';
import { DURABLE, type RedisServer, startRedis } from './redis.ts';
import { until } from './until.ts';

export interface RedisCluster extends AsyncDisposable {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  /** The node that serves a client's keys. */
  nodeOf(clientId: string): Promise<RedisServer>;
  /** Adds a replica of a node, that takes over from it when it is gone. */
  addReplica(of: RedisServer): Promise<RedisServer>;
}

/**
 * Three primaries that share the slots.
 *
 * @param more arguments for each node
 */
export async function startCluster(more: readonly string[] = []): Promise<RedisCluster> {
  const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'];
  const args = [...DURABLE, ...cluster, '--repl-diskless-sync-delay', '0', ...more];
  const start = () => startRedis([...args, '--cluster-require-full-coverage', 'no']);
  const nodes = await Promise.all(Array.from({ length: 3 }, start));
  const replicas: RedisServer[] = [];
  const [first] = nodes;
  if (first === undefined) throw new Error('there are three');
  const share = Math.ceil(16_384 / nodes.length);
  for (const [index, { admin }] of nodes.entries()) {
    const end = Math.min((index + 1) * share, 16_384) - 1;
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', index * share, end);
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    if (index > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', first.port);
  }
  for (const { admin } of nodes) {
    await until(async () => {
      const info = String(await admin.call('CLUSTER', 'INFO'));
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
    });
  }
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    async nodeOf(clientId) {
      const slot = Number(await first.admin.call('CLUSTER', 'KEYSLOT', `{${clientId}}`));
      const node = nodes[Math.floor(slot / share)];
      if (node === undefined) throw new Error('every slot has a node');
      return node;
    },
    async addReplica(of) {
      const replica = await start();
      replicas.push(replica);
      const id = await of.admin.cluster('MYID');
      await replica.admin.call('CLUSTER', 'MEET', '127.0.0.1', of.port);
      await until(async () => String(await replica.admin.cluster('NODES')).includes(String(id)));
      await replica.admin.call('CLUSTER', 'REPLICATE', id);
      await inStep(of, replica);
      // The others vote: they have to know it, and it has to know them.
      for (const { admin } of nodes) await until(async () => / slave /.test(await nodesIn(admin)));
      for (const { admin } of nodes) {
        const id = await admin.cluster('MYID');
        await until(async () => new RegExp(`^${id} .* connected`, 'm').test(await nodesIn(replica.admin)));
      }
      return replica;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...nodes, ...replicas].map((node) => node.stop()));
    },
  };
}

const nodesIn = async (admin: Redis): Promise<string> => String(await admin.cluster('NODES'));

/** A slot on its way from one node to another. */
export interface Migration {
  readonly slot: number;
  readonly source: RedisServer;
  readonly target: RedisServer;
  /** Moves the keys, and tells every node of the new owner. */
  finish(): Promise<void>;
}

/** Begins to move the slot of a client's keys, as resharding does (Redis Cluster specification). */
export async function startMigration(cluster: RedisCluster, clientId: string): Promise<Migration> {
  const source = await cluster.nodeOf(clientId);
  const target = cluster.nodes.find((node) => node !== source);
  if (target === undefined) throw new Error('there are three');
  const slot = await source.admin.cluster('KEYSLOT', `{${clientId}}`);
  const [sourceId, targetId] = [await source.admin.cluster('MYID'), await target.admin.cluster('MYID')];
  await target.admin.cluster('SETSLOT', slot, 'IMPORTING', sourceId);
  await source.admin.cluster('SETSLOT', slot, 'MIGRATING', targetId);
  return {
    slot,
    source,
    target,
    async finish() {
      const keys = await source.admin.cluster('GETKEYSINSLOT', slot, 100);
      await source.admin.migrate('127.0.0.1', target.port, '', 0, 5000, 'KEYS', ...keys);
      for (const node of [target, source, ...cluster.nodes])
        await node.admin.cluster('SETSLOT', slot, 'NODE', targetId);
    },
  };
}

/** After this time a planned failover has been given up, in milliseconds (Redis: CLUSTER_MF_TIMEOUT). */
const PLANNED_FAILOVER_MS = 5_000;

/** Resolves once a replica of a Cluster has taken its primary's place as planned; asks again where it was not elected. */
export async function failOver(replica: RedisServer): Promise<void> {
  let askedAt = Number.NEGATIVE_INFINITY;
  await until(async () => {
    if (performance.now() - askedAt > PLANNED_FAILOVER_MS) {
      await replica.admin.cluster('FAILOVER');
      askedAt = performance.now();
    }
    return (await replica.admin.info('replication')).includes('role:master');
  });
}

/** Resolves once a replica, and as many as there are, have all that their primary has, and would still have it after their end. */
export async function inStep(primary: RedisServer, replica: RedisServer, replicas = 1): Promise<void> {
  await until(async () => {
    const info = await replica.admin.info('replication');
    return info.includes('master_link_status:up') && (await primary.admin.wait(replicas, 100)) === replicas;
  });
  // A replica writes its append-only file anew after the first synchronisation. Killed before that is done, it has nothing.
  await until(async () => {
    const info = await replica.admin.info('persistence');
    return info.includes('aof_rewrite_in_progress:0') && info.includes('aof_last_bgrewrite_status:ok');
  });
}

export interface RedisWithSentinel extends AsyncDisposable {
  readonly url: string;
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly sentinel: RedisServer;
}

/**
 * A primary, its replica, and one Sentinel that may fail over by itself.
 *
 * @param args for each Redis
 * @param lifetimeSeconds after which they are ended, whatever becomes of the caller; longer than any test where it is not given
 */
export async function startWithSentinel(
  args: readonly string[] = [],
  lifetimeSeconds?: number,
): Promise<RedisWithSentinel> {
  const start = (more: readonly string[]) => startRedis(more, undefined, lifetimeSeconds);
  const durable = [...DURABLE, '--repl-diskless-sync-delay', '0', ...args];
  const primary = await start(durable);
  const replica = await start([...durable, '--replicaof', '127.0.0.1', String(primary.port)]);
  await inStep(primary, replica);
  await primary.admin.set('replicated', 'yes');
  const sentinel = await startSentinel(primary.port, [], lifetimeSeconds);
  const { admin } = sentinel;
  await until(async () => {
    const replicas = await admin.call('SENTINEL', 'REPLICAS', 'events');
    return Array.isArray(replicas) && replicas.length > 0;
  });
  return {
    url: `redis+sentinel://127.0.0.1:${sentinel.port}/events`,
    primary,
    replica,
    sentinel,
    async [Symbol.asyncDispose]() {
      await Promise.all([primary, replica, sentinel].map((server) => server.stop()));
    },
  };
}

/** Has Sentinel promote the replica, as an operator does; it does so once it has heard that there is one to promote. */
export async function failOverBySentinel({ admin }: RedisServer): Promise<void> {
  await until(() => admin.call('SENTINEL', 'FAILOVER', 'events').catch(() => undefined));
}

/** Has a Sentinel replace no server by itself, however long one stands still. */
export async function neverFailOver({ admin }: RedisServer): Promise<void> {
  await admin.call('SENTINEL', 'SET', 'events', 'down-after-milliseconds', '600000');
}

/** Sentinel and its Redis, on a network that can be parted. `test` is the process that calls. */
export interface PartableSentinel extends AsyncDisposable {
  readonly url: string;
  readonly primary: RedisServer;
  readonly replicas: readonly RedisServer[];
  readonly sentinel: RedisServer;
  /** Nothing passes any more between the one side and the other; what is on neither reaches both. */
  part(one: readonly (RedisServer | 'test')[], other: readonly (RedisServer | 'test')[]): void;
  join(): void;
}

/**
 * A primary, its replicas and one Sentinel. The tests' own connections (`admin`) reach each of them whatever is parted.
 *
 * @param args for each Redis
 */
export async function startPartable(
  replicaCount: number,
  args: readonly string[] = [],
): Promise<PartableSentinel> {
  const network = startNetwork();
  const addresses = new Map<RedisServer | 'test', string>([['test', TEST_ADDRESS]]);
  const startAt = async (start: (args: readonly string[]) => Promise<RedisServer>) => {
    const address = network.address();
    const server = await start(['--bind-source-addr', address]);
    addresses.set(server, address);
    return { server, port: await network.expose(address, server.port) };
  };
  const startOne = async () => {
    const started = await startAt((own) =>
      startRedis([...DURABLE, '--repl-diskless-sync-delay', '0', ...args, ...own]),
    );
    const { admin } = started.server;
    await admin.config('SET', 'replica-announce-port', started.port);
    return started;
  };
  const primary = await startOne();
  const replicas = await Promise.all(Array.from({ length: replicaCount }, startOne));
  for (const { server } of replicas) await server.admin.replicaof('127.0.0.1', primary.port);
  for (const { server } of replicas) await inStep(primary.server, server, replicaCount);
  const sentinel = await startAt((own) => startSentinel(primary.port, own));
  await until(async () => {
    const known = await sentinel.server.admin.call('SENTINEL', 'REPLICAS', 'events');
    return Array.isArray(known) && known.length === replicaCount;
  });
  const addressesOf = (side: readonly (RedisServer | 'test')[]) =>
    side.map((member) => addresses.get(member) ?? '');
  return {
    url: `redis+sentinel://127.0.0.1:${sentinel.port}/events`,
    primary: primary.server,
    replicas: replicas.map(({ server }) => server),
    sentinel: sentinel.server,
    part: (one, other) => network.part(addressesOf(one), addressesOf(other)),
    join: () => network.join(),
    async [Symbol.asyncDispose]() {
      const servers = [primary, ...replicas, sentinel].map(({ server }) => server);
      await Promise.all(servers.map((server) => server.stop()));
      await network[Symbol.asyncDispose]();
    },
  };
}

/** A Sentinel that watches a primary, in a group of its own until it hears of others. */
export async function startSentinel(
  primaryPort: number,
  args: readonly string[] = [],
  lifetimeSeconds?: number,
): Promise<RedisServer> {
  const configure = async (dir: string): Promise<readonly string[]> => {
    const path = join(dir, 'sentinel.conf');
    await writeFile(
      path,
      [
        `sentinel monitor events 127.0.0.1 ${primaryPort} 1`,
        'sentinel down-after-milliseconds events 500',
        // An attempt that fails, for a replica that was away just then, is repeated after twice this time.
        'sentinel failover-timeout events 2000',
      ].join('\n'),
    );
    return [path, '--sentinel'];
  };
  return startRedis(args, configure, lifetimeSeconds);
}
