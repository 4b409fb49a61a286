import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { type Fleet, headOf, type Member, startFleet, startProvider } from '../helpers/fleet.ts';
import { control } from '../helpers/gateway.ts';
import { folder, run } from '../helpers/packages.ts';
import { randomFrom } from '../helpers/random.ts';
import { startReaders } from '../helpers/reader.ts';
import type { RedisServer } from '../helpers/redis.ts';
import { startCluster } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';

const READERS = 20;
const VERIFY = `mutation ($input: CreatePennyValidationInput!) {
  createPennyValidation(input: $input) { __typename ... on CreatePennyValidationSuccess { transaction { id } } }
}`;

let unpacked: string;
let EARLIER: string;
/** Version 0.1.0, bundled with its dependencies of that day: `git archive v0.1.0`, then rolldown from `src/app/main.ts`. */
beforeAll(async () => {
  unpacked = await mkdtemp(join(tmpdir(), 'pasarela-earlier-'));
  await run('tar', ['xzf', folder('test/fixtures/pasarela-0.1.0.tgz'), '-C', unpacked], folder('.'));
  EARLIER = join(unpacked, 'start.js');
});
afterAll(() => rm(unpacked, { recursive: true, force: true }));

/** Sends one order under a key. @returns the transaction that it is. */
async function pay(fleet: Fleet, member: Member, idempotencyKey: string): Promise<string> {
  const world = await control(fleet.sandbox, 'GET', '/sandbox');
  const input = {
    idempotencyKey,
    sourceInstrumentId: world.centralizingInstrumentId,
    destinationInstrumentId: world.clabeInstrumentIds[0],
  };
  const { data, errors } = await member.query(VERIFY, { input });
  expect(errors).toBeUndefined();
  expect(data.createPennyValidation.__typename).toBe('CreatePennyValidationSuccess');
  return data.createPennyValidation.transaction.id;
}

/** How many events a process has answered for and keeps on disk, by what `/readyz` says. */
async function spooledBy({ url }: Member): Promise<number> {
  const health = (await (await fetch(`${url}/readyz`)).json()) as { spooled: number };
  return health.spooled;
}

/** Every id of the log from its beginning, as a page after another tells it. */
async function wholeLog(member: Member): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | null = null; ; ) {
    const { data, errors } = await member.query(
      'query ($after: Cursor) { events(first: 100, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }',
      { after },
    );
    expect(errors).toBeUndefined();
    ids.push(...data.events.nodes.map(({ id }: { id: string }) => id));
    if (!data.events.pageInfo.hasNextPage) return ids;
    after = data.events.pageInfo.endCursor;
  }
}

/** Where the log is, and the node of it that goes away. */
interface Store extends AsyncDisposable {
  readonly url: string;
  readonly node: RedisServer;
}

const STORES: readonly (readonly [name: string, of: (fleet: Fleet) => Promise<Store>])[] = [
  ['Redis', async ({ redis }) => ({ url: redis.url, node: redis, async [Symbol.asyncDispose]() {} })],
  [
    'a Cluster',
    async ({ sandbox }) => {
      const cluster = await startCluster();
      const node = await cluster.nodeOf(sandbox.clientId);
      return { url: cluster.url, node, [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose]() };
    },
  ],
];

