import { expect, it } from 'vitest';
import { pasarela } from '../cli/run.ts';
import { type Fleet, headOf, type Member, startFleet, startProvider } from '../helpers/fleet.ts';
import { leads } from '../helpers/nemesis.ts';
import { randomFrom } from '../helpers/random.ts';
import { startReaders } from '../helpers/reader.ts';
import { DURABLE, type RedisServer, startRedis } from '../helpers/redis.ts';
import { failOverBySentinel, inStep, startWithSentinel } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { documentOf, movementsOf, type Payable, payable } from './faults/payments.ts';

const TIMEOUT_MS = 300_000;
const SUCCESS = 'CreateInternalTransactionSuccess';

const pay = async (member: Member, { mutation, input }: Payable): Promise<string> => {
  const { data, errors } = await member.query(documentOf(mutation), { input });
  return data?.result?.__typename ?? errors?.[0]?.extensions['code'];
};

const healthOf = async ({ url }: Member): Promise<{ readonly status: string; readonly spooled: number }> => {
  // What /readyz answers by its own contract.
  const health = (await (await fetch(`${url}/readyz`)).json()) as { status: string; spooled: number };
  return health;
};

const isReady = (member: Member): Promise<unknown> =>
  until(async () => {
    const { status, spooled } = await healthOf(member);
    return status === 'ready' && spooled === 0;
  });

const follows = async (replica: RedisServer, primary: RedisServer): Promise<void> => {
  await until(async () =>
    (await replica.admin.info('replication')).includes(`master_port:${primary.port}\r\n`),
  );
};

/** A server as the operator starts it on the new machine: a replica that has all. */
async function startThere(here: RedisServer): Promise<RedisServer> {
  const there = await startRedis([
    ...DURABLE,
    ...['--repl-diskless-sync-delay', '0', '--replicaof', '127.0.0.1', String(here.port)],
  ]);
  await inStep(here, there, 2);
  return there;
}

/** Every id of the log from its beginning, as one page after another tells it. */
async function wholeLog(member: Member): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | null = null; ; ) {
    const { data } = await member.query(
      'query ($after: Cursor) { events(first: 100, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }',
      { after },
    );
    ids.push(...data.events.nodes.map(({ id }: { id: string }) => id));
    if (!data.events.pageInfo.hasNextPage) return ids;
    after = data.events.pageInfo.endCursor;
  }
}

/** Everybody who uses the gateways while Redis moves, and what has come of it at the end. */
function startUsers(fleet: Fleet, members: readonly Member[]) {
  let turn = 0;
  let open = members;
  const refused: number[] = [];
  const next = (): Member => {
    turn += 1;
    const member = open[turn % open.length];
    if (member === undefined) throw new Error('one is open');
    return {
      ...member,
      async deliver(type, body) {
        const status = await member.deliver(type, body);
        if (status !== 201) refused.push(status);
        return status;
      },
    };
  };
  const provider = startProvider(next, 2, 20);
  const paid: Payable[] = [];
  return {
    /** Deliveries go to these from now on. */
    moveTo(...next: readonly Member[]) {
      open = next;
    },
    async delivers(): Promise<void> {
      const before = provider.answered.length;
      await until(() => provider.answered.length >= before + 20);
    },
    async pays(member: Member, tag: string): Promise<void> {
      const order = await payable(fleet.sandbox, 'createInternalTransaction', tag);
      await until(async () => (await pay(member, order)) === SUCCESS);
      paid.push(order);
    },
    /** Every delivery was answered 201 and is in the log once; no payment was made twice, asked for once more. */
    async compare(member: Member): Promise<void> {
      await provider.stop();
      await isReady(member);
      expect(refused).toEqual([]);
      expect([...(await wholeLog(member))].sort()).toEqual([...provider.answered].sort());
      for (const order of paid) {
        expect(await pay(member, order)).toBe(SUCCESS);
        expect(await movementsOf(fleet.sandbox, order.tag)).toHaveLength(1);
      }
    },
  };
}

