import { DatabaseSync } from 'node:sqlite';
import { openSpool } from '../../src/events/spool/spool-files.ts';
import { moneyIn } from './events.ts';

/**
 * Makes a spool with events of `client` in a folder, which takes nothing of the largest size while a condition of SQL holds, as if the disk
 * were full.
 *
 * @param count how many events
 */
export async function fillSpool(dataDir: string, condition: string, count = 0): Promise<void> {
  const spool = openSpool(dataDir);
  for (let left = count; left > 0; left -= 1) await spool.add('client', moneyIn());
  spool.close();
  using file = new DatabaseSync(spool.path);
  file.exec(
    `CREATE TRIGGER full BEFORE INSERT ON probes WHEN ${condition} BEGIN SELECT RAISE(ABORT, 'no room'); END`,
  );
}
