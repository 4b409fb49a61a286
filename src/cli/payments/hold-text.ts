import { type Hold, type MoneyRecords, RETENTION_DAYS, RETENTION_MS } from '../../money/record.ts';
import { remark } from '../command.ts';

/** Says why, and since when, payments are held; of a record that was put back also from when on to compare. */
export function holdText({ why, since, missing, copied, isUnnoted = false }: Hold): string {
  const held = `Payments have been held since ${timeOf(since)}`;
  if (why !== 'put-back') return `${held}: an operator has stopped them.`;
  const from =
    copied === undefined
      ? `Nothing in it says how old the copy is: compare the transactions of ${RETENTION_DAYS} days, from ${timeOf(since - RETENTION_MS)} on, with what callers hold.`
      : `The last line that the copy had is of ${timeOf(copied)}: compare the transactions from then on with what callers hold.`;
  const counted = isUnnoted ? 'as is counted there' : 'as the gateways have counted';
  const count = missing === 0 ? 'an unknown number' : `up to ${missing}, ${counted}`;
  const what = isUnnoted
    ? UNNOTED
    : `${held}: their record was put back, to a copy that may be far older than that.`;
  return `${what} ${from} Missing from it: ${count}.`;
}

const UNNOTED =
  'This record is behind what DATA_DIR counts of its payments, or its file is another one, and no gateway has noted that. Are REDIS_URL and DATA_DIR those of one gateway? If so, their record was put back, to a copy that may be old: that gateway holds payments for it once it compares, at its start or within ten seconds.';

/** Says on standard error that payments may be missing from what is printed, as long as the record has been put back. */
export async function remarkPutBack(records: Pick<MoneyRecords, 'held'>): Promise<void> {
  for (const hold of await records.held()) if (hold.why === 'put-back') remark(holdText(hold));
}

const timeOf = (ms: number): string => new Date(ms).toISOString();
