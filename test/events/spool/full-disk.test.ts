import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/events/errors.ts';
import { Spool } from '../../../src/events/spool/spool.ts';
import { moneyIn } from '../../helpers/events.ts';

it('what the log has is not sent to it again and again where it cannot be deleted from the spool', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-full-'));
  const before = Spool.open(dataDir);
  for (let count = 0; count < 3; count += 1) await before.add('client', moneyIn());
  before.close();
  const file = new DatabaseSync(before.path);
  file.exec("CREATE TRIGGER full BEFORE DELETE ON spool BEGIN SELECT RAISE(ABORT, 'full'); END");
  file.close();
  const spool = Spool.open(dataDir);
  const waiting = spool.first('client');
  expect(waiting).toHaveLength(3);
  await expect(spool.release('client', waiting)).rejects.toBeInstanceOf(StoreUnavailableError);
  expect([spool.first('client'), spool.has('client')]).toEqual([[], false]);
  spool.close();
  await rm(dataDir, { recursive: true });
});
