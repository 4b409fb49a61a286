/**
 * A process of its own that marks payments as sent, `intent-0`, `intent-1` and so on, until the store takes no more. Its one
 * argument is the folder. Writes how many were marked, the codes of what failed then, and
 * whether the record was available before and after, as JSON to standard output.
 */
import { silentLogger } from '../../src/common/logger.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { NOBODYS } from './orders.ts';

const [, , dataDir = ''] = process.argv;
const records = await openMoneyRecords({
  redisUrl: undefined,
  dataDir,
  logger: silentLogger,
});
const body = JSON.stringify({ filler: 'x'.repeat(20_000) });
const wasAvailable = await records.isAvailable();
const codes: unknown[] = [];
let marked = 0;
while (codes.length < 3) {
  const name = { clientId: 'client', hash: `intent-${marked}` };
  try {
    await records.claim(name, { owner: 'a', inputHash: 'input', leaseMs: 0, ...NOBODYS });
    await records.markSent(name, 'a', body);
    marked += 1;
  } catch (error) {
    codes.push(error instanceof Error && 'code' in error ? error.code : String(error));
  }
}
process.stdout.write(
  JSON.stringify({ marked, codes, wasAvailable, isAvailable: await records.isAvailable() }),
);
