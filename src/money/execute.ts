import type { Logger } from '../common/logger.ts';
import { type Ambient, systemAmbient } from './ambient.ts';
import type { Call, MoneyCalls, MoneyOrder, MoneyResult } from './call.ts';
import { type MoneyMutation, recordName } from './intent.ts';
import { createLogIds } from './log-ids.ts';
import { failureName, outcomeName, type PaymentOutcome } from './payment-outcome.ts';
import { createPayments, type Payments } from './payment-reads.ts';
import { createPersistence, type Persistence } from './persist.ts';
import {
  type ComparisonOutcome,
  type ReconcilingCalls,
  type ReconcilingOptions,
  reconcileBalances,
} from './reconciling/reconciler.ts';
import type { Hold, MoneyRecords } from './record.ts';
import { createSettler, type SettledBy, type Settler } from './settling/settler.ts';
import { runUnderKey } from './under-key.ts';
import { createUnreadLog, type UnreadLog } from './unread-log.ts';

interface Limits {
  /** The operation's deadline, in ms since the epoch. Waits, reads, requests and repeats all fit within it. */
  readonly deadline: number;
  /**
   * Aborts when the caller leaves. Waiting and repeating then stop; a request that was sent goes on, and its answer is
   * stored.
   */
  readonly signal: AbortSignal;
}

export interface Money {
  /**
   * Moves money at most once for the order's key, and returns whether it is done, refused or unknown.
   *
   * It goes on when nobody awaits it any more. It ends at its deadline, plus the time that the store takes.
   *
   * @throws {RecordsUnavailableError} if the record cannot be reached: this call has sent nothing.
   */
  execute(order: MoneyOrder, limits: Limits): Promise<MoneyResult>;
  /** Reads the outcomes of earlier orders. */
  readonly payments: Payments;
  /** Settles the open payments of a client without its callers, from now on. */
  readonly serve: Settler['serve'];
  /** When open payments were gone through last without their callers. */
  readonly lastPass: Settler['lastPass'];
  /** Looks for an open payment for which its caller has come, under the caller's own credential. */
  readonly remember: Settler['remember'];
  /** Compares the balances of clients with the money that is known to have moved, from now on. To be called once. */
  reconcile(clients: ReadonlyMap<string, ReconcilingCalls>, options: ReconcilingOptions): void;
  /** How many calls of `execute` have not ended. */
  inFlight(): number;
  /** How many answers, and keys to be given back, this process has to write to the record, which did not take them. */
  unwritten(): number;
  /** Resolves with true if the record could be written now, so that an order would be sent. Never fails. */
  isAvailable(): Promise<boolean>;
  /** See `MoneyRecords.problem`. */
  problem(): string | undefined;
  /** Resolves with the reasons for which payments are held; with none if they are not. Rejects if that cannot be read. */
  held(): Promise<readonly Hold[]>;
  /**
   * Begins no look at open payments and no comparison any more, and gives the comparison under way up. Orders are taken on. Resolves once
   * no look is under way.
   */
  drain(): Promise<void>;
  /**
   * Drains. Resolves when every running call has ended, and every answer is stored. What the store has not taken when `over` aborts is tried
   * a last time.
   *
   * @param over without it, all is tried a last time at once
   */
  stop(over?: AbortSignal): Promise<void>;
}

interface MoneyParts {
  readonly records: MoneyRecords;
  readonly logger: Logger;
  readonly ambient?: Ambient;
  readonly leaseMs?: number;
  /** Called when an answer is not the answer to its order. */
  readonly onMismatch?: ((mutation: MoneyMutation) => void) | undefined;
  /** Called when a call has ended. */
  readonly onPayment?: ((mutation: MoneyMutation, outcome: PaymentOutcome) => void) | undefined;
  /** Called when a payment was settled without its caller. */
  readonly onSettled?:
    | ((mutation: MoneyMutation, kind: 'done' | 'refused', by: SettledBy) => void)
    | undefined;
  /** Called after each comparison of a client's balances. */
  readonly onComparison?: ((outcome: ComparisonOutcome) => void) | undefined;
  /** Called for each unexplained change of a balance: `more` if the balance is higher than expected, `less` if lower. */
  readonly onDifference?: ((direction: 'more' | 'less') => void) | undefined;
}