describe('from 0.1.0 and back, one process after another, under load', () => {
  it.each(STORES)(
    'over %s nobody misses or repeats an event, full spools are drained, and no order is sent twice',
    async (_, storeOf) => {
      await using fleet = await startFleet();
      await using store = await storeOf(fleet);
      const over = { REDIS_URL: store.url };
      let [first, second] = await Promise.all([fleet.start(over, EARLIER), fleet.start(over, EARLIER)]);
      let current = first;
      const readers = startReaders(READERS, {
        graphql: () => current.graphql,
        token: fleet.sandbox.accessToken,
        after: await headOf(first),
        random: randomFrom(1),
      });
      const provider = startProvider(() => current, 2, 20);
      const all = async () => {
        const before = provider.answered.length;
        await until(() => readers.every(({ seen }) => seen.length >= before + 10));
      };
      await all();
      const paid = await pay(fleet, first, 'before the upgrade');

      // Both spools hold events of 0.1.0 when the first process is exchanged.
      await store.node.kill();
      for (const member of [first, second]) {
        current = member;
        await until(async () => (await spooledBy(member)) > 10);
      }
      await first.program.end('SIGTERM');
      await store.node.start();
      first = await fleet.start(over);
      current = first;
      await second.program.end('SIGTERM');
      second = await fleet.start(over);
      await all();
      expect(await pay(fleet, second, 'before the upgrade')).toBe(paid);
      const later = await pay(fleet, first, 'after the upgrade');

      // Redis is away once more, now over the spools of this version; they are empty before the way back.
      await store.node.kill();
      await until(async () => (await spooledBy(first)) > 10);
      await store.node.start();
      await until(async () => (await spooledBy(first)) === 0 && (await spooledBy(second)) === 0);
      await second.program.end('SIGTERM');
      second = await fleet.start(over, EARLIER);
      current = second;
      await first.program.end('SIGTERM');
      first = await fleet.start(over, EARLIER);
      await all();
      expect(await pay(fleet, first, 'before the upgrade')).toBe(paid);
      expect(await pay(fleet, second, 'after the upgrade')).toBe(later);

      await provider.stop();
      await until(() => readers.every(({ seen }) => seen.length >= provider.answered.length));
      for (const { seen, told } of readers) {
        // Nobody can be told more while Redis is away; what counts is that none is told of a gap.
        expect(told.filter((code) => code !== 'STORE_UNAVAILABLE')).toEqual([]);
        expect(seen).toEqual(readers[0]?.seen);
        expect(new Set(seen)).toEqual(new Set(provider.answered));
        expect(seen).toHaveLength(provider.answered.length);
      }
      await Promise.all(readers.map((reader) => reader.leave()));
    },
  );

  it('over the embedded log readers go on from their cursors, and the log and the orders are whole on both ways', async () => {
    await using fleet = await startFleet();
    const embedded = { REDIS_URL: '' };
    let current = await fleet.start(embedded, EARLIER);
    const readers = startReaders(READERS, {
      graphql: () => current.graphql,
      token: fleet.sandbox.accessToken,
      after: await headOf(current),
      random: randomFrom(2),
    });
    const provider = startProvider(() => current, 2, 20);
    const all = async () => {
      const before = provider.answered.length;
      await until(() => readers.every(({ seen }) => seen.length >= before + 10));
    };
    await all();
    const paid = await pay(fleet, current, 'before the upgrade');
    await current.program.end('SIGTERM');
    current = await fleet.start(embedded);
    await all();
    expect(await pay(fleet, current, 'before the upgrade')).toBe(paid);
    const later = await pay(fleet, current, 'after the upgrade');
    await Promise.all(readers.map((reader) => reader.leave()));
    for (const { seen, told } of readers) {
      expect(told).toEqual([]);
      expect(seen).toEqual(readers[0]?.seen.slice(0, seen.length));
    }

    await current.program.end('SIGTERM');
    current = await fleet.start(embedded, EARLIER);
    const before = provider.answered.length;
    await until(() => provider.answered.length > before + 10);
    expect(await pay(fleet, current, 'before the upgrade')).toBe(paid);
    expect(await pay(fleet, current, 'after the upgrade')).toBe(later);

    // And forward again: what 0.1.0 has appended meanwhile is linked and read.
    await current.program.end('SIGTERM');
    current = await fleet.start(embedded);
    await provider.stop();
    const log = await wholeLog(current);
    expect(new Set(log)).toEqual(new Set(provider.answered));
    expect(log).toHaveLength(provider.answered.length);
  });
});

describe('from 0.1.0 and back while WEBHOOK_SECRET is rotated, by the same restart of each process', () => {
  const OLD = 'the secret of then that is long enough';
  const NEW = 'the secret of now that is long enough';

  it('takes deliveries to the old addresses all the time, and to the new ones from when no process has the old secret alone', async () => {
    await using fleet = await startFleet();
    const former = { WEBHOOK_SECRET: OLD };
    const both = { WEBHOOK_SECRET: `${NEW},${OLD}` };
    const deliver = async (member: Member, secret: string, id_msg: string): Promise<number> => {
      const response = await fetch(ingressUrl(member.url, fleet.sandbox.clientId, 'STATUS_UPDATE', secret), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id_msg }),
      });
      return response.status;
    };
    let [first, second] = await Promise.all([fleet.start(former, EARLIER), fleet.start(former, EARLIER)]);
    const answers = async (id: string) => [
      await deliver(first, OLD, id),
      await deliver(first, NEW, id),
      await deliver(second, OLD, id),
      await deliver(second, NEW, id),
    ];
    expect(await answers('before')).toEqual([201, 401, 201, 401]);

    await first.program.end('SIGTERM');
    first = await fleet.start(both);
    // `webhooks sync` here would have the provider deliver to addresses that the other process refuses.
    expect(await answers('mixed')).toEqual([201, 201, 201, 401]);
    await second.program.end('SIGTERM');
    second = await fleet.start(both);
    expect(await answers('after')).toEqual([201, 201, 201, 201]);

    // The way back leaves the secret: the version before takes both too, and with the old one alone what `sync` has registered gets 401.
    await first.program.end('SIGTERM');
    first = await fleet.start(both, EARLIER);
    expect(await answers('back')).toEqual([201, 201, 201, 201]);
    await second.program.end('SIGTERM');
    second = await fleet.start(former, EARLIER);
    expect(await answers('too far back')).toEqual([201, 201, 201, 401]);

    // A repeat is recognised at whichever address it comes.
    await second.program.end('SIGTERM');
    second = await fleet.start(both);
    expect(await wholeLog(second)).toEqual(['before', 'mixed', 'after', 'back', 'too far back']);
  });
});
