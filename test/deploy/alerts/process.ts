import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Member, startFleet } from '../../helpers/fleet.ts';
import { DURABLE, startRedis } from '../../helpers/redis.ts';
import { inStep } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, inject, payable, requestsOf } from '../../scenarios/faults/payments.ts';
import { goOn, world } from './world.ts';

const LIFETIME_SECONDS = 1_800;
/** Longer than the lag that is told. */
const STOPPED_MS = 300;
const RUNNING_MS = 150;

const run = promisify(execFile);
const pidOf = ({ program }: Member): number => {
  const { pid } = program.process;
  if (pid === undefined) throw new Error('The gateway runs.');
  return pid;
};

/** One gateway, in a process of its own, on a Redis. */
export const PROCESS = world(
  'a process on a Redis',
  async (cleanup) => {
    const { sandbox, redis, start } = cleanup.use(await startFleet(LIFETIME_SECONDS));
    const following = ['--replicaof', '127.0.0.1', String(redis.port)];
    const replica = cleanup.use(await startRedis([...DURABLE, ...following], undefined, LIFETIME_SECONDS));
    await inStep(redis, replica);
    const member = await start();
    const deliver = () => member.deliver('STATUS_UPDATE', { id_msg: randomUUID() });
    return { url: member.url, sandbox, redis, replica, member, deliver };
  },
  [
    {
      alerts: ['PasarelaAbsent'],
      fault: 'Prometheus is told of no gateway; later it is told of it again.',
      async cause({ url }, ended, { scrape }) {
        await scrape([]);
        await once(ended, 'abort');
        await scrape([url]);
      },
    },
    {
      alerts: ['PasarelaBusy'],
      fault:
        'SIGSTOP and SIGCONT take the processor from the gateway two thirds of the time, as a limit of CPU does.',
      async cause({ member }, ended) {
        const pid = pidOf(member);
        while (!ended.aborted) {
          process.kill(pid, 'SIGSTOP');
          await pause(STOPPED_MS);
          process.kill(pid, 'SIGCONT');
          await pause(RUNNING_MS);
        }
      },
    },
    {
      alerts: ['PasarelaRedisLoses'],
      fault: 'Somebody gives Redis a policy by which it evicts keys; later the right one again.',
      async cause({ redis }, ended) {
        await redis.admin.config('SET', 'maxmemory', '1gb', 'maxmemory-policy', 'allkeys-lru');
        await once(ended, 'abort');
        await redis.admin.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
      },
    },
    {
      alerts: ['PasarelaSpoolNotWritable'],
      fault:
        'The system lets the gateway write no byte more to any file, while Redis is well; later it does.',
      async cause({ member }, ended, prometheus) {
        await run('prlimit', ['--pid', String(pidOf(member)), '--fsize=0:']);
        await once(ended, 'abort');
        await run('prlimit', ['--pid', String(pidOf(member)), '--fsize=unlimited:']);
        await until(async () => !(await prometheus.firing()).includes('PasarelaSpoolNotWritable'));
      },
    },
    {
      alerts: ['PasarelaPaymentsNotSent'],
      fault: 'A replica of Redis stands still, and nobody pays; later it goes on.',
      async cause({ replica }, ended, prometheus) {
        replica.freeze();
        await once(ended, 'abort');
        replica.thaw();
        await until(async () => !(await prometheus.firing()).includes('PasarelaPaymentsNotSent'));
      },
    },
    {
      alerts: ['PasarelaPaymentsUnwritten'],
      fault:
        'A replica of Redis stands still while the service is at a payment, so that the answer is not written; later it goes on.',
      async cause({ sandbox, member, replica }, ended, prometheus) {
        await inject(sandbox, { method: 'POST', path: '/v1/transactions/money_out' }, { delayMs: 5_000 }, 1);
        const { input, route } = await payable(sandbox, 'createMoneyOut', 'unwritten');
        const before = await requestsOf(sandbox, route);
        const paying = member.query(documentOf('createMoneyOut'), { input });
        // It has come to the service, and is answered later.
        await until(async () => (await requestsOf(sandbox, route)) > before);
        replica.freeze();
        await paying;
        await once(ended, 'abort');
        replica.thaw();
        const own = ['PasarelaPaymentsUnwritten', 'PasarelaPaymentsNotSent'];
        await until(async () => !(await prometheus.firing()).some((name) => own.includes(name)));
      },
    },
    {
      alerts: ['PasarelaRedisDown', 'PasarelaSpooling', 'PasarelaPaymentsNotSent'],
      fault: 'SIGKILL to Redis. A webhook and a payment come meanwhile.',
      async cause({ redis, deliver, member, sandbox }) {
        await redis.kill();
        await deliver();
        const { input } = await payable(sandbox, 'createMoneyOut', 'without a record');
        await member.query(documentOf('createMoneyOut'), { input });
      },
    },
    {
      alerts: ['PasarelaNotReady', 'PasarelaWebhooksRefused'],
      fault:
        'The system lets the gateway write no byte more to any file, while Redis is away. The provider delivers all the same.',
      async cause({ member, deliver }, ended) {
        await run('prlimit', ['--pid', String(pidOf(member)), '--fsize=0']);
        await goOn(ended, deliver);
      },
    },
    {
      alerts: ['PasarelaDown'],
      fault: 'SIGKILL to the gateway.',
      async cause({ member, url }) {
        await member.program.end('SIGKILL');
        await until(() =>
          fetch(url).then(
            () => false,
            () => true,
          ),
        );
      },
    },
  ],
);
