import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { disk, useDisk } from '../../src/common/disk.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { Quarantine, type QuarantineReason } from '../../src/events/quarantine.ts';
import { recordingLogger } from '../helpers/events.ts';
import { until } from '../helpers/until.ts';

let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-quarantine-'));
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

it('keeps the evidence of one client and reason from the junk of others', () => {
  const quarantine = new Quarantine({ dataDir, logger: recordingLogger(), metrics: silentMetrics });
  const put = (clientId: string, reason: QuarantineReason, text: string) =>
    quarantine.put({
      receivedAt: '2026-11-20T15:30:00Z',
      clientId,
      type: 'MONEY_IN',
      reason,
      body: Buffer.from(text),
    });
  put('merchant', 'conflict', 'evidence');
  put('victim', 'unreadable', 'evidence');
  for (let index = 0; index < 1_100; index += 1) put('merchant', 'unreadable', String(index));
  const database = new DatabaseSync(join(dataDir, 'quarantine.sqlite'), { readOnly: true });
  const rowsNow = () =>
    database
      .prepare('SELECT client_id, reason, CAST(body AS TEXT) AS body FROM quarantine ORDER BY number')
      .all();
  put('merchant', 'conflict', 'later evidence');
  put('victim', 'unreadable', 'later evidence');
  // Long before all together are too many.
  expect(rowsNow()).toHaveLength(200 + 4);
  for (let client = 0; client < 60; client += 1)
    for (let index = 0; index < 40; index += 1) put(`client-${client}`, 'incomplete', String(index));
  quarantine.close();

  const rows = rowsNow();
  database.close();
  const bodiesOf = (clientId: string, reason: string) =>
    rows.filter((row) => row['client_id'] === clientId && row['reason'] === reason).map(({ body }) => body);
  expect(bodiesOf('merchant', 'conflict')).toEqual(['evidence', 'later evidence']);
  expect(bodiesOf('victim', 'unreadable')).toEqual(['evidence', 'later evidence']);
  const junk = bodiesOf('merchant', 'unreadable');
  expect(junk.at(-1)).toBe('1099');
  expect(junk.length).toBeLessThanOrEqual(200);
  // Together they are bounded as well, at the cost of those who have the most.
  expect(rows.length).toBe(2_000);
  expect(bodiesOf('client-59', 'incomplete').length).toBeGreaterThan(20);
});

it('gives a delivery that comes again and again one place, and keeps the others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-quarantine-'));
  const quarantine = new Quarantine({ dataDir: folder, logger: recordingLogger(), metrics: silentMetrics });
  const put = (text: string, minute: number) =>
    quarantine.put({
      receivedAt: `2026-11-20T15:${String(minute % 60).padStart(2, '0')}:00Z`,
      ...{ clientId: 'merchant', type: 'MONEY_IN', reason: 'undecided', body: Buffer.from(text) },
    });
  put('once', 0);
  for (let times = 0; times < 300; times += 1) put('again', times);
  quarantine.close();
  const database = new DatabaseSync(join(folder, 'quarantine.sqlite'), { readOnly: true });
  const rows = database
    .prepare('SELECT received_at, CAST(body AS TEXT) AS body FROM quarantine ORDER BY number')
    .all();
  database.close();
  expect(rows).toEqual([
    { received_at: '2026-11-20T15:00:00Z', body: 'once' },
    { received_at: '2026-11-20T15:59:00Z', body: 'again' },
  ]);
  await rm(folder, { recursive: true, force: true });
});

it('tells of what it cannot keep', async () => {
  const file = join(dataDir, 'file');
  await writeFile(file, '');
  const told: string[] = [];
  const logger = recordingLogger();
  const metrics = { ...silentMetrics, quarantined: (reason: string) => void told.push(reason) };
  const quarantine = new Quarantine({ dataDir: file, logger, metrics });
  const [clientId, type, reason] = ['client', 'MONEY_IN', 'conflict'] as const;
  quarantine.put({
    receivedAt: '2026-11-20T15:30:00Z',
    clientId,
    type,
    reason,
    body: Buffer.from('evidence'),
  });
  quarantine.close();
  expect(told).toEqual([reason]);
  expect(logger.lines).toMatchObject([
    { level: 'error', fields: { clientId, type, reason }, message: 'a webhook was put into quarantine' },
    { level: 'error', fields: { clientId, type }, message: 'the quarantine could not be written' },
  ]);
});

it('waits for no disk, as each of a burst would keep everybody else waiting', async () => {
  const folder = await mkdtemp(join(dataDir, 'burst-'));
  const opened: DatabaseSync[] = [];
  const restore = useDisk({
    ...disk,
    open(path) {
      const database = new DatabaseSync(path);
      opened.push(database);
      return database;
    },
  });
  try {
    const logger = recordingLogger();
    const quarantine = new Quarantine({ dataDir: folder, logger, metrics: silentMetrics });
    const [clientId, type, reason] = ['client', 'MONEY_IN', 'undecided'] as const;
    quarantine.put({ receivedAt: '2026-11-20T15:30:00Z', clientId, type, reason, body: Buffer.from('{}') });
    // NORMAL: SQLite syncs as it moves its log into the file, and not with each write.
    expect(opened.map((database) => database.prepare('PRAGMA synchronous').get())).toEqual([
      { synchronous: 1 },
    ]);
    quarantine.close();
  } finally {
    restore();
  }
});

it('has the disk take what was put aside, once for all of a burst, and tells where it does not', async () => {
  const folder = await mkdtemp(join(dataDir, 'synced-'));
  const logger = recordingLogger();
  const quarantine = new Quarantine({ dataDir: folder, logger, metrics: silentMetrics });
  const put = () =>
    quarantine.put({
      receivedAt: '2026-11-20T15:30:00Z',
      clientId: 'client',
      type: 'MONEY_IN',
      reason: 'conflict',
      body: Buffer.from('evidence'),
    });
  const told = () => logger.lines.filter(({ message }) => message === 'the quarantine could not be written');
  const synced: string[] = [];
  const { sync: systemSync } = disk;
  const syncs: PromiseWithResolvers<void>[] = [];
  const restore = useDisk({
    ...disk,
    async sync(path) {
      // Those of the tests before may go on.
      if (!path.startsWith(folder)) return systemSync(path);
      synced.push(path);
      const sync = Promise.withResolvers<void>();
      syncs.push(sync);
      await sync.promise;
      await systemSync(path);
    },
  });
  try {
    for (let count = 0; count < 50; count += 1) put();
    expect(synced).toEqual([join(folder, 'quarantine.sqlite-wal')]);
    // What comes meanwhile may not be on the disk by then.
    put();
    syncs[0]?.reject(new Error('EIO: i/o error'));
    await until(() => told().length > 0);
    expect(told()).toMatchObject([{ level: 'error', fields: { error: 'Error: EIO: i/o error' } }]);
    put();
    expect(syncs).toHaveLength(2);
    put();
    syncs[1]?.resolve();
    await until(() => syncs.length === 3);
    quarantine.close();
    // SQLite has done it.
    syncs[2]?.reject(new Error('ENOENT: no such file or directory'));
    await setImmediate();
    expect(told()).toHaveLength(1);
  } finally {
    restore();
  }
});
