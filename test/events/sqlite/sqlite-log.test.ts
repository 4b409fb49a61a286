import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentMetrics } from '../../../src/events/metrics.ts';
import { SqliteLog } from '../../../src/events/sqlite/sqlite-log.ts';
import { ids, moneyIn } from '../../helpers/events.ts';
import { describeEventLog } from '../log.contract.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-events-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const newFolder = (): Promise<string> => mkdtemp(join(root, 'log-'));

describeEventLog('the embedded log', async ({ retention, metrics }) => {
  return new SqliteLog({ dataDir: await newFolder(), retention, metrics, now: Date.now });
});

describe('the file of the embedded log', () => {
  const open = (dataDir: string, now = Date.now): SqliteLog =>
    new SqliteLog({ dataDir, retention: 10, metrics: silentMetrics, now });

  it('keeps events, answers and cursors from one start to the next', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    const event = moneyIn({ decision: 'REJECTED', refundReason: 'why' });
    const before = await first.head('client');
    await first.append('client', event);
    const key = await first.sealKey('client');
    await first.stop();
    const second = open(dataDir);
    expect(await second.sealKey('client')).toEqual(key);
    expect(ids((await second.readAfter('client', before, 5)).events)).toEqual([event.id]);
    expect(await second.append('client', { ...event, decision: 'ACCEPTED' })).toMatchObject({
      answer: { status: 422, refundReason: 'why' },
      duplicate: true,
    });
    await second.stop();
  });

  it('belongs to one process at a time', async () => {
    const dataDir = await newFolder();
    const first = open(dataDir);
    expect(() => open(dataDir)).toThrow(/in use by another process/);
    await first.stop();
    await open(dataDir).stop();
  });

  it('is read by nobody but its user', async () => {
    const dataDir = await newFolder();
    const log = open(dataDir);
    await log.append('client', moneyIn());
    const names = await readdir(dataDir);
    expect(names).toContain('events.sqlite-wal');
    for (const name of names) expect((await stat(join(dataDir, name))).mode & 0o077).toBe(0);
    await log.stop();
  });

  it('remembers a message for seven days', async () => {
    let now = Date.now();
    const log = open(await newFolder(), () => now);
    const event = moneyIn();
    await log.append('client', event);
    now += 7 * 24 * 3_600_000 - 1;
    expect((await log.append('client', event)).duplicate).toBe(true);
    now += 1;
    expect((await log.append('client', event)).duplicate).toBe(false);
    await log.stop();
  });
});
