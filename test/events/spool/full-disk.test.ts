import { mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import type { Spool } from '../../../src/events/spool/spool.ts';
import { openSpool } from '../../../src/events/spool/spool-files.ts';
import { moneyIn } from '../../helpers/events.ts';
import { withRoom } from '../../helpers/small-disk.ts';

let dataDir: string;
let spool: Spool;

/** A spool with three events, which cannot be deleted before something else could be written. */
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-full-'));
  const before = openSpool(dataDir);
  for (let count = 0; count < 3; count += 1) await before.add('client', moneyIn());
  before.close();
  const file = new DatabaseSync(before.path);
  file.exec(`CREATE TRIGGER full BEFORE DELETE ON spool WHEN NOT EXISTS (SELECT 1 FROM probes)
    BEGIN SELECT RAISE(ABORT, 'full'); END`);
  file.close();
  spool = openSpool(dataDir);
});
afterEach(async () => {
  spool.close();
  await rm(dataDir, { recursive: true });
});

const release = async () => {
  const waiting = spool.first('client');
  expect(waiting).toHaveLength(3);
  await expect(spool.release('client', waiting)).rejects.toBeInstanceOf(StoreUnavailableError);
};

it('what the log has is not sent to it again and again where it cannot be deleted from the spool', async () => {
  await release();
  expect([spool.first('client'), spool.has('client')]).toEqual([[], false]);
});

it('what could not be deleted from the spool is deleted once there is room, also if more has come since', async () => {
  await release();
  await spool.tidy();
  expect(spool.isUntidy).toBe(true);
  await spool.add('client', moneyIn());
  await spool.probe();
  await spool.tidy();
  expect(spool.isUntidy).toBe(false);
  expect(spool.first('client')).toHaveLength(1);
  spool.close();
  // What a later start would send to the log.
  spool = openSpool(dataDir);
  expect([spool.size, spool.first('client').length]).toEqual([1, 1]);
});

it('a message that waits is recognised also beside a new one of the same turn for which there is no room', async () => {
  const waiting = moneyIn();
  await spool.add('client', waiting);
  spool.close();
  const file = new DatabaseSync(spool.path);
  file.exec("CREATE TRIGGER no_room BEFORE INSERT ON spool BEGIN SELECT RAISE(ABORT, 'full'); END");
  file.close();
  spool = openSpool(dataDir);
  const [kept, repeated] = await Promise.allSettled([
    spool.add('client', moneyIn()),
    spool.add('client', waiting),
  ]);
  expect(kept).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailableError) });
  const recognised = { answer: { status: 201 }, duplicate: true, conflict: false };
  expect(repeated).toMatchObject({ status: 'fulfilled', value: recognised });
});

it('what there is room for is kept, also beside a look at the disk and a larger message of the same turn', async () => {
  spool.close();
  spool = withRoom(6, () => openSpool(dataDir));
  const done = await Promise.allSettled([
    spool.probe(),
    spool.add('client', moneyIn()),
    spool.add('client', moneyIn({ payload: 'x'.repeat(64 * 1024) })),
    spool.add('other', moneyIn()),
  ]);
  expect(done.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled']);
  expect([spool.size, spool.first('client').length, spool.first('other').length]).toEqual([5, 4, 1]);
});

it('a spool whose file has gone takes no event, also before its first one, and says why', async () => {
  const { path } = spool;
  await rename(path, `${path}.away`);
  const cause = expect.objectContaining({ message: expect.stringContaining(`${path} was deleted, moved`) });
  await expect(spool.add('client', moneyIn())).rejects.toMatchObject({ cause });
  await expect(spool.probe()).rejects.toMatchObject({ cause });
  await rename(`${path}.away`, path);
  await spool.add('client', moneyIn());
  expect(spool.size).toBe(4);
});
