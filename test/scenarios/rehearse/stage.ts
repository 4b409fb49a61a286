import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { type Certificates, makeCertificates, renewCertificate } from '../../helpers/private-ca.ts';
import { listens, startProxy, writePem, writeProxies } from '../../helpers/proxies.ts';
import { freePort } from '../../helpers/redis.ts';
import { type SecureSentinel, type SecureServer, startSecureSentinel } from '../../helpers/secure-redis.ts';
import { serviceEnvironment } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { type Collector, startCollector } from './collector.ts';
import { type IdentityProvider, startIdentityProvider } from './identity-provider.ts';
import { createMember, type Member } from './member.ts';
import { putFirst } from './priority.ts';

/** The shape that is rehearsed: two gateways behind HAProxy and nginx, on Redis with a replica and a Sentinel, all with TLS. */
export interface Stage {
  readonly folder: string;
  readonly sandbox: Sandbox;
  readonly store: SecureSentinel;
  readonly identity: IdentityProvider;
  readonly collector: Collector;
  readonly members: readonly [Member, Member];
  /** Origins of the two proxies, and the file of the authority that has signed their certificates. */
  readonly haproxy: string;
  readonly nginx: string;
  readonly authority: string;
  /** What the provider signs its deliveries with. */
  providerSecret: string;
  /** What the gateways are started with from now on. */
  readonly environment: Record<string, string>;
  /** Gives the proxies, Redis and the Sentinel another certificate of their authorities; gateways have it from their next start on. */
  renewCertificates(): Promise<void>;
}

/** Redis' own rights of the gateway (docs/redis.md). */
const ACL_RULES = ['~*', '&*', '+@all', '-@dangerous', '+info', '+config|get'];

interface Served {
  readonly sandbox: Sandbox;
  readonly store: SecureSentinel;
  readonly identity: IdentityProvider;
  readonly collector: Collector;
  readonly publicUrl: string;
  readonly providerSecret: string;
  /** All authorities, in one file. */
  readonly authorities: string;
}

function environmentOf(served: Served): Record<string, string> {
  const { sandbox, store, identity, collector } = served;
  const { AUTH_JWT_SECRET: _unused, ...service } = serviceEnvironment(sandbox);
  return {
    UPSTREAM_URL: sandbox.url,
    REDIS_URL: store.url.replace('rediss+sentinel://', 'rediss+sentinel://gateway:first@'),
    REDIS_TLS_CA: store.certificates.authority,
    REDIS_TLS_CERT: store.certificates.certificate,
    REDIS_TLS_KEY: store.certificates.key,
    // Version 0.1.0 knows no REDIS_TLS_CA.
    NODE_EXTRA_CA_CERTS: served.authorities,
    WEBHOOK_SECRET: served.providerSecret,
    PUBLIC_URL: served.publicUrl,
    UPSTREAM_TIMEOUT_MS: '5000',
    LIMIT_STREAMS_PER_ADDRESS: '20000',
    SHUTDOWN_DELAY_MS: '3000',
    SHUTDOWN_GRACE_MS: '15000',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...service,
    AUTH_JWKS_URL: identity.jwksUrl,
    AUTH_JWKS_MAX_AGE: '5',
  };
}

/** Starts both proxies with the configurations of `deploy`, in a folder. */
async function startProxies(
  cleanup: AsyncDisposableStack,
  folder: string,
  ports: Parameters<typeof writeProxies>[1],
  lifetimeSeconds: number,
) {
  const args = await writeProxies(folder, ports);
  const haproxy = startProxy('haproxy', args.haproxy, lifetimeSeconds);
  const nginx = startProxy('nginx', args.nginx, lifetimeSeconds);
  for (const proxy of [haproxy, nginx]) {
    putFirst(proxy);
    cleanup.defer(() => void proxy.kill('SIGTERM'));
  }
  for (const [port, proxy] of [
    [ports.haproxyPort, haproxy],
    [ports.nginxPort, nginx],
  ] as const) {
    await until(() => {
      if (proxy.exitCode !== null) throw new Error(`${proxy.spawnfile} ended with ${proxy.exitCode}.`);
      return listens(port);
    });
  }
  return { haproxy, nginx };
}

/** Makes a folder within another, with an authority and a certificate. */
async function certificatesIn(folder: string, name: string): Promise<Certificates> {
  await mkdir(join(folder, name));
  return makeCertificates(join(folder, name));
}

/** @param cleanup ends all that has been started, also where the stage is only half there. */
export async function openStage(cleanup: AsyncDisposableStack, lifetimeSeconds: number): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-rehearse-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const certificates = await certificatesIn(folder, 'proxies');
  await mkdir(join(folder, 'redis'));
  // Version 0.1.0 can show no certificate.
  const redis = join(folder, 'redis');
  const store = cleanup.use(await startSecureSentinel(redis, { lifetimeSeconds, asksClients: false }));
  for (const { admin } of [store.primary, store.replica]) {
    await admin.acl('SETUSER', 'gateway', 'on', '>first', ...ACL_RULES);
  }
  const authorities = join(folder, 'authorities.crt');
  const files = [certificates.authority, store.certificates.authority];
  await writeFile(authorities, (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join(''));
  const identity = cleanup.use(await startIdentityProvider());
  const collector = await startCollector(lifetimeSeconds);
  cleanup.defer(() => collector.stop());
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const ports = [await freePort(), await freePort()] as const;
  const [haproxyPort, nginxPort] = [await freePort(), await freePort()];
  const providerSecret = 'the secret that the rehearsal begins with';
  const publicUrl = `https://localhost:${nginxPort}`;
  const served = { sandbox, store, identity, collector, publicUrl, providerSecret, authorities };
  const environment = environmentOf(served);
  const member = async (name: string, port: number) => {
    const one = await createMember({ name, port, folder, lifetimeSeconds, environment });
    cleanup.defer(() => one.remove());
    return one;
  };
  const members = [await member('a', ports[0]), await member('b', ports[1])] as const;
  await Promise.all(members.map((one) => one.start()));
  const addresses = { haproxyPort, nginxPort, ports, certificates };
  const { haproxy, nginx } = await startProxies(cleanup, folder, addresses, lifetimeSeconds);
  return {
    folder,
    sandbox,
    store,
    members,
    identity,
    collector,
    environment,
    authority: certificates.authority,
    providerSecret,
    haproxy: `https://localhost:${haproxyPort}`,
    nginx: publicUrl,
    async renewCertificates() {
      for (const own of [certificates, store.certificates]) await renewCertificate(dirname(own.authority));
      await writePem(folder, certificates);
      haproxy.kill('SIGUSR2');
      nginx.kill('SIGHUP');
      await readCertificates(store);
    },
  };
}

/** Has every Redis and the Sentinel read the files of their certificates and authorities again. */
export async function readCertificates({
  certificates,
  primary,
  replica,
  sentinel,
}: SecureSentinel): Promise<void> {
  const { authority, certificate, key } = certificates;
  const files = ['tls-ca-cert-file', authority, 'tls-cert-file', certificate, 'tls-key-file', key];
  for (const { admin } of [primary, replica]) await admin.call('CONFIG', 'SET', ...files);
  // A Sentinel takes no CONFIG.
  await sentinel.kill();
  await sentinel.start();
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
