import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import type { MoneyMutation } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { order } from './orders.ts';

/** What a process is told on its command line, as JSON. */
export interface ChildTask {
  readonly redisUrl: string | undefined;
  readonly dataDir: string;
  readonly upstreamUrl: string;
  readonly mutation: MoneyMutation;
  readonly key: string;
  readonly leaseMs: number;
  readonly kill: { readonly step: Exclude<keyof MoneyRecords, 'stop'>; readonly when: 'before' | 'after' };
}

/** A gateway's money room in a process of its own, that ends itself with SIGKILL before or after a step of its store. */
const task = JSON.parse(process.argv[2] ?? '') as ChildTask;

const opened = await openMoneyRecords({ ...task, redisUrl: task.redisUrl, logger });
// On a busy machine the first connection may take longer than opening waits for it.
while (!(await opened.isAvailable())) await pause(20);
const records = new Proxy(opened, {
  get(target, step: keyof MoneyRecords) {
    if (step !== task.kill.step) return target[step];
    return async (...args: never[]) => {
      if (task.kill.when === 'before') process.kill(process.pid, 'SIGKILL');
      // The arguments are passed on as they came.
      await (target[step] as (...args: never[]) => Promise<unknown>)(...args);
      process.kill(process.pid, 'SIGKILL');
    };
  },
});
const money = createMoney({ records, logger, leaseMs: task.leaseMs });
const result = await money.execute(order(task.upstreamUrl, task.mutation, task.key), {
  deadline: Date.now() + 10_000,
  signal: new AbortController().signal,
});
process.stdout.write(`survived: ${result.kind}`);
process.exit(0);
