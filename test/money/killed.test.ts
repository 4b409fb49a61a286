import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney, type Money } from '../../src/money/execute.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { endWithThisProcess, startRedis } from '../helpers/redis.ts';
import type { ChildTask } from './child.ts';
import { MUTATIONS, order } from './orders.ts';
import { type Fault, startUpstream, type Upstream } from './upstream.ts';

const LEASE_MS = 250;

/** Left behind by the dead: nothing under the key; a request that never left; one that the upstream has served; an answer. */
type Left = 'nothing' | 'sent, not served' | 'served' | 'answered';

const KILLS: [ChildTask['kill']['step'], ChildTask['kill']['when'], Left, Fault?][] = [
  ['claim', 'before', 'nothing'],
  ['claim', 'after', 'nothing'],
  ['markSent', 'before', 'nothing'],
  ['markSent', 'after', 'sent, not served'],
  ['answer', 'before', 'served'],
  ['answer', 'after', 'answered'],
  ['release', 'before', 'sent, not served', 401],
  ['release', 'after', 'nothing', 401],
];

describe.each(['node:sqlite', 'Redis'])('a process killed at a step of its store, over %s', (kind) => {
  let cleanup: AsyncDisposableStack;
  let store: { redisUrl: string | undefined; dataDir: string };
  let records: MoneyRecords;
  let upstream: Upstream;
  let money: Money;
  beforeAll(async () => {
    cleanup = new AsyncDisposableStack();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-money-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    const redisUrl = kind === 'Redis' ? cleanup.use(await startRedis()).url : undefined;
    upstream = cleanup.use(await startUpstream());
    store = { redisUrl, dataDir };
    records = await openMoneyRecords({ ...store, logger });
    cleanup.defer(() => records.stop());
    money = createMoney({ records, logger, leaseMs: LEASE_MS });
    cleanup.defer(() => money.stop());
  });
  afterAll(() => cleanup.disposeAsync());

  /** Runs a process to its end, and tells how it ended. */
  const run = async (task: ChildTask): Promise<string> => {
    const child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts'), JSON.stringify(task)], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 300_000,
    });
    endWithThisProcess(child);
    const output: string[] = [];
    child.stdout.on('data', (data: Buffer) => output.push(data.toString()));
    const [, signal] = await once(child, 'close');
    return `${signal}${output.join('')}`;
  };

  describe.each(MUTATIONS)('%s', (mutation) => {
    it.each(KILLS)('%s, %s it: leaves %s', async (step, when, left, fault) => {
      const key = `${mutation}-${step}-${when}`;
      const { redisUrl, dataDir } = store;
      upstream.faults.push(...(fault === undefined ? [] : [fault]));
      const kill = { step, when };
      expect(
        await run({ redisUrl, dataDir, upstreamUrl: upstream.url, mutation, key, leaseMs: LEASE_MS, kill }),
      ).toBe('SIGKILL');
      expect(upstream.ledger.get(key) ?? 0).toBe(left === 'served' || left === 'answered' ? 1 : 0);

      const next = async () =>
        money.execute(order(upstream.url, mutation, key), {
          deadline: Date.now() + 10_000,
          signal: new AbortController().signal,
        });
      const result = await next();
      const settled = left === 'nothing' || left === 'answered' || mutation === 'createMoneyOut';
      expect(result).toMatchObject(
        settled ? { kind: 'done', replayed: left === 'answered' } : { kind: 'unknown', safeToRetry: false },
      );
      const moved = left === 'sent, not served' && !settled ? 0 : 1;
      expect(upstream.ledger.get(key) ?? 0).toBe(moved);
      expect(await next()).toMatchObject(settled ? { kind: 'done', replayed: true } : { kind: 'unknown' });
      expect(upstream.ledger.get(key) ?? 0).toBe(moved);
    });

    it.each(
      (['claim', 'markSent', 'answer', 'renew'] as const).flatMap((step) =>
        (['before', 'after'] as const).map((when) => [step, when] as const),
      ),
    )(
      'moves once though the process that takes it up dies as well, at %s, %s it, and the next',
      async (step, when) => {
        const key = `${mutation}-again-${step}-${when}`;
        const { redisUrl, dataDir } = store;
        const task = { redisUrl, dataDir, upstreamUrl: upstream.url, mutation, key, leaseMs: LEASE_MS };
        upstream.faults.push('reset-after');
        const first = { step: 'answer', when: 'before' } as const;
        // Of what is never repeated no answer is stored, so that the first survives its fault.
        await run({ ...task, kill: first });
        for (const _time of [1, 2]) await run({ ...task, kill: { step, when } });
        upstream.faults.splice(0);
        const limits = { deadline: Date.now() + 10_000, signal: new AbortController().signal };
        const result = await money.execute(order(upstream.url, mutation, key), limits);
        expect(result).toMatchObject({ kind: mutation === 'createMoneyOut' ? 'done' : 'unknown' });
        expect(upstream.ledger.get(key)).toBe(1);
      },
    );
  });
});