/** @param options.leaseMs how long a dead process keeps an intent from the next call with its key, in ms. */
export function createMoney(options: MoneyParts): Money {
  const { records, logger, ambient = systemAmbient, onSettled, onMismatch } = options;
  const { onComparison = () => {}, onDifference = () => {} } = options;
  const served = new Set<string>();
  const logIds = createLogIds(records);
  const payments = createPayments(records, served, logIds);
  const persistence = createPersistence(logIds, ambient, logger);
  const onUnread = createUnreadLog(records, logger);
  const settler = createSettler({ records, persistence, ambient, logger, onSettled, onMismatch, onUnread });
  const running = new Set<Promise<unknown>>();
  const track = (work: Promise<unknown>): void => {
    const tracked = work.finally(() => running.delete(tracked)).catch(() => undefined);
    running.add(tracked);
  };
  const execute = executing({ ...options, ambient }, { payments, persistence, settler, track, onUnread });
  const stopping = new AbortController();
  const drain = (): Promise<void> => {
    stopping.abort();
    return settler.drain();
  };
  let inFlight = 0;
  return {
    execute: (order, limits) => {
      inFlight += 1;
      const call = execute(order, limits).finally(() => {
        inFlight -= 1;
      });
      track(call);
      return call;
    },
    payments,
    serve(clientId, calls) {
      served.add(clientId);
      settler.serve(clientId, calls);
    },
    lastPass: settler.lastPass,
    remember: settler.remember,
    reconcile(clients, times) {
      const parts = { records, ambient, logger, onComparison, onDifference, ...times };
      track(reconcileBalances(clients, parts, stopping.signal));
    },
    inFlight: () => inFlight,
    unwritten: persistence.waiting,
    isAvailable: () => records.isAvailable(),
    problem: () => records.problem(),
    held: () => records.held(),
    drain,
    stop: async (over) => {
      const drained = drain();
      while (running.size > 0) await Promise.allSettled(running);
      await drained;
      await persistence.stop(over);
      // What was stored last has its line in the log.
      await settler.drain();
    },
  };
}

/** `execute` of {@link Money}, over what it shares with the rest. */
function executing(
  options: MoneyParts & { readonly ambient: Ambient },
  shared: {
    readonly payments: Payments;
    readonly persistence: Persistence;
    readonly settler: Settler;
    /** Makes `stop` wait for this work. */
    track(work: Promise<unknown>): void;
    readonly onUnread: UnreadLog;
  },
): Money['execute'] {
  const { records, logger, ambient, leaseMs = 5_000, onMismatch = () => {}, onPayment } = options;
  const { payments, persistence, settler, track, onUnread } = shared;

  return async (order, { deadline, signal }) => {
    const late = new AbortController();
    const over = new AbortController();
    void ambient.sleep(deadline - ambient.now(), over.signal).then(() => {
      if (!over.signal.aborted) late.abort();
    });
    const waiting = AbortSignal.any([late.signal, signal]);
    const began = ambient.now();
    let sends = 0;
    const onSent = () => {
      sends += 1;
    };
    const parts = { records, persistence, ambient, logger, onMismatch, onUnread, onSent };
    const owner = ambient.newId();
    let name = recordName(order);
    const call: Call = {
      order,
      name,
      ownerDigest: undefined,
      owner,
      deadline,
      atDeadline: late.signal,
      waiting,
      ...parts,
    };
    const report = (outcome: PaymentOutcome, result?: MoneyResult) => {
      onPayment?.(order.mutation, outcome);
      const took = { milliseconds: Math.max(0, Math.round(ambient.now() - began)), sends };
      track(logged(order, payments.idOf(name), result, { outcome, ...took }, logger));
    };
    try {
      const result = await runUnderKey(call, leaseMs, (next) => {
        name = next;
      });
      report(outcomeName(result), result);
      const { later } = order;
      if (result.kind === 'unknown' && later !== undefined) settler.remember(name, later, true);
      return result;
    } catch (error) {
      report(failureName(error));
      throw error;
    } finally {
      over.abort();
    }
  };
}

/** Logs one line for each call, with what a person needs to look it up and no personal data. Nothing waits for it. */
async function logged(
  { mutation, clientId, calls, requestId }: MoneyOrder,
  id: Promise<string>,
  result: MoneyResult | undefined,
  {
    outcome,
    ...took
  }: { readonly outcome: PaymentOutcome; readonly milliseconds: number; readonly sends: number },
  logger: Logger,
): Promise<void> {
  const paymentId = await id.catch(() => undefined);
  const why = result === undefined ? {} : whyOf(result, calls);
  logger.info({ mutation, clientId, paymentId, outcome, ...why, ...took, requestId }, 'payment');
}

/** Why a payment is unknown, or was not sent, or which conflict of keys it is; of an unknown one the last status too. */
function whyOf(result: MoneyResult, calls: MoneyCalls): Readonly<Record<string, string | number>> {
  switch (result.kind) {
    case 'unknown': {
      const { reason, last } = result;
      return last?.kind === 'answered' ? { reason, status: last.status } : { reason };
    }
    case 'nothing-moved':
      return { code: calls.codeUnmoved(result.because) };
    case 'refund-not-allowed':
      return { code: 'REFUND_NOT_ALLOWED' };
    case 'conflict':
      return { code: result.code };
    case 'done':
    case 'refused':
      return {};
  }
}
