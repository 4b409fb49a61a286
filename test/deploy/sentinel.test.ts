import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pasarela } from '../cli/run.ts';
import { type Fleet, type Member, startFleet } from '../helpers/fleet.ts';
import { type Certificates, makeCertificates } from '../helpers/private-ca.ts';
import { listens, startProxy, withOwn } from '../helpers/proxies.ts';
import { freePort } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

const LIFETIME_SECONDS = 1_800;
const FOLDER = new URL('../../deploy/redis/', import.meta.url);
const FIRST = '10.0.0.21 6379';

interface Server {
  readonly port: number;
  readonly dir: string;
  readonly file: string;
  process: ChildProcess;
}

let folder: string;
let certificates: Certificates;
let fleet: Fleet;
let gateway: Member;
let redis: readonly [Server, Server];
const sentinels: Server[] = [];
let environment: Readonly<Record<string, string>>;

const spawnOn = (file: string, args: readonly string[]) =>
  startProxy('redis-server', [file, ...args], LIFETIME_SECONDS);

/** Starts a server on a configuration of `deploy/redis`, in a folder of its own, with the addresses and files of this machine. */
async function start(
  name: 'redis.conf' | 'sentinel.conf',
  own: Readonly<Record<string, string>>,
  more = '',
): Promise<Server> {
  const port = await freePort();
  const dir = await mkdtemp(join(folder, 'server-'));
  const file = join(dir, name);
  const text = await withOwn(new URL(name, FOLDER), {
    'bind * -::*': 'bind 127.0.0.1',
    [name === 'redis.conf' ? 'tls-port 6379' : 'tls-port 26379']: `tls-port ${port}`,
    '/etc/redis/tls/redis.crt': certificates.certificate,
    '/etc/redis/tls/redis.key': certificates.key,
    '/etc/redis/tls/ca.crt': certificates.authority,
    'dir /var/lib/redis': `dir ${dir}`,
    ...own,
  });
  await writeFile(file, `${text}${more}`);
  const args = name === 'sentinel.conf' ? ['--sentinel'] : [];
  const server = { port, dir, file, process: spawnOn(file, args) };
  await until(() => listens(port));
  return server;
}

async function startAgain(server: Server): Promise<void> {
  server.process = spawnOn(server.file, []);
  await until(() => listens(server.port));
}

const health = async () => (await fetch(`${gateway.url}/readyz`)).json() as Promise<{ status: string }>;
/** The findings of the doctor about Redis that are not well. */
async function doctor(): Promise<readonly string[]> {
  const { stdout } = await pasarela(['doctor', '--json'], environment);
  const { findings } = JSON.parse(stdout) as {
    findings: readonly { check: string; status: string; message: string }[];
  };
  const ofRedis = findings.filter(({ check }) => check === 'redis');
  expect(ofRedis.some(({ status }) => status === 'ok')).toBe(true);
  return ofRedis.filter(({ status }) => status !== 'ok').map(({ message }) => message);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-sentinel-'));
  certificates = await makeCertificates(folder);
  const users = { '/etc/redis/users.acl': fileURLToPath(new URL('users.acl', FOLDER)) };
  const first = await start('redis.conf', users);
  const here = `127.0.0.1 ${first.port}`;
  // As the file says of the second server.
  expect(await readFile(new URL('redis.conf', FOLDER), 'utf8')).toContain(`replicaof ${FIRST}`);
  redis = [first, await start('redis.conf', users, `replicaof ${here}\n`)];
  for (let number = 0; number < 3; number += 1)
    sentinels.push(await start('sentinel.conf', { [FIRST]: here }));
  const names = sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',');
  const page = await readFile(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const [, url = ''] = /REDIS_URL=(rediss\+sentinel:\S+sentinelPassword=\S+)/.exec(page) ?? [];
  fleet = await startFleet(LIFETIME_SECONDS);
  environment = {
    UPSTREAM_URL: fleet.sandbox.url,
    WEBHOOK_SECRET: 'a secret for tests that is long enough',
    REDIS_URL: url.replace(/@[^/]+/, `@${names}`),
    REDIS_TLS_CA: certificates.authority,
  };
  gateway = await fleet.start(environment);
  await until(async () => (await health()).status === 'ready');
});
afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
  for (const { process: child } of [...redis, ...sentinels]) child.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

it('the doctor finds nothing in the servers of deploy/redis but the risk that the page tells', async () => {
  const [risk, ...others] = await doctor();
  expect(risk).toContain('min-replicas-to-write 0');
  expect(others).toEqual([]);
});

it('they let nobody in without a password', async () => {
  const tls = { ca: await readFile(certificates.authority, 'utf8') };
  for (const { port } of [...redis, ...sentinels]) {
    const stranger = new Redis({ host: '127.0.0.1', port, tls, enableReadyCheck: false });
    // What its first command is told counts.
    stranger.on('error', () => {});
    await expect(stranger.ping()).rejects.toThrow('NOAUTH');
    stranger.disconnect();
  }
});

it('they fail over and back by themselves, and keep what was answered', async () => {
  const [first, second] = redis;
  const answered: string[] = [];
  const deliver = async () => {
    const id_msg = randomUUID();
    expect(await gateway.deliver('STATUS_UPDATE', { id_msg })).toBe(201);
    answered.push(id_msg);
  };
  for (const [dies, follows] of [
    [first, second],
    [second, first],
  ] as const) {
    await deliver();
    const gone = once(dies.process, 'exit');
    dies.process.kill('SIGKILL');
    await gone;
    await deliver();
    // Sentinels have the promotion written into the server's file.
    await until(async () => !/^replicaof/m.test(await readFile(follows.file, 'utf8')));
    await startAgain(dies);
    await until(async () => (await health()).status === 'ready');
    expect(await readFile(dies.file, 'utf8')).toContain(`replicaof 127.0.0.1 ${follows.port}`);
  }
  await until(async () => (await gateway.metric('pasarela_spooled_events')) === 0);
  const { data } = await gateway.query('{ events(first: 10) { nodes { id } } }');
  expect(data.events.nodes.map(({ id }: { id: string }) => id)).toEqual(answered);
});
