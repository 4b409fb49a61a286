import type { StoredEvent } from '../events/log.ts';
import { UpstreamError } from '../upstream/errors.ts';
import type { Transaction } from '../upstream/transactions.ts';
import { decodeEvent } from './event.ts';
import { type CepUpdate, Receipt } from './receipt.ts';
import { selectFrom } from './stream.ts';

/** Waits for milliseconds; rejects when the signal is aborted. */
type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export interface CepWatch {
  readonly transactionId: string;
  /** The client's events. The log is attached before the first reading, so that nothing falls between. */
  readonly events: AsyncIterator<StoredEvent, undefined>;
  /** Reads the transaction afresh; null when the upstream does not know it (yet). */
  readonly read: () => Promise<Transaction | null>;
  /** Called before a message is shown: what an operation remembers is older than it. */
  readonly renew: () => void;
  readonly sleep: Sleep;
  /** Told of a reading that failed, where another is made later. */
  readonly onFailedRead: (error: UpstreamError) => void;
  readonly signal: AbortSignal;
}

const MINUTE = 60_000;
/** Waits before the next reading where no webhook comes (docs/upstream-api.md, "Retrieval schedule"). The last one is repeated. */
const POLLS = [1.5, 1.5, 1.5, 5, 5, 5, 15].map((minutes) => minutes * MINUTE);
/** Waits for a reading that lags behind a transaction just made. */
const LAGS = [250, 500, 1_000, 2_000, 4_000];

const RUNG = Symbol('rung');
const ENDED = Symbol('ended');

/**
 * A receipt's state now, then every change, until it is final.
 *
 * @throws BadInputError when there is no such transaction, or it has no receipt.
 * @throws UpstreamError when the first reading fails, and when the caller's token is no longer accepted.
 */
export async function* watchCep(watch: CepWatch): AsyncGenerator<CepUpdate, undefined> {
  const receipt = new Receipt(watch.transactionId);
  const finished = new AbortController();
  const signal = AbortSignal.any([watch.signal, finished.signal]);
  const alarm = (ms: number) =>
    watch.sleep(ms, signal).then(
      () => RUNG,
      () => ENDED,
    );
  // Only what concerns the receipt wakes the loop: on a busy client that is one message in thousands.
  const messages = selectFrom(watch.events, (stored) => {
    const event = decodeEvent(stored);
    return event.type === 'CEP' && receipt.concerns(event) ? event : undefined;
  });
  const nextMessage = () => {
    const step = messages.next();
    // It is awaited later than it may fail: until then the failure must not count as unhandled.
    step.catch(() => undefined);
    return step;
  };

  let message = nextMessage();
  let reading: Promise<symbol> = Promise.resolve(RUNG);
  let lags = 0;
  let polls = 0;
  try {
    while (!receipt.final) {
      const woken = await Promise.race([message, reading]);
      if (woken === ENDED) return;
      if (typeof woken !== 'symbol') {
        if (woken.done) return;
        message = nextMessage();
        const updates = receipt.hear(woken.value);
        if (updates.length > 0) watch.renew();
        yield* updates;
        continue;
      }
      yield* await takeReading(watch, receipt, lags >= LAGS.length);
      if (receipt.started) {
        reading = alarm(POLLS[Math.min(polls, POLLS.length - 1)] ?? MINUTE);
        polls += 1;
      } else {
        reading = alarm(LAGS[lags] ?? 0);
        lags += 1;
      }
    }
  } finally {
    finished.abort();
    await messages.return?.();
  }
}

/** A reading that fails once something has been shown is left to the next one, unless the caller may no longer read. */
async function takeReading(
  watch: CepWatch,
  receipt: Receipt,
  lastTry: boolean,
): Promise<readonly CepUpdate[]> {
  try {
    return receipt.read(await watch.read(), lastTry);
  } catch (error) {
    if (!(error instanceof UpstreamError) || !receipt.started) throw error;
    if (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN') throw error;
    watch.onFailedRead(error);
    return [];
  }
}
