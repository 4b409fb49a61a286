import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DeployedRedis, type DeployedServer, startDeployedRedis } from '../helpers/deployed-redis.ts';
import { type Fleet, type Member, startFleet } from '../helpers/fleet.ts';
import { freePort } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

const execute = promisify(execFile);
const LIFETIME_SECONDS = 1_800;
/** Those that docs/redis.md and `deploy/redis` begin with. */
const OLD = (user: string): string => `replace-me-${user}`;
const NEW = (user: string): string => `the-new-one-of-${user}`;
/** As the Sentinels' own password is called in the files. */
const SENTINELS = 'sentinels';

let group: DeployedRedis;
let fleet: Fleet;
let gateway: Member;
let passwordOf: (user: string) => string;

const connections: Redis[] = [];
const rows = new Map<string, readonly string[]>();

/** Connects as the page says; the connection lasts while passwords change. */
function adminOf({ port }: DeployedServer, ca: string): Redis {
  const isSentinel = group.sentinels.some((sentinel) => sentinel.port === port);
  const admin = new Redis({
    ...{ host: '127.0.0.1', port, tls: { ca }, enableReadyCheck: false, retryStrategy: () => null },
    ...(isSentinel ? { password: OLD(SENTINELS) } : { username: 'admin', password: OLD('admin') }),
  });
  // It has ended with its server, which starts again at the end.
  admin.on('error', () => {});
  connections.push(admin);
  return admin;
}

const admins = { redis: [] as Redis[], sentinels: [] as Redis[] };
const replica = (): Redis => admins.redis[1] ?? expect.fail('there are two');

/** Runs the commands of a cell of the page's table. `user`: whose password it is about. */
async function run(cell: string, servers: readonly Redis[], user: string): Promise<unknown[]> {
  const replies: unknown[] = [];
  const commands = [...cell.matchAll(/`([A-Z].*?)`/g)].map(([, command = '']) => command);
  expect(commands.length).toBeGreaterThan(0);
  for (const server of servers) {
    for (const command of commands) {
      const text = command.replaceAll('NEW', NEW(user)).replaceAll('OLD', OLD(user));
      const [name = '', ...args] = text.split(' ');
      // The server of the third step has removed it already, as the page says.
      const isGone = (error: Error) => {
        if (!error.message.includes('does not exist')) throw error;
      };
      replies.push(await server.call(name, ...args).catch(isGone));
    }
  }
  return replies;
}

/** The users that a server has refused; each entry has the address that it came from. */
async function refusedBy(server: Redis): Promise<readonly string[]> {
  const log = (await server.call('ACL', 'LOG')) as readonly (readonly unknown[])[];
  return log
    .map((entry) => new Map(entry.flatMap((name, at) => (at % 2 ? [] : [[String(name), entry[at + 1]]]))))
    .filter((entry) => entry.get('reason') === 'auth')
    .map((entry) => {
      expect(entry.get('client-info')).toMatch(/ addr=127\.0\.0\.1:\d+ /);
      return String(entry.get('username'));
    });
}

const cell = (row: string, step: number): string => rows.get(row)?.[step] ?? expect.fail(`no row of ${row}`);
const serversOf = (text: string): readonly Redis[] => {
  const [, which = ''] = /^(each Redis|each Sentinel|one replica|one Sentinel): /.exec(text) ?? [];
  if (which === 'one replica') return [replica()];
  if (which === 'one Sentinel') return admins.sentinels.slice(0, 1);
  return which === 'each Sentinel' ? admins.sentinels : admins.redis;
};
const step = (row: string, number: number, user = row) => {
  const text = cell(row, number);
  return run(text, serversOf(text), user);
};

const health = async () => (await fetch(`${gateway.url}/readyz`)).json() as Promise<{ status: string }>;
const urlOf = () =>
  group.url.replace(OLD('gateway'), passwordOf('gateway')).replace(OLD(SENTINELS), passwordOf(SENTINELS));
const startGateway = async () => {
  const port = await freePort();
  gateway = await fleet.start({
    PORT: String(port),
    REDIS_URL: urlOf(),
    REDIS_TLS_CA: group.certificates.authority,
  });
  await until(async () => (await health()).status === 'ready');
};
/** How many connections a server has been asked for. */
const connectionsOf = async (server: Redis) =>
  Number(/total_connections_received:(\d+)/.exec(String(await server.call('INFO', 'stats')))?.[1]);
/** Resolves once a gateway has come to a server with a connection of its own, twice. */
async function comesAgain(server: Redis): Promise<void> {
  const before = await connectionsOf(server);
  await until(async () => (await connectionsOf(server)) >= before + 2);
}

