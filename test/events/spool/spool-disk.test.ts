import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import { silentMetrics } from '../../../src/events/metrics.ts';
import type { Spool } from '../../../src/events/spool/spool.ts';
import { SpoolDisk } from '../../../src/events/spool/spool-disk.ts';
import { openSpool } from '../../../src/events/spool/spool-files.ts';
import { countingMetrics, recordingLogger } from '../../helpers/events.ts';
import { fillSpool } from '../../helpers/full-spool.ts';

const PROBLEM = 'The spool in DATA_DIR takes no event: no room.';
let dataDir: string;
let spool: Spool;

/** A spool that takes nothing more as long as one event is in it. */
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-disk-'));
  await fillSpool(dataDir, 'EXISTS (SELECT 1 FROM spool)', 1);
  spool = openSpool(dataDir);
});
afterEach(async () => {
  spool.close();
  await rm(dataDir, { recursive: true });
});

it('says why the spool takes no event until it takes one again, with one line for each change', async () => {
  const logger = recordingLogger();
  const metrics = countingMetrics();
  const disk = new SpoolDisk({ logger, metrics });
  for (let looks = 0; looks < 3; looks += 1) await disk.look(spool, new AbortController().signal);
  expect([disk.problem, metrics.counts['spoolUnwritable']]).toEqual([PROBLEM, 1]);
  // Nobody has to wait a minute to learn that there is room again.
  expect(disk.isDue).toBe(true);
  await spool.release('client', spool.first('client'));
  for (let looks = 0; looks < 3; looks += 1) await disk.look(spool, new AbortController().signal);
  expect([disk.problem, disk.isDue]).toEqual([undefined, false]);
  expect(metrics.counts['spoolUnwritable']).toBe(0);
  expect(logger.lines).toEqual([
    { level: 'error', fields: { error: 'no room' }, message: 'the spool takes no event' },
    { level: 'info', fields: {}, message: 'the spool takes events again' },
  ]);
});

it('looks again after a minute where nobody needs the spool', async () => {
  await spool.release('client', spool.first('client'));
  const real = clock.monotonic();
  let at = real;
  const undo = useClock({ ...clock, monotonic: () => at });
  try {
    const disk = new SpoolDisk({ logger: recordingLogger(), metrics: silentMetrics });
    expect(disk.isDue).toBe(true);
    await disk.look(spool, new AbortController().signal);
    at = real + 59_999;
    expect(disk.isDue).toBe(false);
    at = real + 60_000;
    expect(disk.isDue).toBe(true);
  } finally {
    undo();
  }
});

it('leaves no file behind that has grown, in which a full disk would have room for the next look', async () => {
  await spool.release('client', spool.first('client'));
  const disk = new SpoolDisk({ logger: recordingLogger(), metrics: silentMetrics });
  await disk.look(spool, new AbortController().signal);
  expect([disk.problem, (await stat(`${spool.path}-wal`)).size]).toEqual([undefined, 0]);
});

it('says nothing of a look that the end of the process has cut short', async () => {
  const logger = recordingLogger();
  const disk = new SpoolDisk({ logger, metrics: silentMetrics });
  const looking = disk.look(spool, AbortSignal.abort());
  spool.close();
  await looking;
  expect([disk.problem, logger.lines]).toEqual([undefined, []]);
  spool = openSpool(dataDir);
});

it('says why a spool cannot be opened', () => {
  const disk = new SpoolDisk({ logger: recordingLogger(), metrics: silentMetrics });
  disk.note(new Error('Outside.', { cause: new Error('no room') }));
  expect(disk.problem).toBe(PROBLEM);
});