it('a primary that is moved to another machine under Sentinel takes every event along, and pays nothing twice', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using redis = await startWithSentinel();
  const { primary: here, replica: other, sentinel } = redis;
  await using fleet = await startFleet();
  const environment = { REDIS_URL: redis.url };
  const members = [await fleet.start(environment), await fleet.start(environment)] as const;
  const [first, second] = members;
  const users = startUsers(fleet, members);
  await users.pays(first, 'before');
  await users.delivers();

  await using there = await startThere(here);
  await other.admin.config('SET', 'replica-priority', '0');
  const replicas = async () => String(await sentinel.admin.call('SENTINEL', 'REPLICAS', 'events'));
  await until(async () => {
    const known = await replicas();
    return known.includes(`:${there.port},`) && known.includes('slave-priority,0');
  });
  expect(await pasarela(['payments', 'stop'], environment)).toMatchObject({ code: 0 });
  const during = await payable(fleet.sandbox, 'createInternalTransaction', 'during');
  expect(await pay(second, during)).toBe('PAYMENTS_STOPPED');
  await failOverBySentinel(sentinel);
  await leads(redis, there);
  await users.delivers();
  for (const server of [here, other]) await follows(server, there);
  await inStep(there, here, 2);
  for (const member of members) await until(async () => (await healthOf(member)).spooled === 0);
  expect(await pasarela(['payments', 'resume'], environment)).toMatchObject({ code: 0 });
  for (const member of members) await isReady(member);
  await users.pays(second, 'during');

  await other.admin.config('SET', 'replica-priority', '100');
  await here.kill();
  await sentinel.admin.call('SENTINEL', 'RESET', 'events');
  await users.delivers();
  await users.pays(first, 'afterwards');
  for (const member of members) await isReady(member);
  expect(await replicas()).not.toContain(`:${here.port},`);
  await users.compare(first);
});

it('a Redis of one address that is moved to another takes every event along, tells its readers of no gap, and pays nothing twice', {
  timeout: TIMEOUT_MS,
}, async () => {
  await using fleet = await startFleet();
  const { redis: here } = fleet;
  await using other = await startRedis([
    ...DURABLE,
    ...['--repl-diskless-sync-delay', '0', '--replicaof', '127.0.0.1', String(here.port)],
  ]);
  await inStep(here, other);
  const first = await fleet.start();
  let { graphql } = first;
  const readers = startReaders(4, {
    graphql: () => graphql,
    token: fleet.sandbox.accessToken,
    after: await headOf(first),
    random: randomFrom(1),
  });
  const users = startUsers(fleet, [first]);
  await users.pays(first, 'before');
  await users.delivers();

  await using there = await startThere(here);
  expect(await pasarela(['payments', 'stop'], { REDIS_URL: here.url })).toMatchObject({ code: 0 });
  await here.admin.call('FAILOVER', 'TO', '127.0.0.1', there.port, 'TIMEOUT', 60_000);
  await until(async () => (await there.admin.info('replication')).includes('role:master'));
  await other.admin.replicaof('127.0.0.1', there.port);
  await inStep(there, here, 2);
  for (const server of [here, other]) await follows(server, there);

  // The gateway still names the one that follows now.
  await users.delivers();
  const during = await payable(fleet.sandbox, 'createInternalTransaction', 'during');
  expect(await pay(first, during)).toBe('STORE_UNAVAILABLE');
  expect(await healthOf(first)).toMatchObject({ status: 'degraded' });
  const second = await fleet.start({ REDIS_URL: there.url });
  users.moveTo(second);
  ({ graphql } = second);
  await users.delivers();
  await first.program.end('SIGTERM');
  expect(await pasarela(['payments', 'resume'], { REDIS_URL: there.url })).toMatchObject({ code: 0 });
  await isReady(second);
  await users.pays(second, 'during');

  await here.kill();
  await users.delivers();
  await users.pays(second, 'afterwards');
  await isReady(second);
  await users.compare(second);
  const kept = await wholeLog(second);
  await until(() => readers.every(({ seen }) => seen.length >= kept.length));
  for (const { seen, told } of readers) {
    expect([...seen].sort()).toEqual([...kept].sort());
    expect(told).toEqual([]);
  }
  await Promise.all(readers.map((reader) => reader.leave()));
});
