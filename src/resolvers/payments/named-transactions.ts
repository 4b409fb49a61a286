import { Lru } from '../../common/lru.ts';
import { UpstreamError } from '../../upstream/call/errors.ts';
import type { Rest } from '../../upstream/call/rest.ts';
import { isTransaction, readNamedTransaction, type Transaction } from '../../upstream/transactions.ts';
import { cepOf, mayHaveReceipt } from '../cep.ts';
import { comparable } from './evidence-match.ts';
import { MOST_IDS } from './sightings.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/**
 * The service may show a transaction later than an event names it. So an id that leads to none is read again after a minute, then each time
 * its event has become twice as old, until the event is ten minutes old. A transaction that may be a penny validation, and shows no receipt
 * yet, is read again likewise, until its event is an hour old.
 */
const READ_AGAIN_MS = MINUTE;
const OUTRUN_MS = 10 * MINUTE;
/** A transaction that was read is read again after an hour; not where its event was an hour old by then. */
const MAY_CHANGE_MS = HOUR;
/** Longer than a payment is looked for: what was read is not read again, so that each look gets further. */
const KEPT_MS = 72 * HOUR;
/** A refusal in another form than the documented one may be a proxy's. It counts once it has come again, so much later, and for a minute. */
const DOUBTED_MS = 5_000;
/** An id at whose reading the service failed, or that it did not let be read, is left alone for half a minute, then for twice as long each time, up to an hour. */
const FIRST_REST_MS = MINUTE / 2;
const LONGEST_REST_MS = HOUR;

/** What is known of an id: null where it is no transaction of the client's, or one that can be no payment. */
interface Known {
  readonly transaction: Transaction | null;
}

/** Whether it may be a penny validation whose receipt the service does not show yet: until then it is taken for money out. */
const lacksReceipt = (read: Transaction): boolean => mayHaveReceipt(read) && cepOf(read) === null;

interface Failure {
  readonly times: number;
  /** When it may be read again, in ms since the epoch. */
  readonly until: number;
}

/** The transactions of one client that events name, as far as payments are compared with them. */
export class NamedTransactions {
  readonly #read = new Lru<Known>(MOST_IDS, { ttl: KEPT_MS });
  readonly #failing = new Lru<Failure>(MOST_IDS, { ttl: KEPT_MS });

  /** When an id was refused first in another form than the documented one, in ms since the epoch. */
  readonly #doubted = new Lru<number>(MOST_IDS, { ttl: KEPT_MS });

  /** What was read, and holds still; undefined where there is nothing. */
  known(id: string): Known | undefined {
    return this.#read.get(id);
  }

  /** Whether this id could not be read when it was read last. */
  hasFailed(id: string): boolean {
    return this.#failing.has(id);
  }

  /** Whether this id could not be read, so that it is not to be read yet. @param now in ms since the epoch */
  isResting(id: string, now: number): boolean {
    const leftMs = (this.#failing.get(id)?.until ?? 0) - now;
    // The clock may have been set back since.
    return leftMs > 0 && leftMs <= LONGEST_REST_MS;
  }

  /**
   * @param age of the event that names it, in ms
   * @param now in ms since the epoch
   * @returns what is known now; `untold` where the service does not let it be read, or somebody on the way may have refused it, and `failed`
   *   where it fails at this id: neither says anything of other ids
   * @throws what the service throws
   */
  async read(id: string, age: number, rest: Rest, now: number): Promise<Known | 'untold' | 'failed'> {
    const read = await readNamedTransaction(rest, id).catch((error: unknown) => {
      if (!(error instanceof UpstreamError)) throw error;
      const { code, status, dispatched } = error;
      // What an event names need not be a transaction: the service says so, and not a proxy with a wrong route.
      if (code === 'REFUSED' && error.isServices) return null;
      if (code === 'REFUSED') return this.#isRefusedAgain(id, now) ? 'absent' : 'untold';
      if (code === 'FORBIDDEN' || code === 'UPSTREAM_INVALID') {
        this.#failed(id, now);
        return 'untold';
      }
      const isOwnFailure = status !== undefined || (code === 'UPSTREAM_TIMEOUT' && dispatched);
      if (isOwnFailure) this.#failed(id, now);
      if (status !== undefined) return 'failed';
      throw error;
    });
    if (read === 'untold' || read === 'failed') return read;
    this.#failing.delete(id);
    if (read === 'absent') {
      this.#read.set(id, { transaction: null }, { ttl: READ_AGAIN_MS });
      return { transaction: null };
    }
    this.#doubted.delete(id);
    const transaction = isTransaction(read) ? comparable(read) : null;
    const settledMs = isTransaction(read) ? MAY_CHANGE_MS : OUTRUN_MS;
    const againMs = isTransaction(read) && !lacksReceipt(read) ? HOUR : Math.max(READ_AGAIN_MS, age);
    this.#read.set(id, { transaction }, { ttl: age > settledMs ? KEPT_MS : againMs });
    return { transaction };
  }

  #isRefusedAgain(id: string, now: number): boolean {
    const since = this.#doubted.get(id);
    // The clock may have been set back since.
    if (since === undefined || since > now) this.#doubted.set(id, now);
    return since !== undefined && now - since >= DOUBTED_MS;
  }

  #failed(id: string, now: number): void {
    const times = (this.#failing.get(id)?.times ?? 0) + 1;
    const restMs = Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** (times - 1));
    this.#failing.set(id, { times, until: now + restMs });
  }
}
