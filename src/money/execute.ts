import type { Logger } from '../common/logger.ts';
import { type Ambient, systemAmbient } from './ambient.ts';
import type { Call, MoneyOrder, MoneyResult } from './call.ts';
import { type MoneyMutation, recordName } from './intent.ts';
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

interface Limits {
  /** The operation's deadline, in ms since the epoch. Waits, reads, requests and repeats all fit within it. */
  readonly deadline: number;
  /** The caller's presence. Its end stops waiting and repeating; a request that has left runs on, and its answer is kept. */
  readonly signal: AbortSignal;
}

export interface Money {
  /**
   * Moves money at most once for the order's key, and tells which of three it is: done, refused or unknown.
   *
   * It goes on when nobody awaits it any more, and ends by its deadline and the time that the store takes.
   *
   * @throws {RecordsUnavailableError} when the record cannot be reached: this call has sent nothing.
   */
  execute(order: MoneyOrder, limits: Limits): Promise<MoneyResult>;
  /** What became of earlier orders. */
  readonly payments: Payments;
  /** Settles what is open of a client without its callers, from now on. */
  readonly serve: Settler['serve'];
  /** Compares the balances of clients with what has moved, from now on. To be called once. */
  reconcile(clients: ReadonlyMap<string, ReconcilingCalls>, options: ReconcilingOptions): void;
  /** How many calls of `execute` have not ended. */
  inFlight(): number;
  /** Whether the record could be kept now, so that an order would be sent. Never fails. */
  isAvailable(): Promise<boolean>;
  /** Since when payments are held; undefined when they are not, and when that cannot be read. Never fails. */
  held(): Promise<Hold | undefined>;
  /** Resolves when every running call has ended, and every answer is stored or was tried a last time. */
  stop(): Promise<void>;
}

interface MoneyParts {
  readonly records: MoneyRecords;
  readonly logger: Logger;
  readonly ambient?: Ambient;
  readonly leaseMs?: number;
  /** An answer was not the answer to its order. */
  readonly onMismatch?: ((mutation: MoneyMutation) => void) | undefined;
  /** A call has ended. */
  readonly onPayment?: ((mutation: MoneyMutation, outcome: PaymentOutcome) => void) | undefined;
  /** A payment was settled without its caller. */
  readonly onSettled?:
    | ((mutation: MoneyMutation, kind: 'done' | 'refused', by: SettledBy) => void)
    | undefined;
  /** The balances of a client were compared. */
  readonly onComparison?: ((outcome: ComparisonOutcome) => void) | undefined;
  /** A balance has changed by what the gateway does not know: it shows more, or less. */
  readonly onDifference?: ((direction: 'more' | 'less') => void) | undefined;
}

/** @param options.leaseMs how long after its process died an intent is taken up by the next call with its key. */
export function createMoney(options: MoneyParts): Money {
  const { records, logger, ambient = systemAmbient, onSettled, onMismatch } = options;
  const { onComparison = () => {}, onDifference = () => {} } = options;
  const served = new Set<string>();
  const payments = createPayments(records, served);
  const persistence = createPersistence(ambient, logger);
  const settler = createSettler({ records, payments, persistence, ambient, logger, onSettled, onMismatch });
  const running = new Set<Promise<unknown>>();
  const track = (work: Promise<unknown>): void => {
    const tracked = work.finally(() => running.delete(tracked)).catch(() => undefined);
    running.add(tracked);
  };
  const execute = executing({ ...options, ambient }, { payments, persistence, settler, track });
  const stopping = new AbortController();
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
    reconcile(clients, times) {
      const parts = { records, ambient, logger, onComparison, onDifference, ...times };
      track(reconcileBalances(clients, parts, stopping.signal));
    },
    inFlight: () => inFlight,
    isAvailable: () => records.isAvailable(),
    held: () => records.held().catch(() => undefined),
    stop: async () => {
      stopping.abort();
      const settled = settler.stop();
      while (running.size > 0) await Promise.allSettled(running);
      await settled;
      await persistence.stop();
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
    /** Has the end of everything wait for this. */
    track(work: Promise<unknown>): void;
  },
): Money['execute'] {
  const { records, logger, ambient, leaseMs = 5_000, onMismatch = () => {}, onPayment } = options;
  const { payments, persistence, settler, track } = shared;

  return async (order, { deadline, signal }) => {
    const late = new AbortController();
    const over = new AbortController();
    void ambient.sleep(deadline - ambient.now(), over.signal).then(() => {
      if (!over.signal.aborted) late.abort();
    });
    const waiting = AbortSignal.any([late.signal, signal]);
    const parts = { records, persistence, ambient, logger, onMismatch };
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
      track(logged(order, payments.idOf(name), outcome, result, logger));
    };
    try {
      const result = await runUnderKey(call, leaseMs, (next) => {
        name = next;
      });
      report(outcomeName(result), result);
      const { later } = order;
      if (result.kind === 'unknown' && later !== undefined)
        settler.remember(name, later.calls(), later.until);
      return result;
    } catch (error) {
      report(failureName(error));
      throw error;
    } finally {
      over.abort();
    }
  };
}

/** One line for each call: what a person can look up, and nothing of whom it is about. Nothing waits for it. */
async function logged(
  { mutation, clientId }: MoneyOrder,
  id: Promise<string>,
  outcome: PaymentOutcome,
  result: MoneyResult | undefined,
  logger: Logger,
): Promise<void> {
  const paymentId = await id.catch(() => undefined);
  const reason = result?.kind === 'unknown' ? { reason: result.reason } : {};
  logger.info({ mutation, clientId, paymentId, outcome, ...reason }, 'payment');
}
