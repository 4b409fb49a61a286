import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { headOf, startFleet } from '../helpers/fleet.ts';
import { randomFrom } from '../helpers/random.ts';
import { startReaders } from '../helpers/reader.ts';
import { type SecureServers, startSecureCluster, startSecureSentinel } from '../helpers/secure-redis.ts';
import { until } from '../helpers/until.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-tls-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A server is killed, and the events of its clients go on without it or wait for it. */
interface Topology {
  readonly name: string;
  start(dir: string): Promise<SecureServers>;
  /** One outage, after which writing goes on. */
  fail(servers: SecureServers['servers']): Promise<void>;
}

const TOPOLOGIES: readonly Topology[] = [
  {
    name: 'Sentinel, which promotes the replica',
    start: startSecureSentinel,
    async fail([first, second, sentinel]) {
      const info = async (server = first) =>
        server === undefined ? '' : await server.admin.info('replication').catch(() => '');
      const isPrimary = async (server = first) => (await info(server)).includes('role:master');
      /** Whether one follows the other; which one is the Sentinel's to say, which on a slow machine may change its mind. */
      const isSettled = async () => {
        const both = await Promise.all([info(first), info(second)]);
        if (both.filter((text) => text.includes('role:master')).length !== 1) return false;
        if (!both.some((text) => text.includes('master_link_status:up'))) return false;
        // It hears every few seconds who follows, and promotes nobody whom it takes to be away.
        const rows: unknown = await sentinel?.admin.call('SENTINEL', 'REPLICAS', 'events');
        return (
          Array.isArray(rows) && rows.some((row) => /,flags,slave,.*master-link-status,ok/.test(String(row)))
        );
      };
      await until(isSettled);
      const [primary, replica] = (await isPrimary(first)) ? [first, second] : [second, first];
      await primary?.kill();
      await until(() => isPrimary(replica));
      await primary?.start();
      await until(isSettled);
    },
  },
  {
    name: 'a Cluster, whose nodes are killed and come back',
    start: (dir) => startSecureCluster(dir),
    async fail(servers) {
      for (const server of servers) {
        await server.kill();
        await server.start();
      }
      for (const { admin } of servers)
        await until(async () => String(await admin.cluster('INFO')).includes('cluster_state:ok'));
    },
  },
];

it.each(TOPOLOGIES)(
  'a whole gateway loses nothing over TLS with a private authority, through $name',
  async (topology) => {
    await using servers = await topology.start(folder);
    await using fleet = await startFleet();
    const { authority, certificate, key } = servers.certificates;
    const gateway = await fleet.start({
      REDIS_URL: servers.url,
      REDIS_TLS_CA: authority,
      REDIS_TLS_CERT: certificate,
      REDIS_TLS_KEY: key,
    });
    const readers = startReaders(3, {
      graphql: () => gateway.graphql,
      token: fleet.sandbox.accessToken,
      after: await headOf(gateway),
      random: randomFrom(3),
    });
    const sent: string[] = [];
    const deliver = async () => {
      const id_msg = `over TLS ${sent.length}`;
      expect(await gateway.deliver('STATUS_UPDATE', { id_msg })).toBe(201);
      sent.push(id_msg);
    };
    await deliver();
    // Twice: what was found of the servers the first time may hold them back the second.
    for (let time = 0; time < 2; time += 1) {
      await topology.fail(servers.servers);
      await deliver();
      await until(async () => {
        const { spooled } = (await (await fetch(`${gateway.url}/readyz`)).json()) as { spooled: number };
        return spooled === 0;
      });
      await until(() => readers.every(({ seen }) => seen.length === sent.length));
    }
    for (const { seen } of readers) expect(seen).toEqual(sent);
    await until(async () => (await gateway.metric('pasarela_redis_up')) === 1);
    await Promise.all(readers.map((reader) => reader.leave()));
  },
);
