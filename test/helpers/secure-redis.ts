import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Certificates, makeCertificates } from './private-ca.ts';
import { DURABLE, freePort, type RedisServer, startRedis } from './redis.ts';
import { inStep } from './redis-topologies.ts';
import { until } from './until.ts';

/** Servers that speak TLS alone with others, and among themselves, under one private authority. Their `admin` speaks without. */
export interface SecureServers extends AsyncDisposable {
  readonly url: string;
  readonly certificates: Certificates;
  /** The first is the primary, where there is one. */
  readonly servers: readonly RedisServer[];
}

/** A server with a port of its own for TLS, which asks clients for their certificate. */
async function startSecure(
  certificates: Certificates,
  args: readonly string[],
  leading?: (dir: string) => Promise<readonly string[]>,
): Promise<{ readonly server: RedisServer; readonly port: number }> {
  const port = await freePort(55_000);
  const tls = [
    ...['--tls-port', String(port), '--tls-replication', 'yes', '--tls-auth-clients', 'yes'],
    ...['--tls-cert-file', certificates.certificate, '--tls-key-file', certificates.key],
    ...['--tls-ca-cert-file', certificates.authority],
  ];
  return { server: await startRedis([...args, ...tls], leading), port };
}

const stopAll = async (servers: readonly RedisServer[]): Promise<void> => {
  await Promise.all(servers.map((server) => server.stop()));
};

/** A primary, its replica and a Sentinel. */
export async function startSecureSentinel(dir: string): Promise<SecureServers> {
  const certificates = await makeCertificates(dir);
  const durable = [...DURABLE, '--repl-diskless-sync-delay', '0'];
  const primary = await startSecure(certificates, durable);
  const replica = await startSecure(certificates, [
    ...durable,
    ...['--replicaof', '127.0.0.1', String(primary.port)],
  ]);
  await inStep(primary.server, replica.server);
  const sentinel = await startSecure(certificates, [], async (folder) => {
    const path = join(folder, 'sentinel.conf');
    await writeFile(
      path,
      [
        `sentinel monitor events 127.0.0.1 ${primary.port} 1`,
        'sentinel down-after-milliseconds events 1000',
        'sentinel failover-timeout events 2000',
      ].join('\n'),
    );
    return [path, '--sentinel'];
  });
  await until(async () => {
    const replicas = await sentinel.server.admin.call('SENTINEL', 'REPLICAS', 'events');
    return Array.isArray(replicas) && replicas.length > 0;
  });
  const servers = [primary.server, replica.server, sentinel.server];
  return {
    url: `rediss+sentinel://127.0.0.1:${sentinel.port}/events`,
    certificates,
    servers,
    [Symbol.asyncDispose]: () => stopAll(servers),
  };
}

/** A Cluster of three primaries. */
export async function startSecureCluster(dir: string): Promise<SecureServers> {
  const certificates = await makeCertificates(dir);
  const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', '--tls-cluster', 'yes'];
  const nodes = await Promise.all([0, 1, 2].map(() => startSecure(certificates, [...DURABLE, ...cluster])));
  const share = Math.ceil(16_384 / nodes.length);
  const [first] = nodes;
  for (const [index, { server }] of nodes.entries()) {
    const end = Math.min((index + 1) * share, 16_384) - 1;
    await server.admin.call('CLUSTER', 'ADDSLOTSRANGE', index * share, end);
    await server.admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    if (index > 0) await server.admin.call('CLUSTER', 'MEET', '127.0.0.1', first?.port ?? 0);
  }
  for (const { server } of nodes) {
    await until(async () => {
      const info = String(await server.admin.call('CLUSTER', 'INFO'));
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
    });
  }
  const servers = nodes.map(({ server }) => server);
  return {
    url: `rediss+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    certificates,
    servers,
    [Symbol.asyncDispose]: () => stopAll(servers),
  };
}
