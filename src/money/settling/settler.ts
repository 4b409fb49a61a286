import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import type { Ambient } from '../ambient.ts';
import { backoff } from '../backoff.ts';
import type { Later } from '../call.ts';
import type { MoneyMutation, RecordName } from '../intent.ts';
import { tellMismatch } from '../mismatch.ts';
import { paymentIdOf } from '../payment-reads.ts';
import type { Persistence } from '../persist.ts';
import type { MoneyRecords } from '../record.ts';
import type { UnreadLog } from '../unread-log.ts';
import {
  SETTLING_LEASE_MS,
  type Seen,
  type SettlingCalls,
  type SettlingParts,
  type SettlingResult,
  settleOpen,
} from './open-payment.ts';
import type { OpenPayment } from './open-records.ts';
import { type Kept, Remembered } from './remembered.ts';

/** How an open payment was settled without its caller: by sending it again, or by evidence. */
export type SettledBy = 'repeat' | 'evidence';

/** Settles payments whose callers do not come back. */
export interface Settler {
  /** Settles the open payments of a client, whoever asked for them, from now on. */
  serve(clientId: string, calls: SettlingCalls): void;
  /**
   * Settles one open payment under its caller's credential, as long as that holds, also if it was given up. If there are too many, some
   * are left to their callers.
   *
   * @param isOfMutation whether a mutation has left it unknown, and not only somebody asked what became of it
   */
  remember(name: RecordName, later: Later, isOfMutation?: boolean): void;
  /**
   * Returns when all due payments of each served client were gone through last, in ms since the epoch, of the client whose are the longest
   * ago: 0 where one's never were. Undefined if no client is served.
   */
  lastPass(): number | undefined;
  /** Begins no look at a payment any more. Resolves once none is under way. */
  drain(): Promise<void>;
}

/** The pause between two looks at the payments that are due, in ms. */
const LOOK_PAUSE = { first: 2_000, most: 2_000 };
/** The pause while the service does not answer, in ms. */
const AWAY_PAUSE = { first: 1_000, most: 15_000 };
/** How many payments are settled at the same time, and how many one look finds. */
const AT_ONCE = 4;
const BATCH = 50;
/** After so many payments in a row without an answer a look ends. */
const MOST_AWAY = 3;
const TIDY_EVERY_MS = 10 * 60_000;

/** What the functions below share. */
interface Settling {
  readonly parts: SettlingParts;
  /** Names this process in the record. */
  readonly owner: string;
  readonly logger: Logger;
  /** Aborts when nothing more may begin. */
  readonly stopping: AbortSignal;
  /** When a pass over the due payments of each served client ended last, in ms since the epoch; 0 before the first. */
  readonly passes: Map<string, number>;
}

/** Logs one line for each settled payment, with what a person needs to look it up and no personal data. */
async function tellSettled(
  records: MoneyRecords,
  logger: Logger,
  { name, asked: { operation: mutation } }: OpenPayment,
  outcome: 'done' | 'refused',
  by: SettledBy,
): Promise<void> {
  const paymentId = await paymentIdOf(records, name);
  logger.info({ mutation, clientId: name.clientId, paymentId, outcome, by }, 'payment settled');
}

async function tellLookFailed(
  records: MoneyRecords,
  logger: Logger,
  { name, asked: { operation: mutation } }: OpenPayment,
  err: unknown,
): Promise<void> {
  const told = { err, mutation, clientId: name.clientId, paymentId: await paymentIdOf(records, name) };
  logger.warn(told, 'an open payment could not be looked for; it is later');
}

async function tellGivenUp(
  records: MoneyRecords,
  logger: Logger,
  { name, asked: { operation: mutation } }: OpenPayment,
  seen: Seen,
): Promise<void> {
  const told = { mutation, clientId: name.clientId, paymentId: await paymentIdOf(records, name), seen };
  logger.warn(told, 'an unknown payment is no longer looked for; a person has to look at the account');
}

export function createSettler(options: {
  readonly records: MoneyRecords;
  readonly persistence: Persistence;
  readonly ambient: Ambient;
  readonly logger: Logger;
  readonly onSettled?:
    | ((mutation: MoneyMutation, kind: 'done' | 'refused', by: SettledBy) => void)
    | undefined;
  readonly onMismatch?: ((mutation: MoneyMutation) => void) | undefined;
  readonly onUnread: UnreadLog;
}): Settler {
  const { records, persistence, ambient, logger, onSettled, onMismatch, onUnread } = options;
  const stopping = new AbortController();
  const running = new Set<Promise<unknown>>();
  const remembered = new Remembered();

  const run = (work: Promise<unknown>): void => {
    const job = work
      .catch((err: unknown) => logger.warn({ err }, 'open payments could not be looked at; they are later'))
      .finally(() => running.delete(job));
    running.add(job);
  };
  const parts: SettlingParts = {
    records,
    persistence,
    ambient,
    onUnread,
    onSettled(payment, kind, by) {
      onSettled?.(payment.asked.operation, kind, by);
      run(tellSettled(records, logger, payment, kind, by));
    },
    onMismatch({ asked: { operation: mutation }, name }, fields) {
      run(tellMismatch({ mutation, name, fields }, records, logger, onMismatch));
    },
    onLookFailed(payment, err) {
      run(tellLookFailed(records, logger, payment, err));
    },
    onGivenUp(payment, seen) {
      remembered.giveUp(payment.name);
      run(tellGivenUp(records, logger, payment, seen));
    },
  };
  const passes = new Map<string, number>();
  const settling: Settling = { parts, owner: ambient.newId(), logger, stopping: stopping.signal, passes };
  const keeping = new Set<string>();
  const keepOn = (clientId: string): void => {
    if (keeping.has(clientId) || !remembered.has(clientId) || stopping.signal.aborted) return;
    keeping.add(clientId);
    const kept = keep(settling, remembered, clientId).finally(() => {
      keeping.delete(clientId);
      // A payment may have been added after the loop found none left, and before it counted as ended.
      keepOn(clientId);
    });
    run(kept);
  };

  return {
    serve: (clientId, calls) => run(serve(settling, clientId, calls)),
    remember(name, later, isOfMutation) {
      remembered.add(name, later, ambient.now(), isOfMutation);
      keepOn(name.clientId);
    },
    lastPass: () => (passes.size === 0 ? undefined : Math.min(...passes.values())),
    async drain() {
      stopping.abort();
      while (running.size > 0) await Promise.allSettled(running);
    },
  };
}

