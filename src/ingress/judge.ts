import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { Lru } from '../common/lru.ts';
import { rootReason } from '../common/root-reason.ts';
import type { Appended } from '../events/log.ts';
import type { Decider, Verdict } from './decider.ts';
import type { Delivery } from './decode.ts';

interface Credit {
  readonly clientId: string;
  readonly transactionId: string | undefined;
  /** What tells a delivery of the same from that of another. */
  readonly identity: string;
  /** The envelope as it came. */
  readonly text: string;
}

export interface Judge {
  /**
   * Asks the decider about an SPEI credit. What it refuses is accepted where a refund of this gateway has returned the money, and is
   * undecided while such a refund may yet move. It is undecided too where the sender has left: a 422 that nobody hears returns nothing, and
   * a credit that is known as refused is not refunded. That refusal counts at the next delivery.
   *
   * @param isHeard whether the sender still waits for the answer
   * @returns undefined where nothing is decided
   * @throws {RecordsUnavailableError} if nobody can say whether there is a refund
   */
  ask(credit: Credit, isHeard: () => boolean): Promise<Verdict | undefined>;
  close(): Promise<void>;
}

/** Returns what a refund of a credit by this gateway may have done; undefined without one. */
export type RefundOf = (clientId: string, transactionId: string) => Promise<'done' | 'open' | undefined>;

/** How many refusals that nobody heard are kept, and for how long, in milliseconds. */
const KEPT_UNHEARD = 1_000;
const UNHEARD_MS = 600_000;

export function createJudge(decider: Decider, refundOf: RefundOf, logger: Logger): Judge {
  const unheard = new Lru<{ readonly verdict: Verdict; readonly at: number }>(KEPT_UNHEARD);
  const verdictOn = async (key: string, text: string): Promise<Verdict | undefined> => {
    const before = unheard.get(key);
    unheard.delete(key);
    if (before !== undefined && clock.monotonic() - before.at < UNHEARD_MS) return before.verdict;
    return decider.ask(text);
  };
  return {
    close: () => decider.close(),
    async ask({ clientId, transactionId, identity, text }, isHeard) {
      const key = `${clientId} ${identity}`;
      const verdict = await verdictOn(key, text);
      if (verdict?.decision !== 'REJECTED') return verdict;
      const fields = { clientId, transactionId };
      const refund = transactionId === undefined ? undefined : await refundOf(clientId, transactionId);
      if (refund === 'done') {
        logger.warn(fields, 'a credit that was refused has been refunded, and was accepted');
        return { decision: 'ACCEPTED' };
      }
      if (refund === 'open') {
        logger.warn(fields, 'a credit that was refused has a refund under way, and is undecided');
        return undefined;
      }
      if (isHeard()) return verdict;
      logger.warn(fields, 'a credit was refused after its sender had left, and is undecided');
      unheard.set(key, { verdict, at: clock.monotonic() });
      return undefined;
    },
  };
}

/**
 * Whether what the log has stored is the refusal of this very credit. A refusal that version 0.2.0 stored names no credit: there the contents
 * must be those that were judged.
 */
export function isItsRefusal(
  { answer, conflict }: Appended,
  { transactionId }: Pick<Delivery, 'transactionId'>,
): boolean {
  if (answer.status !== 422) return false;
  const refused = answer.transactionId?.toLowerCase();
  return refused === undefined ? !conflict : refused === transactionId?.toLowerCase();
}

/**
 * Whether a 422 might return the money of a refused credit a second time. To be asked once the refusal is stored: a refund asks for that
 * once it is recorded, so that one of the two sees the other.
 */
export async function mayBeRefunded(
  refundOf: RefundOf,
  logger: Logger,
  named: { readonly clientId: string; readonly transactionId: string | undefined },
): Promise<boolean> {
  const { clientId, transactionId } = named;
  if (transactionId === undefined) return false;
  try {
    if ((await refundOf(clientId, transactionId)) === undefined) return false;
    logger.error(named, 'a credit that was refused has a refund as well');
  } catch (error) {
    const fields = { ...named, error: String(error), reason: rootReason(error) };
    logger.warn(
      fields,
      'a credit that was refused got 503, as the record of payments cannot tell of a refund',
    );
  }
  return true;
}
