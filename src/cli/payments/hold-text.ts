import {
  type Hold,
  type MoneyRecords,
  RETENTION_DAYS,
  RETENTION_MS,
  RecordsUnavailableError,
} from '../../money/record.ts';
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

/**
 * Says on standard error why payments are held, or that this cannot be read: what is printed may have been read all the same, as from
 * another node of a Cluster.
 *
 * @param concerns which holds it tells
 */
export async function remarkHolds(
  records: Pick<MoneyRecords, 'held'>,
  concerns: (hold: Hold) => boolean = () => true,
): Promise<void> {
  try {
    for (const hold of await records.held()) if (concerns(hold)) remark(holdText(hold));
  } catch (error) {
    if (!(error instanceof RecordsUnavailableError)) throw error;
    remark(`Whether payments are held is not known: ${error.message}`);
  }
}

/** Whether payments may be missing from what is printed. */
export const isPutBack = ({ why }: Hold): boolean => why === 'put-back';

const timeOf = (ms: number): string => new Date(ms).toISOString();
