import type { Logger } from '../common/logger.ts';
import type { Ambient } from './ambient.ts';
import { backoff } from './backoff.ts';

/** Takes steps that must reach the store in the end, though nobody waits for them. */
export interface Persistence {
  /**
   * Takes a step. If the store is away, this resolves after the first failure, and the step is repeated until it succeeds, or
   * until {@link stop} says.
   *
   * @param what names the step in the log.
   * @returns true if the step is known to be done.
   */
  persist(what: string, step: () => Promise<void>): Promise<boolean>;
  /**
   * Tries every open step at once, again and again until `over` aborts, and a last time. Resolves when all have ended, also those whose
   * first try was under way.
   *
   * @param over without it, each is tried a last time at once
   */
  stop(over?: AbortSignal): Promise<void>;
}

const BACKOFF = { first: 100, most: 2_000 };

export function createPersistence(ambient: Ambient, logger: Logger): Persistence {
  const open = new Set<Promise<unknown>>();
  const stopping = new AbortController();
  let over = new AbortController().signal;

  const tryOn = async (what: string, step: () => Promise<void>): Promise<void> => {
    for (let tries = 0; ; tries += 1) {
      const isLast = over.aborted;
      const wakes = stopping.signal.aborted ? over : stopping.signal;
      await ambient.sleep(backoff(BACKOFF, tries, ambient.random), wakes);
      try {
        return await step();
      } catch (err) {
        if (!isLast) continue;
        logger.error({ err, what }, 'stopped before the record of a payment could be written');
        return;
      }
    }
  };

  const track = <T>(work: Promise<T>): Promise<T> => {
    const tracked = work.finally(() => open.delete(tracked));
    open.add(tracked);
    return tracked;
  };

  const take = async (what: string, step: () => Promise<void>): Promise<boolean> => {
    try {
      await step();
      return true;
    } catch (err) {
      logger.warn({ err, what }, 'the record of a payment could not be written, trying on');
      void track(tryOn(what, step));
      return false;
    }
  };

  return {
    persist: (what, step) => track(take(what, step)),
    stop: async (given = AbortSignal.abort()) => {
      over = given;
      stopping.abort();
      while (open.size > 0) await Promise.all(open);
    },
  };
}
