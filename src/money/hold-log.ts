import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import type { Hold, MoneyRecords } from './record.ts';

/** How often a process looks whether payments are held, in ms. */
const LOOK_EVERY_MS = 10_000;

/**
 * Logs one line when payments begin to be held for a reason, and one when they no longer are, also where another process
 * has stopped them or lets them go on. While the store does not answer, it logs neither.
 *
 * Resolves after the first look.
 *
 * @returns a function that ends it
 */
export async function logHolds(records: Pick<MoneyRecords, 'held'>, logger: Logger): Promise<() => void> {
  let known: readonly Hold[] = [];
  const look = async (): Promise<void> => {
    const before = known;
    const holds = await records.held().catch(() => before);
    // A slow look may end after a later one.
    if (known !== before) return;
    known = holds;
    for (const hold of holds) if (!includes(before, hold)) logBegin(hold, logger);
    for (const hold of before) if (!includes(holds, hold)) logEnd(hold, logger);
  };
  await look();
  const looking = clock.setInterval(() => void look(), LOOK_EVERY_MS).unref();
  return () => clock.clearInterval(looking);
}

const includes = (holds: readonly Hold[], { why }: Hold): boolean => holds.some((hold) => hold.why === why);

function logBegin({ why, missing, copied }: Hold, logger: Logger): void {
  if (why === 'stopped')
    logger.warn({}, 'payments have been stopped: they are held until `pasarela payments resume`');
  else {
    logger.error(
      { missing, ...(copied === undefined ? {} : { copied: new Date(copied).toISOString() }) },
      'the record of payments has been put back to an earlier state: payments are held until `pasarela payments resume --put-back`',
    );
  }
}

function logEnd({ why }: Hold, logger: Logger): void {
  if (why === 'stopped') logger.info({}, 'payments are no longer stopped');
  else logger.info({}, 'payments are no longer held for a record that was put back');
}
