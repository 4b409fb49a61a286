import { copyFile, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { headOf, type Member, startFleet } from '../helpers/fleet.ts';
import { randomFrom } from '../helpers/random.ts';
import { startReaders } from '../helpers/reader.ts';
import { DURABLE, startRedis } from '../helpers/redis.ts';
import { inStep } from '../helpers/redis-topologies.ts';
import { until } from '../helpers/until.ts';
import { documentOf, movementsOf, type Payable, payable } from './faults/payments.ts';

const pay = async (member: Member, { mutation, input }: Payable): Promise<string> => {
  const { data, errors } = await member.query(documentOf(mutation), { input });
  return data?.result?.__typename ?? errors?.[0]?.extensions['code'];
};

const deliver = async (member: Member, id_msg: string): Promise<void> =>
  expect(await member.deliver('STATUS_UPDATE', { id_msg })).toBe(201);

it('when a region is lost, nothing that was acknowledged is lost with it, once its disk is found, and nobody pays twice', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-regions-'));
  const [diskHere, diskThere] = [join(folder, 'here'), join(folder, 'there')];
  await Promise.all([diskHere, diskThere].map((path) => mkdir(path, { mode: 0o700 })));
  await using fleet = await startFleet();
  const { redis: here, sandbox } = fleet;
  const follow = ['--replicaof', '127.0.0.1', String(here.port), '--replica-priority', '0'];
  await using there = await startRedis([...DURABLE, '--repl-diskless-sync-delay', '0', ...follow]);
  await inStep(here, there);
  const lost = await fleet.start({ DATA_DIR: diskHere });
  const after = await headOf(lost);
  await deliver(lost, 'arrived');
  const both = await payable(sandbox, 'createInternalTransaction', 'arrived');
  expect(await pay(lost, both)).toBe('CreateInternalTransactionSuccess');
  await inStep(here, there);

  // The way between the regions is cut. Then the first one is lost, Redis first.
  await there.admin.replicaof('NO', 'ONE');
  await deliver(lost, 'while cut');
  const orders = [
    await payable(sandbox, 'createMoneyOut', 'cut off out'),
    await payable(sandbox, 'createInternalTransaction', 'cut off'),
  ] as const;
  for (const order of orders) expect(await pay(lost, order)).not.toMatch(/Success$/);
  await here.kill();
  await deliver(lost, 'while lost');
  await lost.program.end('SIGKILL');

  const member = await fleet.start({ REDIS_URL: there.url, DATA_DIR: diskThere });
  const readers = startReaders(2, {
    graphql: () => member.graphql,
    token: sandbox.accessToken,
    after,
    random: randomFrom(1),
  });
  await deliver(member, 'afterwards');
  // The disk of the lost region is found.
  const spools = (await readdir(diskHere)).filter((name) => name.startsWith('spooled-'));
  for (const name of spools.sort().reverse())
    await copyFile(join(diskHere, name), join(diskThere, name.replace('spooled-0', 'spooled-7')));
  const whole = ['arrived', 'while cut', 'while lost', 'afterwards'].sort();
  // The one that was promoted waits 30 s for those that may follow it.
  await until(() => readers.every(({ seen }) => seen.length >= whole.length));
  for (const { seen } of readers) expect([...seen].sort()).toEqual(whole);

  for (const payment of [both, ...orders]) {
    await until(async () => (await pay(member, payment)).endsWith('Success'));
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  }
  await Promise.all(readers.map((reader) => reader.leave()));
  await rm(folder, { recursive: true, force: true });
});