/** Looks at the due payments of a client, again and again. */
async function serve(settling: Settling, clientId: string, calls: SettlingCalls): Promise<void> {
  const { parts, logger, stopping, passes } = settling;
  const { records, ambient } = parts;
  passes.set(clientId, 0);
  let tidiedAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  while (!stopping.aborted) {
    try {
      if (ambient.now() - tidiedAt > TIDY_EVERY_MS) {
        await records.tidy(clientId);
        tidiedAt = ambient.now();
      }
      const end = await sweep(settling, clientId, calls);
      failures = end === 'away' ? failures + 1 : 0;
      if (end === 'through') passes.set(clientId, ambient.now());
    } catch (err) {
      failures += 1;
      logger.debug({ err }, 'open payments could not be looked at; they are later');
    }
    const pause = failures === 0 ? LOOK_PAUSE : AWAY_PAUSE;
    await ambient.sleep(backoff(pause, Math.max(0, failures - 1), ambient.random), stopping);
  }
}

/**
 * Settles due payments.
 *
 * @returns `through` once all that were due have been looked at; `away` if the service is away; `pausing` where more are due, and none of
 * those that were looked at last could be settled
 */
async function sweep(
  settling: Settling,
  clientId: string,
  calls: SettlingCalls,
): Promise<'through' | 'away' | 'pausing'> {
  const { parts, stopping } = settling;
  for (;;) {
    const names = await parts.records.due(clientId, BATCH);
    const isLast = names.length < BATCH;
    let settled = 0;
    const isAway = await inTurn(stopping, names, async (name) => {
      const result = await settle(settling, name, calls);
      if (result === 'settled') settled += 1;
      return result;
    });
    if (isAway) return 'away';
    if (stopping.aborted) return 'pausing';
    if (isLast) return 'through';
    if (settled === 0) return 'pausing';
  }
}

/** Settles some payments of one client, a few at the same time, until the service is away. Returns true if it is away. */
async function inTurn<One>(
  stopping: AbortSignal,
  some: readonly One[],
  settleOne: (one: One) => Promise<Result>,
): Promise<boolean> {
  const left = [...some];
  let away = 0;
  const settleInTurn = async (): Promise<void> => {
    for (;;) {
      const one = away < MOST_AWAY && !stopping.aborted ? left.shift() : undefined;
      if (one === undefined) return;
      away = (await settleOne(one)) === 'away' ? away + 1 : 0;
      // Where neither the store nor the service is waited for, one look after the other would keep everybody else waiting.
      if (away === 0) await clock.immediate();
    }
  };
  // All have ended before an error is thrown, so that no more than these run at once, and `drain` waits for each.
  const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, settleInTurn));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
  return away >= MOST_AWAY;
}

/** Settles the open payments for which callers of a client have come, as long as their credentials hold. */
async function keep(settling: Settling, remembered: Remembered, clientId: string): Promise<void> {
  const { parts, logger, stopping } = settling;
  const { records, ambient } = parts;
  const settleKept = async (kept: Kept): Promise<Result> => {
    const { name, calls } = kept;
    // Its caller may ask again while the look is under way.
    const isAsked = remembered.begin(kept, ambient.now());
    let isTaken = false;
    try {
      const result = await settle(settling, name, calls, isAsked);
      isTaken = result !== 'not-taken';
      if ((result === 'settled' || result === 'not-taken') && (await isSettled(records, name)))
        remembered.forget(name);
      return result;
    } catch (err) {
      logger.debug({ err }, 'open payments could not be looked at; they are later');
      return 'away';
    } finally {
      if (!isTaken) kept.isAsked ||= isAsked;
    }
  };
  let failures = 0;
  while (!stopping.aborted && remembered.has(clientId)) {
    const pause = failures === 0 ? LOOK_PAUSE : AWAY_PAUSE;
    await ambient.sleep(backoff(pause, Math.max(0, failures - 1), ambient.random), stopping);
    const isAway = await inTurn(stopping, remembered.due(clientId, ambient.now()), settleKept);
    failures = isAway ? failures + 1 : 0;
  }
}

type Result = SettlingResult | 'not-taken';

/** @param isAsked as in `takeOpen` */
async function settle(
  { parts, owner }: Settling,
  name: RecordName,
  calls: SettlingCalls,
  isAsked = false,
): Promise<Result> {
  const payment = await parts.records.takeOpen(name, owner, SETTLING_LEASE_MS, isAsked);
  // It is settled, another process has it, or nothing may be sent. Another look at once would find the same.
  return payment === undefined ? 'not-taken' : settleOpen(payment, calls, parts);
}

async function isSettled(records: MoneyRecords, name: RecordName): Promise<boolean> {
  let record = await records.read(name);
  if (record === undefined) {
    await records.confirmReads(name.clientId);
    record = await records.read(name);
  }
  return record === undefined || (record.answer !== null && record.answer.kind !== 'unknown');
}
