import type { Logger } from '../common/logger.ts';
import type { Ambient } from './ambient.ts';
import { backoff } from './backoff.ts';
import type { RecordName } from './intent.ts';
import { paymentIdOf } from './payment-reads.ts';
import type { MoneyRecords } from './record.ts';

/** `answer` is one that came; `release` gives back the key of a payment by which nothing has moved: it was not sent, or was turned away. */
type What = 'answer' | 'release';

/** Takes steps that must reach the store in the end, though nobody waits for them. */
export interface Persistence {
  /**
   * Takes a step. If the store is away, this resolves after the first failure, and the step is repeated until it succeeds, or
   * until {@link stop} says.
   *
   * @param what names the step in the log, with the payment
   * @returns true if the step is known to be done.
   */
  persist(what: What, name: RecordName, step: () => Promise<void>): Promise<boolean>;
  /** How many steps have failed and are repeated now: what they write is in the memory of this process alone. */
  waiting(): number;
  /**
   * Tries every open step at once, again and again until `over` aborts, and a last time. Resolves when all have ended, also those whose
   * first try was under way.
   *
   * @param over without it, each is tried a last time at once
   */
  stop(over?: AbortSignal): Promise<void>;
}

/** What {@link Persistence.persist} is given. */
interface Step {
  readonly what: What;
  readonly name: RecordName;
  readonly step: () => Promise<void>;
}

const BACKOFF = { first: 100, most: 2_000 };
const WRITTEN = 'the record of a payment is written after all, or nothing is left to write';

export function createPersistence(
  records: Pick<MoneyRecords, 'idKey'>,
  ambient: Ambient,
  logger: Logger,
): Persistence {
  const open = new Set<Promise<unknown>>();
  const stopping = new AbortController();
  let over = new AbortController().signal;
  let waiting = 0;

  /** @param told is what the log says of the step, with the payment's id once the store has said it */
  const tryOn = async (told: { what: What }, step: () => Promise<void>): Promise<boolean> => {
    for (let tries = 0; ; tries += 1) {
      const isLast = over.aborted;
      const wakes = stopping.signal.aborted ? over : stopping.signal;
      await ambient.sleep(backoff(BACKOFF, tries, ambient.random), wakes);
      try {
        await step();
        return true;
      } catch (err) {
        if (!isLast) continue;
        logger.error({ err, ...told }, 'stopped before the record of a payment could be written');
        return false;
      }
    }
  };

  const track = <T>(work: Promise<T>): Promise<T> => {
    const tracked = work.finally(() => open.delete(tracked));
    open.add(tracked);
    return tracked;
  };

  /** Repeats a step that has failed, and says when there is nothing left to write. */
  const goOn = async ({ what, name, step }: Step, err: unknown): Promise<void> => {
    const told = { what, clientId: name.clientId, paymentId: undefined as string | undefined };
    waiting += 1;
    // The store that took no step may say no id either, and the step waits for neither.
    const isTold = paymentIdOf(records, name).then((paymentId) => {
      told.paymentId = paymentId;
      logger.warn({ err, ...told, waiting }, 'the record of a payment could not be written, trying on');
    });
    const isDone = await tryOn(told, step);
    waiting -= 1;
    if (!isDone) return;
    await isTold;
    told.paymentId ??= await paymentIdOf(records, name);
    logger.info({ ...told, waiting }, WRITTEN);
  };

  const take = async (one: Step): Promise<boolean> => {
    try {
      await one.step();
      return true;
    } catch (err) {
      void track(goOn(one, err));
      return false;
    }
  };

  return {
    persist: (what, name, step) => track(take({ what, name, step })),
    waiting: () => waiting,
    stop: async (given = AbortSignal.abort()) => {
      over = given;
      stopping.abort();
      while (open.size > 0) await Promise.all(open);
    },
  };
}
