import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { createMoney } from '../../src/money/execute.ts';
import { RecordsUnavailableError } from '../../src/money/record.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { fastAmbient, MUTATIONS, order } from './orders.ts';
import { startUpstream } from './upstream.ts';

const HOUR = 3_600_000;

it.each(MUTATIONS)(
  'a %s that the record does not take renews its lease no more, and its key is free',
  async (mutation) => {
    await using cleanup = new AsyncDisposableStack();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-lease-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    const upstream = cleanup.use(await startUpstream());
    const ambient = fastAmbient(30);
    const records = openSqliteRecords(join(dataDir, 'money.sqlite'), ambient.now);
    cleanup.defer(() => records.stop());
    let isAway = true;
    const waits: AbortSignal[] = [];
    const money = createMoney({
      records: {
        ...records,
        async markSent(...args) {
          if (isAway) throw new RecordsUnavailableError('sent', new Error('The disk is full.'), true);
          return records.markSent(...args);
        },
      },
      ambient: {
        ...ambient,
        sleep(ms, signal) {
          waits.push(signal);
          return ambient.sleep(ms, signal);
        },
      },
      logger,
      leaseMs: HOUR,
    });
    cleanup.defer(() => money.stop());
    const pay = () =>
      money.execute(order(upstream.url, mutation, 'a key'), {
        deadline: ambient.now() + HOUR,
        signal: new AbortController().signal,
      });

    await expect(pay()).rejects.toThrow(RecordsUnavailableError);
    // It has waited for its deadline, and for the next renewal.
    expect(waits.length).toBeGreaterThan(1);
    expect(waits.filter(({ aborted }) => !aborted)).toEqual([]);
    isAway = false;
    expect(await pay()).toMatchObject({ kind: 'done', replayed: false });
  },
);
