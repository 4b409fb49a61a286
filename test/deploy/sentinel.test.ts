import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pasarela } from '../cli/run.ts';
import { type DeployedRedis, startDeployedRedis } from '../helpers/deployed-redis.ts';
import { type Fleet, type Member, startFleet } from '../helpers/fleet.ts';
import { until } from '../helpers/until.ts';

const LIFETIME_SECONDS = 1_800;

let group: DeployedRedis;
let fleet: Fleet;
let gateway: Member;
let environment: Readonly<Record<string, string>>;

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
  group = await startDeployedRedis(LIFETIME_SECONDS);
  fleet = await startFleet(LIFETIME_SECONDS);
  environment = {
    UPSTREAM_URL: fleet.sandbox.url,
    WEBHOOK_SECRET: 'a secret for tests that is long enough',
    REDIS_URL: group.url,
    REDIS_TLS_CA: group.certificates.authority,
  };
  gateway = await fleet.start(environment);
  await until(async () => (await health()).status === 'ready');
});
afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
  await group[Symbol.asyncDispose]();
});

it('the doctor finds nothing in the servers of deploy/redis but the risk that the page tells', async () => {
  const [risk, ...others] = await doctor();
  expect(risk).toContain('min-replicas-to-write 0');
  expect(others).toEqual([]);
});

it('they let nobody in without a password', async () => {
  const tls = { ca: await readFile(group.certificates.authority, 'utf8') };
  for (const { port } of [...group.redis, ...group.sentinels]) {
    const stranger = new Redis({ host: '127.0.0.1', port, tls, enableReadyCheck: false });
    // What its first command is told counts.
    stranger.on('error', () => {});
    await expect(stranger.ping()).rejects.toThrow('NOAUTH');
    stranger.disconnect();
  }
});

it('they fail over and back by themselves, and keep what was answered', async () => {
  const [first, second] = group.redis;
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
    await dies.kill();
    await deliver();
    // Sentinels have the promotion written into the server's file.
    await until(async () => !/^replicaof/m.test(await readFile(follows.file, 'utf8')));
    await dies.start();
    await until(async () => (await health()).status === 'ready');
    expect(await readFile(dies.file, 'utf8')).toContain(`replicaof 127.0.0.1 ${follows.port}`);
  }
  await until(async () => (await gateway.metric('pasarela_spooled_events')) === 0);
  const { data } = await gateway.query('{ events(first: 10) { nodes { id } } }');
  expect(data.events.nodes.map(({ id }: { id: string }) => id)).toEqual(answered);
});

it('they have what was answered when both are started again', async () => {
  const ids = async (): Promise<readonly string[]> => {
    const { data } = await gateway.query('{ events(first: 10) { nodes { id } } }');
    return data?.events.nodes.map(({ id }: { id: string }) => id) ?? [];
  };
  const id_msg = randomUUID();
  expect(await gateway.deliver('STATUS_UPDATE', { id_msg })).toBe(201);
  // Where Redis stands still it is in the spool for a moment.
  const answered = await until(async () => {
    const kept = await ids();
    return kept.includes(id_msg) && kept;
  });
  await Promise.all(group.redis.map((server) => server.kill()));
  await until(async () => (await health()).status === 'degraded');
  await Promise.all(group.redis.map((server) => server.start()));
  await until(async () => (await health()).status === 'ready');
  expect(await ids()).toEqual(answered);
});
