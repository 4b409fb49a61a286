import { setTimeout as pause } from 'node:timers/promises';
import { control } from '../../helpers/gateway.ts';
import { inStep } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';
import { inject } from '../faults/payments.ts';
import { AUTHORITY } from './authority.ts';
import { FULL_DISK } from './full-disk.ts';
import { PUT_BACK } from './put-back.ts';
import { RENEWALS } from './renewals.ts';
import { rejoin, rolesOf } from './stage.ts';
import { LASTS_MS, passwordOf, restartAll, type Step } from './step.ts';
import { UPGRADE } from './upgrade.ts';

export const STEPS: readonly Step[] = [
  { name: 'quiet', done: 'Nothing happens.', run: () => pause(LASTS_MS) },
  UPGRADE,
  {
    name: 'rolling restart',
    done: 'SIGTERM to one gateway, then to the other; each is started again before.',
    run: restartAll,
  },
  {
    name: 'Redis failover',
    done: 'SIGKILL to the primary; the Sentinel, whose down-after-milliseconds is 1 s, promotes the replica; then the old primary is started, and made to follow by REPLICAOF.',
    async run(stage) {
      const { primary, replica } = await rolesOf(stage.store);
      await primary.kill();
      await until(async () => (await rolesOf(stage.store)).primary === replica);
      await pause(2_000);
      await rejoin(primary, replica, passwordOf(stage));
      await inStep(replica, primary);
    },
  },
  {
    name: 'replica lost, min-replicas-to-write 1',
    done: 'SIGKILL to the only replica while Redis takes no write without it; then it comes back.',
    async run(stage) {
      const { primary, replica } = await rolesOf(stage.store);
      for (const { admin } of [primary, replica]) await admin.config('SET', 'min-replicas-to-write', '1');
      await replica.kill();
      await pause(LASTS_MS);
      await rejoin(replica, primary, passwordOf(stage));
      await inStep(primary, replica);
      for (const { admin } of [primary, replica]) await admin.config('SET', 'min-replicas-to-write', '0');
    },
  },
  RENEWALS,
  AUTHORITY,
  {
    name: 'slow service',
    done: 'Every answer of the REST service takes two seconds.',
    async run({ sandbox }) {
      await inject(sandbox, { path: '/v1/' }, { delayMs: 2_000 });
      await pause(LASTS_MS);
      await control(sandbox, 'DELETE', '/sandbox/faults');
    },
  },
  {
    name: 'service away',
    done: 'Every call of the REST service is cut off.',
    async run({ sandbox }) {
      await inject(sandbox, { path: '/v1/' }, 'reset-before');
      await pause(LASTS_MS);
      await control(sandbox, 'DELETE', '/sandbox/faults');
    },
  },
  {
    name: 'collector away',
    done: 'The collector of OpenTelemetry refuses connections, and one gateway is ended and started again meanwhile.',
    async run({ collector, members: [first] }) {
      await collector.leave();
      await first.end('SIGTERM');
      await first.start();
      await collector.comeBack();
    },
  },
  {
    name: 'herd returns',
    done: 'SIGKILL to one gateway: its phones all come to the other at once; then it is started again.',
    async run({ members: [first] }) {
      await first.end('SIGKILL');
      await pause(LASTS_MS);
      await first.start();
    },
  },
  FULL_DISK,
  PUT_BACK,
];
