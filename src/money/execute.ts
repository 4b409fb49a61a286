import type { Logger } from '../common/logger.ts';
import { type Ambient, systemAmbient } from './ambient.ts';
import { backoff } from './backoff.ts';
import type { Call, MoneyOrder, MoneyResult } from './call.ts';
import { type MoneyMutation, ownerMark, type RecordName, recordName, twinOf } from './intent.ts';
import { createPayments, type Payments } from './payments.ts';
import { createPersistence } from './persist.ts';
import type { Claimed, Hold, MoneyRecords } from './record.ts';
import { begin, replay, replayCustomers, takeUp } from './settle.ts';
import { createSettler, type SettledBy, type Settler } from './settler.ts';
import { failureName, outcomeName, type PaymentOutcome } from './told.ts';

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
   * @throws {StoreUnavailableError} when the record cannot be reached: this call has sent nothing.
   */
  execute(order: MoneyOrder, limits: Limits): Promise<MoneyResult>;
  /** What became of earlier orders. */
  readonly payments: Payments;
  /** Settles what is open of a client without its callers, from now on. */
  readonly serve: Settler['serve'];
  /** How many calls of `execute` have not ended. */
  inFlight(): number;
  /** Whether the record could be kept now, so that an order would be sent. Never fails. */
  isAvailable(): Promise<boolean>;
  /** Since when payments are held; undefined when they are not, and when that cannot be read. Never fails. */
  held(): Promise<Hold | undefined>;
  /** Resolves when every running call has ended, and every answer is stored or was tried a last time. */
  stop(): Promise<void>;
}

const POLL_BACKOFF = { first: 25, most: 500 };

/** @param options.leaseMs how long after its process died an intent is taken up by the next call with its key. */
export function createMoney(options: {
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
}): Money {
  const {
    records,
    logger,
    ambient = systemAmbient,
    leaseMs = 5_000,
    onMismatch = () => {},
    onPayment,
  } = options;
  const served = new Set<string>();
  const payments = createPayments(records, served);
  const persistence = createPersistence(ambient, logger);
  const { onSettled } = options;
  const settler = createSettler({ records, payments, persistence, ambient, logger, onSettled });
  const running = new Set<Promise<unknown>>();
  let inFlight = 0;

  /**
   * Claims the key, and follows what is found there. A call that waits for another asks again, with backoff: a message
   * from the holder of the key could get lost, so that asking would be needed all the same, and it is alike on both stores.
   */
  const follow = async (first: Call, onName: (name: RecordName) => void): Promise<MoneyResult> => {
    let call = first;
    for (let looks = 0; ; looks += 1) {
      const askedAt = ambient.now();
      const found = await claim(call);
      if (found.state === 'not-yours') {
        call = named(call);
        onName(call.name);
        continue;
      }
      if (found.state === 'other-input') return { kind: 'conflict', code: 'IDEMPOTENCY_KEY_REUSED' };
      if (found.state === 'answered') return replay(call, found.answer);
      if (found.state === 'customers') return replayCustomers(call, found.answer);
      if (found.state === 'sent') return withLease(call, () => takeUp(call, found, askedAt));
      if (found.state === 'claimed') {
        const result = await withLease(call, () => begin(call));
        if (result !== undefined) return result;
      }
      if (found.state === 'busy')
        await ambient.sleep(backoff(POLL_BACKOFF, looks, ambient.random), call.waiting);
      if (call.waiting.aborted) return { kind: 'conflict', code: 'IDEMPOTENCY_IN_PROGRESS' };
    }
  };

  /** The call under the name that its key has for its owner alone. */
  const named = (call: Call): Call => {
    const namedAfter = ownerMark(call.order);
    return { ...call, namedAfter, name: recordName(call.order, namedAfter) };
  };

  const claim = async ({ name, owner, order }: Call): Promise<Claimed> => {
    const { inputHash, customerId, requestId } = order;
    const whose = { keyOwner: ownerMark(order), twin: twinOf(order), isCustomers: customerId !== undefined };
    const asked = { operation: order.mutation, customerId: customerId ?? null, ...order.shown };
    try {
      return await records.claim(name, { owner, inputHash, leaseMs, asked, requestId, ...whose });
    } catch (error) {
      // The claim may have been made and only its reply lost. It may even have taken over what another call had sent, so
      // that it must not be released; but it need not hold up the next call. Tried once: the lease ends by itself soon.
      void records.renew(name, owner, 0).catch(() => undefined);
      throw error;
    }
  };

  /** Keeps the lease up while `work` runs. What is left unknown is there for the next call at once. */
  const withLease = async <T extends MoneyResult | undefined>(
    { name, owner }: Call,
    work: () => Promise<T>,
  ): Promise<T> => {
    const over = new AbortController();
    // A lease that cannot be moved costs a waiting call its patience, nothing else.
    const renew = (ms: number): Promise<void> => records.renew(name, owner, ms).catch(() => undefined);
    const beat = async (): Promise<void> => {
      while (!over.signal.aborted) {
        await ambient.sleep(leaseMs / 3, over.signal);
        if (!over.signal.aborted) await renew(leaseMs);
      }
    };
    void beat();
    try {
      const result = await work();
      over.abort();
      if (result?.kind === 'unknown') await renew(0);
      return result;
    } finally {
      over.abort();
    }
  };

  /** One line for each call: what a person can look up, and nothing of whom it is about. Nothing waits for it. */
  const logged = async (
    { mutation, clientId }: MoneyOrder,
    name: RecordName,
    outcome: PaymentOutcome,
    result: MoneyResult | undefined,
  ): Promise<void> => {
    const paymentId = await payments.idOf(name).catch(() => undefined);
    const reason = result?.kind === 'unknown' ? { reason: result.reason } : {};
    logger.info({ mutation, clientId, paymentId, outcome, ...reason }, 'payment');
  };

  const execute = async (order: MoneyOrder, { deadline, signal }: Limits): Promise<MoneyResult> => {
    const late = new AbortController();
    const over = new AbortController();
    void ambient.sleep(deadline - ambient.now(), over.signal).then(() => {
      if (!over.signal.aborted) late.abort();
    });
    const call: Call = {
      order,
      name: recordName(order),
      namedAfter: undefined,
      owner: ambient.newId(),
      deadline,
      late: late.signal,
      waiting: AbortSignal.any([late.signal, signal]),
      records,
      persistence,
      ambient,
      logger,
      onMismatch,
    };
    let { name } = call;
    const tell = (outcome: PaymentOutcome, result?: MoneyResult) => {
      onPayment?.(order.mutation, outcome);
      const line = logged(order, name, outcome, result).finally(() => running.delete(line));
      running.add(line);
    };
    try {
      const result = await follow(call, (next) => {
        name = next;
      });
      tell(outcomeName(result), result);
      const { later } = order;
      if (result.kind === 'unknown' && later !== undefined)
        settler.remember(name, later.calls(), later.until);
      return result;
    } catch (error) {
      tell(failureName(error));
      throw error;
    } finally {
      over.abort();
    }
  };

  return {
    execute: (order, limits) => {
      inFlight += 1;
      const call = execute(order, limits).finally(() => {
        inFlight -= 1;
        running.delete(call);
      });
      running.add(call);
      return call;
    },
    payments,
    serve(clientId, calls) {
      served.add(clientId);
      settler.serve(clientId, calls);
    },
    inFlight: () => inFlight,
    isAvailable: () => records.isAvailable(),
    held: () => records.held().catch(() => undefined),
    stop: async () => {
      const settled = settler.stop();
      while (running.size > 0) await Promise.allSettled(running);
      await settled;
      await persistence.stop();
    },
  };
}
