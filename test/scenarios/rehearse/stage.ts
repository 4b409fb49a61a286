import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { freePort, type RedisServer } from '../../helpers/redis.ts';
import { type RedisWithSentinel, startWithSentinel } from '../../helpers/redis-topologies.ts';
import { serviceEnvironment } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { createMember, type Member } from './member.ts';
import { listens, makeAuthority, makeCertificate, startProxy, writeProxies } from './proxies.ts';

const TOOLS = ['haproxy', 'nginx', 'redis-server', 'openssl', 'prometheus'];

/** @throws with one sentence that names the programs which are not on the PATH */
export function requireTools(): void {
  const missing = TOOLS.filter((tool) => spawnSync('which', [tool]).status !== 0);
  if (missing.length === 0) return;
  throw new Error(
    `The rehearsal needs ${missing.join(', ')} on the PATH: on Debian, apt-get install haproxy nginx-light redis-server openssl prometheus.`,
  );
}

/** The shape that is rehearsed: two gateways behind HAProxy and nginx, both with TLS, on Redis with a replica and a Sentinel. */
export interface Stage extends AsyncDisposable {
  readonly folder: string;
  readonly sandbox: Sandbox;
  readonly store: RedisWithSentinel;
  readonly members: readonly [Member, Member];
  /** Origins of the two proxies, and the authority that has signed their certificates, in PEM. */
  readonly haproxy: string;
  readonly nginx: string;
  authority: string;
  /** What the gateways are started with from now on. */
  readonly environment: Record<string, string>;
  /** Gives both proxies another certificate of the same authority, without a pause. */
  renewCertificates(): Promise<void>;
}

/** Redis' own rights of the gateway (docs/operations.md). */
const ACL_RULES = ['~*', '&*', '+@all', '-@dangerous', '+info', '+config|get'];

export async function openStage(lifetimeSeconds: number): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-rehearse-'));
  const store = await startWithSentinel([], lifetimeSeconds);
  for (const { admin } of [store.primary, store.replica]) {
    await admin.acl('SETUSER', 'gateway', 'on', '>first', ...ACL_RULES);
  }
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const [first, second, haproxyPort, nginxPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const environment: Record<string, string> = {
    UPSTREAM_URL: sandbox.url,
    REDIS_URL: store.url.replace('redis+sentinel://', 'redis+sentinel://gateway:first@'),
    WEBHOOK_SECRET: 'the secret that the rehearsal begins with',
    PUBLIC_URL: `https://localhost:${nginxPort}`,
    UPSTREAM_TIMEOUT_MS: '5000',
    LIMIT_STREAMS_PER_ADDRESS: '20000',
    SHUTDOWN_DELAY_MS: '2000',
    SHUTDOWN_GRACE_MS: '15000',
    ...serviceEnvironment(sandbox),
  };
  const member = (name: string, port: number) =>
    createMember({ name, port, folder, lifetimeSeconds, environment });
  const members = [await member('a', first), await member('b', second)] as const;
  await Promise.all(members.map((one) => one.start()));
  const authority = await makeAuthority(folder);
  await makeCertificate(folder);
  await writeProxies(folder, { haproxyPort, nginxPort, ports: [first, second] });
  const haproxy = startProxy('haproxy', ['-W', '-db', '-f', join(folder, 'haproxy.cfg')], lifetimeSeconds);
  const nginx = startProxy('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], lifetimeSeconds);
  for (const [port, proxy] of [
    [haproxyPort, haproxy],
    [nginxPort, nginx],
  ] as const) {
    await until(() => {
      if (proxy.exitCode !== null) throw new Error(`${proxy.spawnfile} ended with ${proxy.exitCode}.`);
      return listens(port);
    });
  }
  const stage: Stage = {
    folder,
    sandbox,
    store,
    members,
    environment,
    authority,
    haproxy: `https://localhost:${haproxyPort}`,
    nginx: `https://localhost:${nginxPort}`,
    async renewCertificates() {
      await makeCertificate(folder);
      haproxy.kill('SIGUSR2');
      nginx.kill('SIGHUP');
    },
    async [Symbol.asyncDispose]() {
      for (const proxy of [haproxy, nginx]) proxy.kill('SIGTERM');
      await Promise.all(members.map((one) => one.remove()));
      await sandbox.stop();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return stage;
}

/** The server that Sentinel names the primary, and the other one. */
export async function rolesOf(
  store: RedisWithSentinel,
): Promise<{ primary: RedisServer; replica: RedisServer }> {
  const named = await store.sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
  const port = Array.isArray(named) ? Number(named[1]) : store.primary.port;
  const [primary, replica] = [store.primary, store.replica];
  return port === primary.port ? { primary, replica } : { primary: replica, replica: primary };
}

/** What a Redis that comes back has forgotten: it is started by its arguments alone. */
export async function rejoin(server: RedisServer, primary: RedisServer, password: string): Promise<void> {
  await server.start();
  await server.admin.acl('SETUSER', 'gateway', 'on', `>${password}`, ...ACL_RULES);
  if (server !== primary) await server.admin.replicaof('127.0.0.1', primary.port);
  await until(async () => (await server.admin.info('replication')).includes('master_link_status:up'));
}
