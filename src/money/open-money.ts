import { join } from 'node:path';
import type { Logger } from '../common/logger.ts';
import { createMoney, type Money } from './execute.ts';
import { logHolds } from './hold-log.ts';
import type { MoneyMutation } from './intent.ts';
import { JOURNAL_RETENTION_MS } from './journal/journal.ts';
import type { PaymentOutcome } from './payment-outcome.ts';
import { withPaymentsOff } from './payments-off.ts';
import type { ComparisonOutcome } from './reconciling/reconciler.ts';
import { type MoneyRecords, RETENTION_MS } from './record.ts';
import type { SettledBy } from './settling/settler.ts';
import { openSqliteRecords } from './sqlite/sqlite-record.ts';

/** Options for opening money. */
export interface MoneyOptions {
  /** As `connectRedis` takes it; undefined for a file. */
  readonly redisUrl: string | undefined;
  /** Folder of that file, made when it is not there. */
  readonly dataDir: string;
  /** How long lines of the journal are kept, in ms; {@link JOURNAL_RETENTION_MS} if it is absent. */
  readonly journalMs?: number | undefined;
  /**
   * How long a step waits for another process that writes the file, in ms; the default of `openSqliteRecords` if it is
   * absent.
   */
  readonly busyTimeoutMs?: number | undefined;
  /**
   * True for a command of an operator. It writes into the store what it is told to, and nothing because it was opened and read: its
   * folder may be that of another gateway, whose counts say nothing of this store.
   */
  readonly isCommand?: boolean | undefined;
  /** True if the configuration of this process stops payments. */
  readonly isOff?: boolean | undefined;
  readonly logger: Logger;
  readonly metrics?: MoneyMetrics;
}

/** Counts what happens to payments. */
interface MoneyMetrics {
  /** An answer was not the answer to its order. */
  mismatch(mutation: MoneyMutation): void;
  /** A call has ended. */
  payment(mutation: MoneyMutation, outcome: PaymentOutcome): void;
  /** A payment was settled without its caller. */
  settled(mutation: MoneyMutation, kind: 'done' | 'refused', by: SettledBy): void;
  /** The balances of a client were compared. */
  comparison(outcome: ComparisonOutcome): void;
  /** A balance has changed by what the gateway does not know. */
  difference(direction: 'more' | 'less'): void;
}

/**
 * How long lines of the journal are kept at least in Redis, in ms. A record has only its first line to say what was asked for. An answer
 * that is stored just before a record ends keeps it for as long again.
 */
const LEAST_JOURNAL_MS = 2 * RETENTION_MS + 24 * 60 * 60 * 1000;

/** Opens money over the store that the options name. Its `stop` closes the store too. */
export async function openMoney(options: MoneyOptions): Promise<Money> {
  const { redisUrl, journalMs = JOURNAL_RETENTION_MS } = options;
  const leastMs = redisUrl === undefined ? 0 : LEAST_JOURNAL_MS;
  const opened = await openMoneyRecords({ ...options, journalMs: Math.max(journalMs, leastMs) });
  const { logger, metrics, isOff = false } = options;
  const records = isOff ? withPaymentsOff(opened) : opened;
  const { mismatch: onMismatch, payment: onPayment, settled: onSettled } = metrics ?? {};
  const { comparison: onComparison, difference: onDifference } = metrics ?? {};
  const told = { onMismatch, onPayment, onSettled, onComparison, onDifference };
  const money = createMoney({ records, logger, ...told });
  if (isOff) logger.warn({}, 'PAYMENTS is off: this process sends no payment');
  // Not of the records that say `off`, which hide that the store does not answer.
  const endHoldLog = await logHolds(opened, logger);
  return {
    ...money,
    async stop(over) {
      endHoldLog();
      await money.stop(over);
      await records.stop();
    },
  };
}

/** The file that holds the records where there is no Redis. */
export const sqliteRecordsIn = (dataDir: string): string => join(dataDir, 'money.sqlite');

/** Opens the record of each intent to pay: in Redis if there is one, else in `money.sqlite` in the data folder. */
export async function openMoneyRecords(options: MoneyOptions): Promise<MoneyRecords> {
  const { redisUrl, dataDir, logger, journalMs = JOURNAL_RETENTION_MS, busyTimeoutMs, isCommand } = options;
  if (redisUrl !== undefined) {
    const { openRedisRecords } = await import('./redis/redis-record.ts');
    return openRedisRecords(redisUrl, dataDir, logger, journalMs, undefined, isCommand);
  }
  const path = sqliteRecordsIn(dataDir);
  return openSqliteRecords(path, undefined, undefined, undefined, journalMs, busyTimeoutMs, isCommand);
}
