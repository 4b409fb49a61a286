import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Certificates, makeCertificates } from './private-ca.ts';
import { DURABLE, freePort, type RedisServer, startRedis } from './redis.ts';
import { inStep } from './redis-topologies.ts';
import { until } from './until.ts';

/** A server with a port of its own for TLS, beside the one of its `admin`. */
export interface SecureServer extends RedisServer {
  readonly tlsPort: number;
}

/** Servers that speak TLS alone with others, and among themselves, under one private authority. Their `admin` speaks without. */
export interface SecureServers extends AsyncDisposable {
  readonly url: string;
  readonly certificates: Certificates;
  /** The first is the primary, where there is one. */
  readonly servers: readonly SecureServer[];
}

export interface SecureSentinel extends SecureServers {
  readonly primary: SecureServer;
  readonly replica: SecureServer;
  readonly sentinel: SecureServer;
}

interface SecureOptions {
  /** After so many seconds they are ended, whatever becomes of the caller; longer than any test where it is not given. */
  readonly lifetimeSeconds?: number;
  /** Whether clients have to show a certificate. One that they show is verified in any case. */
  readonly asksClients?: boolean;
}

/** Starts a server with a port for TLS. */
async function startSecure(
  certificates: Certificates,
  args: readonly string[],
  { lifetimeSeconds, asksClients = true }: SecureOptions = {},
  leading?: (dir: string) => Promise<readonly string[]>,
): Promise<SecureServer> {
  const tlsPort = await freePort(55_000);
  const tls = [
    ...['--tls-port', String(tlsPort), '--tls-replication', 'yes'],
    ...['--tls-auth-clients', asksClients ? 'yes' : 'optional'],
    ...['--tls-cert-file', certificates.certificate, '--tls-key-file', certificates.key],
    ...['--tls-ca-cert-file', certificates.authority],
  ];
  return { ...(await startRedis([...args, ...tls], leading, lifetimeSeconds)), tlsPort };
}

const stopAll = async (servers: readonly RedisServer[]): Promise<void> => {
  await Promise.all(servers.map((server) => server.stop()));
};

/** A primary, its replica and a Sentinel. */
export async function startSecureSentinel(dir: string, options: SecureOptions = {}): Promise<SecureSentinel> {
  const certificates = await makeCertificates(dir);
  const durable = [...DURABLE, '--repl-diskless-sync-delay', '0'];
  const primary = await startSecure(certificates, durable, options);
  const follows = ['--replicaof', '127.0.0.1', String(primary.tlsPort)];
  const replica = await startSecure(certificates, [...durable, ...follows], options);
  await inStep(primary, replica);
  const sentinel = await startSecure(certificates, [], options, async (folder) => {
    const path = join(folder, 'sentinel.conf');
    await writeFile(
      path,
      [
        `sentinel monitor events 127.0.0.1 ${primary.tlsPort} 1`,
        'sentinel down-after-milliseconds events 1000',
        'sentinel failover-timeout events 2000',
      ].join('\n'),
    );
    return [path, '--sentinel'];
  });
  await until(async () => {
    const replicas = await sentinel.admin.call('SENTINEL', 'REPLICAS', 'events');
    return Array.isArray(replicas) && replicas.length > 0;
  });
  const servers = [primary, replica, sentinel];
  return {
    url: `rediss+sentinel://127.0.0.1:${sentinel.tlsPort}/events`,
    certificates,
    servers,
    primary,
    replica,
    sentinel,
    [Symbol.asyncDispose]: () => stopAll(servers),
  };
}

/**
 * A Cluster of three primaries.
 *
 * @param names in their certificate
 * @param more arguments for each node
 */
export async function startSecureCluster(
  dir: string,
  names?: string,
  more: readonly string[] = [],
): Promise<SecureServers> {
  const certificates = await makeCertificates(dir, names === undefined ? {} : { names });
  const alone = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', '--tls-cluster', 'yes'];
  const cluster = [...alone, ...more];
  const servers = await Promise.all([0, 1, 2].map(() => startSecure(certificates, [...DURABLE, ...cluster])));
  const share = Math.ceil(16_384 / servers.length);
  const [first] = servers;
  for (const [index, { admin }] of servers.entries()) {
    const end = Math.min((index + 1) * share, 16_384) - 1;
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', index * share, end);
    await admin.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    if (index > 0) await admin.call('CLUSTER', 'MEET', '127.0.0.1', first?.tlsPort ?? 0);
  }
  for (const { admin } of servers) {
    await until(async () => {
      const info = String(await admin.call('CLUSTER', 'INFO'));
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3');
    });
  }
  return {
    url: `rediss+cluster://${servers.map(({ tlsPort }) => `127.0.0.1:${tlsPort}`).join(',')}`,
    certificates,
    servers,
    [Symbol.asyncDispose]: () => stopAll(servers),
  };
}
