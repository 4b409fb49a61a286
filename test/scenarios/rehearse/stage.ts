import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { renewCertificate } from '../../helpers/private-ca.ts';
import { listens, startProxy, writePem, writeProxies } from '../../helpers/proxies.ts';
import { freePort } from '../../helpers/redis.ts';
import { type SecureSentinel, type SecureServer, startSecureSentinel } from '../../helpers/secure-redis.ts';
import { serviceEnvironment } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { type IdentityProvider, startIdentityProvider } from './identity-provider.ts';
import { createMember, type Member } from './member.ts';

const TOOLS = ['haproxy', 'nginx', 'redis-server', 'openssl', 'prometheus'];

/** @throws with one sentence that names the programs which are not on the PATH */
export function requireTools(): void {
  const missing = TOOLS.filter((tool) => spawnSync('which', [tool]).status !== 0);
  if (missing.length === 0) return;
  throw new Error(
    `The rehearsal needs ${missing.join(', ')} on the PATH: on Debian, apt-get install haproxy nginx-light redis-server openssl prometheus.`,
  );
}

/** The shape that is rehearsed: two gateways behind HAProxy and nginx, on Redis with a replica and a Sentinel, all with TLS. */
export interface Stage extends AsyncDisposable {
  readonly folder: string;
  readonly sandbox: Sandbox;
  readonly store: SecureSentinel;
  readonly identity: IdentityProvider;
  readonly members: readonly [Member, Member];
  /** Origins of the two proxies, and the authority that has signed all certificates, in PEM. */
  readonly haproxy: string;
  readonly nginx: string;
  readonly authority: string;
  /** What the provider signs its deliveries with. */
  providerSecret: string;
  /** What the gateways are started with from now on. */
  readonly environment: Record<string, string>;
  /** Gives the proxies, Redis and the Sentinel another certificate of the same authority; gateways have it from their next start on. */
  renewCertificates(): Promise<void>;
}

/** Redis' own rights of the gateway (docs/operations.md). */
const ACL_RULES = ['~*', '&*', '+@all', '-@dangerous', '+info', '+config|get'];

export async function openStage(lifetimeSeconds: number): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-rehearse-'));
  // Version 0.1.0 can show no certificate.
  const store = await startSecureSentinel(folder, { lifetimeSeconds, asksClients: false });
  const { certificates } = store;
  const identity = await startIdentityProvider();
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
  const { AUTH_JWT_SECRET: _unused, ...service } = serviceEnvironment(sandbox);
  const providerSecret = 'the secret that the rehearsal begins with';
  const environment: Record<string, string> = {
    UPSTREAM_URL: sandbox.url,
    REDIS_URL: store.url.replace('rediss+sentinel://', 'rediss+sentinel://gateway:first@'),
    REDIS_TLS_CA: certificates.authority,
    REDIS_TLS_CERT: certificates.certificate,
    REDIS_TLS_KEY: certificates.key,
    // Version 0.1.0 knows no REDIS_TLS_CA.
    NODE_EXTRA_CA_CERTS: certificates.authority,
    WEBHOOK_SECRET: providerSecret,
    PUBLIC_URL: `https://localhost:${nginxPort}`,
    UPSTREAM_TIMEOUT_MS: '5000',
    LIMIT_STREAMS_PER_ADDRESS: '20000',
    SHUTDOWN_DELAY_MS: '3000',
    SHUTDOWN_GRACE_MS: '15000',
    ...service,
    AUTH_JWKS_URL: identity.jwksUrl,
    AUTH_JWKS_MAX_AGE: '5',
  };
  const member = (name: string, port: number) =>
    createMember({ name, port, folder, lifetimeSeconds, environment });
  const members = [await member('a', first), await member('b', second)] as const;
  await Promise.all(members.map((one) => one.start()));
  const files = { haproxyPort, nginxPort, ports: [first, second] as const, certificates };
  const args = await writeProxies(folder, files);
  const haproxy = startProxy('haproxy', args.haproxy, lifetimeSeconds);
  const nginx = startProxy('nginx', args.nginx, lifetimeSeconds);
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
    identity,
    environment,
    authority: await readFile(certificates.authority, 'utf8'),
    providerSecret,
    haproxy: `https://localhost:${haproxyPort}`,
    nginx: `https://localhost:${nginxPort}`,
    async renewCertificates() {
      await renewCertificate(folder);
      await writePem(folder, certificates);
      haproxy.kill('SIGUSR2');
      nginx.kill('SIGHUP');
      const { certificate, key } = certificates;
      for (const { admin } of [store.primary, store.replica])
        await admin.call('CONFIG', 'SET', 'tls-cert-file', certificate, 'tls-key-file', key);
      // A Sentinel takes no CONFIG.
      await store.sentinel.kill();
      await store.sentinel.start();
    },
    async [Symbol.asyncDispose]() {
      for (const proxy of [haproxy, nginx]) proxy.kill('SIGTERM');
      await Promise.all(members.map((one) => one.remove()));
      await sandbox.stop();
      await identity[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return stage;
}

/** The server that Sentinel names the primary, and the other one. */
export async function rolesOf(
  store: SecureSentinel,
): Promise<{ primary: SecureServer; replica: SecureServer }> {
  const named = await store.sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
  const port = Array.isArray(named) ? Number(named[1]) : store.primary.tlsPort;
  const [primary, replica] = [store.primary, store.replica];
  return port === primary.tlsPort ? { primary, replica } : { primary: replica, replica: primary };
}

/** What a Redis that comes back has forgotten: it is started by its arguments alone. */
export async function rejoin(server: SecureServer, primary: SecureServer, password: string): Promise<void> {
  await server.start();
  await server.admin.acl('SETUSER', 'gateway', 'on', `>${password}`, ...ACL_RULES);
  if (server !== primary) await server.admin.replicaof('127.0.0.1', primary.tlsPort);
  await until(async () => (await server.admin.info('replication')).includes('master_link_status:up'));
}
