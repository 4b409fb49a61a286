import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { type Program, startProgram } from '../../helpers/program.ts';
import { endWithThisProcess, freePort, type RedisServer } from '../../helpers/redis.ts';
import { type RedisWithSentinel, startWithSentinel } from '../../helpers/redis-topologies.ts';
import { serviceEnvironment } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';

const run = promisify(execFile);
const TOOLS = ['haproxy', 'nginx', 'redis-server', 'openssl'];

/** @throws with one sentence that names the programs which are not on the PATH */
export function requireTools(): void {
  const missing = TOOLS.filter((tool) => spawnSync('which', [tool]).status !== 0);
  if (missing.length === 0) return;
  throw new Error(
    `The rehearsal needs ${missing.join(', ')} on the PATH: on Debian, apt-get install haproxy nginx-light redis-server openssl.`,
  );
}

/** What `/readyz` has answered since it was looked at last. */
interface Looks {
  longestMs: number;
  readonly states: Set<string>;
}

/** One of the gateways. */
export interface Member {
  readonly name: string;
  readonly url: string;
  readonly dataDir: string;
  readonly looks: Looks;
  start(): Promise<void>;
  /** Ends it by a signal, and resolves once it is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
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
  const members = [member('a', first), member('b', second)] as const;
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
      await Promise.all(members.map((one) => one.end('SIGKILL')));
      await sandbox.stop();
      await store[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
  return stage;
}

interface MemberOptions {
  readonly name: string;
  readonly port: number;
  readonly folder: string;
  readonly lifetimeSeconds: number;
  readonly environment: Readonly<Record<string, string>>;
}

function createMember({ name, port, folder, lifetimeSeconds, environment }: MemberOptions): Member {
  const url = `http://127.0.0.1:${port}`;
  const dataDir = join(folder, `data-${name}`);
  let program: Program | undefined;
  return {
    name,
    url,
    dataDir,
    looks: { longestMs: 0, states: new Set() },
    async start() {
      program = startProgram('src/start.js', { ...environment, PORT: String(port), DATA_DIR: dataDir });
      endWithThisProcess(program.process, lifetimeSeconds);
      await until(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.ok === true);
    },
    async end(signal) {
      await program?.end(signal);
    },
  };
}

async function makeAuthority(folder: string): Promise<string> {
  const path = join(folder, 'ca.crt');
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-keyout', join(folder, 'ca.key'), '-out', path, '-subj', '/CN=rehearsal'],
  ]);
  return readFile(path, 'utf8');
}

/** One file with the certificate and its key, as both proxies read it. */
async function makeCertificate(folder: string): Promise<void> {
  const at = (name: string) => join(folder, name);
  await writeFile(at('names'), 'subjectAltName=DNS:localhost');
  await run('openssl', [
    ...[
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-subj',
      '/CN=localhost',
    ],
    ...['-keyout', at('proxy.key'), '-out', at('proxy.csr')],
  ]);
  await run('openssl', [
    ...[
      'x509',
      '-req',
      '-days',
      '1',
      '-in',
      at('proxy.csr'),
      '-out',
      at('proxy.crt'),
      '-extfile',
      at('names'),
    ],
    ...['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial'],
  ]);
  await writeFile(
    at('proxy.pem'),
    (await readFile(at('proxy.crt'), 'utf8')) + (await readFile(at('proxy.key'), 'utf8')),
  );
}

interface Ports {
  readonly haproxyPort: number;
  readonly nginxPort: number;
  readonly ports: readonly [number, number];
}

async function writeProxies(folder: string, { haproxyPort, nginxPort, ports: [a, b] }: Ports): Promise<void> {
  const pem = join(folder, 'proxy.pem');
  await writeFile(
    join(folder, 'haproxy.cfg'),
    `global
  maxconn 8000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
  option forwardfor
  option redispatch
  retries 3
frontend public
  bind 127.0.0.1:${haproxyPort} ssl crt ${pem}
  default_backend gateways
backend gateways
  balance leastconn
  option httpchk GET /readyz
  default-server check inter 500 fall 2 rise 1
  server a 127.0.0.1:${a}
  server b 127.0.0.1:${b}
`,
  );
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `  ${kind}_temp_path ${folder};`)
    .join('\n');
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.log;
events { worker_connections 8000; }
http {
  access_log off;
${temporary}
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream gateways {
    server 127.0.0.1:${a} max_fails=1 fail_timeout=1s;
    server 127.0.0.1:${b} max_fails=1 fail_timeout=1s;
    keepalive 64;
  }
  server {
    listen 127.0.0.1:${nginxPort} ssl;
    ssl_certificate ${folder}/proxy.crt;
    ssl_certificate_key ${folder}/proxy.key;
    location / {
      proxy_pass http://gateways;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_next_upstream error timeout http_503;
      proxy_read_timeout 60s;
    }
  }
}
`,
  );
}

function startProxy(program: string, args: readonly string[], lifetimeSeconds: number): ChildProcess {
  const child = spawn(program, args, { stdio: 'ignore' });
  endWithThisProcess(child, lifetimeSeconds);
  void once(child, 'error').then(([error]) => {
    throw error;
  });
  return child;
}

const listens = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket
      .once('connect', () => {
        socket.destroy();
        resolve(true);
      })
      .once('error', () => resolve(false));
    socket.setTimeout(1_000, () => socket.destroy());
  });

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