beforeAll(async () => {
  group = await startDeployedRedis(LIFETIME_SECONDS);
  fleet = await startFleet(LIFETIME_SECONDS);
  const ca = await readFile(group.certificates.authority, 'utf8');
  admins.redis = group.redis.map((server) => adminOf(server, ca));
  admins.sentinels = group.sentinels.map((server) => adminOf(server, ca));
  const page = await readFile(new URL('../../docs/secrets.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## Passwords of Redis\n(.*?)^## /ms.exec(page) ?? [];
  for (const [, who = '', rest = ''] of section.matchAll(/^\| of (?:`(\w+)`|the Sentinels)[^|]*\|(.*)\|$/gm))
    rows.set(
      who || SENTINELS,
      rest.split('|').map((text) => text.trim()),
    );
  passwordOf = OLD;
  await startGateway();
});
afterAll(async () => {
  for (const connection of connections) connection.disconnect();
  await fleet[Symbol.asyncDispose]();
  await group[Symbol.asyncDispose]();
});

it('the page has a row for each password of deploy/redis', () => {
  expect([...rows.keys()]).toEqual(['gateway', 'replica', 'sentinel', SENTINELS, 'admin']);
});

it('a gateway that still has the old ones is told by the third step, and nothing has stopped', async () => {
  for (const [row, server, user] of [
    ['gateway', replica(), 'gateway'],
    [SENTINELS, admins.sentinels[0] ?? expect.fail('there are three'), 'default'],
  ] as const) {
    await step(row, 0);
    await step(row, 2);
    await until(async () => (await refusedBy(server)).includes(user));
    expect(await gateway.deliver('STATUS_UPDATE', { id_msg: randomUUID() })).toBe(201);
    // The password is refused until the line below: what it stops stays so.
    await until(async () => (await health()).status === 'ready');
    await server.call('ACL', 'SETUSER', user, `>${OLD(row)}`);
  }
  expect(gateway.program.output()).toMatch(/A replica of Redis cannot be asked for its settings \(WRONGPASS/);
});

it('with the new ones the third step finds nobody, and the old ones go', async () => {
  for (const row of ['replica', 'sentinel', 'admin']) await step(row, 0);
  await step('replica', 1);
  await step('sentinel', 1);
  await step(SENTINELS, 1);
  await gateway.program.end('SIGTERM');
  passwordOf = NEW;
  await startGateway();

  for (const row of ['gateway', 'sentinel', SENTINELS]) {
    await step(row, 2);
    const [server = replica()] = serversOf(cell(row, 2));
    await comesAgain(server);
    expect(await refusedBy(server)).toEqual([]);
  }
  const shown = await step('replica', 2);
  expect(shown).toEqual([
    ['masterauth', NEW('replica')],
    ['masterauth', NEW('replica')],
  ]);
  expect(await step('admin', 2)).toEqual(['admin', 'admin']);
  for (const row of rows.keys()) await step(row, 3);
  await until(async () => (await health()).status === 'ready');
});

it('the looks of the page show what a process has', async () => {
  const page = await readFile(new URL('../../docs/secrets.md', import.meta.url), 'utf8');
  const [, section = ''] = /^## What a process has\n(.*?)^## /ms.exec(page) ?? [];
  const look = async (begins: string) => {
    const [, , cell = ''] = (section.split('\n').find((row) => row.startsWith(`| ${begins}`)) ?? '').split(
      /(?<!\\)\|/,
    );
    const command = (/`([^`]*PID[^`]*)`/.exec(cell)?.[1] ?? '').replaceAll('\\|', '|');
    const own = command.replace('PID', String(gateway.program.process.pid)).replace('NAME', 'REDIS_URL');
    return (await execute('bash', ['-c', own])).stdout;
  };
  const digest = createHash('sha256').update(`REDIS_URL=${urlOf()}\n`).digest('hex');
  expect(await look('its variable')).toContain(digest);
  const found = await look('what it has is accepted');
  expect(found).toContain(`runs at ${gateway.url}`);
  expect(found).toContain('every replica acknowledges each event');
});

it('no server takes an old one, and what they write holds after their next start and a failover', async () => {
  const tls = { ca: await readFile(group.certificates.authority, 'utf8') };
  const isTaken = async (port: number, username: string, password: string) => {
    const one = new Redis({ host: '127.0.0.1', port, tls, username, password, enableReadyCheck: false });
    one.on('error', () => {});
    const reply = await one.ping().catch((error: Error) => error.message);
    one.disconnect();
    return !/WRONGPASS|NOAUTH/.test(reply);
  };
  for (const sentinel of group.sentinels) {
    await sentinel.kill();
    await sentinel.start();
  }
  const [first, second] = group.redis;
  await second.kill();
  await second.start();
  await until(async () => (await health()).status === 'ready');
  for (const { port } of group.redis) {
    for (const user of ['gateway', 'replica', 'sentinel', 'admin']) {
      expect(await isTaken(port, user, OLD(user)), user).toBe(false);
      expect(await isTaken(port, user, NEW(user)), user).toBe(true);
    }
  }
  for (const { port } of group.sentinels) {
    expect(await isTaken(port, 'default', OLD(SENTINELS))).toBe(false);
    expect(await isTaken(port, 'default', NEW(SENTINELS))).toBe(true);
  }
  await first.kill();
  await until(async () => !/^replicaof/m.test(await readFile(second.file, 'utf8')));
  await first.start();
  await until(async () => (await health()).status === 'ready');
  expect(await readFile(first.file, 'utf8')).toContain(`replicaof 127.0.0.1 ${second.port}`);
});
