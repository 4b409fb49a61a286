import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { isMissed, leads, startWriting } from '../../helpers/nemesis.ts';
import { randomFrom } from '../../helpers/random.ts';
import { inStep, startWithSentinel } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';

const USAGE = `Two servers under Sentinel change places at random, each fault soon after the one before, while two gateways take events, credits on
which somebody decides, and payments. It ends with 1 where one of them was answered otherwise than it turned out.

  npm run soak:failovers -- --minutes 5 --least 0 --seed 3

  --minutes   how long (3)
  --least     min-replicas-to-write of the servers (0)
  --seed      of the faults (1)
`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '3' },
    least: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
}
const random = randomFrom(Number(values.seed));
const minutes = Number(values.minutes);
const between = (least: number, most: number): number => least + random() * (most - least);
const isPrimary = async (server: { readonly admin: { info(section: string): Promise<string> } }) =>
  (await server.admin.info('replication').catch(() => '')).includes('role:master');

await using redis = await startWithSentinel(['--min-replicas-to-write', values.least], 60 * minutes + 300);
await using writing = await startWriting(redis.url, true);
await writing.join();
const end = performance.now() + 60_000 * minutes;
let done = 0;
while (performance.now() < end) {
  const [primary, replica] = (await isPrimary(redis.primary))
    ? [redis.primary, redis.replica]
    : [redis.replica, redis.primary];
  const isKilled = random() < 0.5;
  if (isKilled) await primary.kill();
  else primary.freeze();
  await leads(redis, replica);
  if (random() < 0.5) await isMissed(redis, primary);
  await pause(between(0, 8_000));
  // Half of the time the other one goes as this one comes back.
  const goes = random() < 0.5;
  if (goes) await replica.kill();
  if (isKilled) await primary.start();
  else primary.thaw();
  if (goes) {
    await pause(between(0, 9_000));
    await replica.start();
  }
  // And half of the time the next fault comes before they are in step.
  if (random() < 0.5) await pause(between(0, 3_000));
  else await settled();
  await until(async () => (await isPrimary(redis.primary)) || (await isPrimary(redis.replica)));
  done += 1;
  process.stdout.write(`${JSON.stringify({ faults: done, isKilled, goes, ...writing.counts() })}\n`);
}
await settled();
const found = await writing.compare();
process.stdout.write(`${JSON.stringify({ ...writing.counts(), ...found })}\n`);
if (Object.values(found).some((count) => count > 0)) process.exitCode = 1;

/** Resolves once the Sentinel names one of them, and the other follows. */
async function settled(): Promise<void> {
  const primary = await until(async () => {
    const named: unknown = await redis.sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
    const found = [redis.primary, redis.replica].find(
      ({ port }) => Array.isArray(named) && named[1] === String(port),
    );
    return found !== undefined && (await isPrimary(found)) ? found : undefined;
  });
  await inStep(primary, primary === redis.primary ? redis.replica : redis.primary);
}
