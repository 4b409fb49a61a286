import { z } from 'zod';
import { clock } from '../../common/clock.ts';
import type { Logger } from '../../common/logger.ts';
import type { Ambient } from '../ambient.ts';
import type { MoneyRecords } from '../record.ts';
import type { Difference } from './compare.ts';
import type { Turn } from './in-turns.ts';
import { signedPesos } from './movements.ts';
import type { ReadingStore } from './reading-store.ts';
import {
  firstReadings,
  type Gathered,
  type Look,
  nextReadings,
  type Readings,
  readReadings,
} from './readings.ts';

/** How long the readings of one client are taken for, in ms. What {@link ReconcilingCalls} do ends sooner. */
const LEASE_MS = 10 * 60_000;
/** All that is read for one comparison is read by then, in ms. */
const MOST_MS = 5 * 60_000;
/** After a comparison that failed, in ms. */
const RETRY_MS = 5 * 60_000;
/** How long a client's comparison may be late before one that fails is called overdue, in ms. */
const LATE_MS = 2 * 60 * 60_000;
/** Between two looks at what is due, in ms. */
const LONGEST_PAUSE_MS = 15_000;
const SHORTEST_PAUSE_MS = 100;
/** What a look at what is due may be of the time between two comparisons. */
const PAUSES = 20;

/** What payments of the record are read by. */
export type ReconcilingBook = Pick<MoneyRecords, 'search' | 'read'>;

/** The log no longer holds the events since the baseline, or they are too many: what has moved since cannot be told. */
export class BaselineLostError extends Error {
  override readonly name = 'BaselineLostError';
}

/** The service, the log of events and the record, as the balances of one client are compared by them. Each call ends when the signal aborts. */
export interface ReconcilingCalls {
  /** Lets what somebody waits for go first. */
  readonly turn: Turn;
  /** Reads which payments are open. What is open is read before the balances: what is settled by then is in them. */
  open(book: ReconcilingBook, signal: AbortSignal): Promise<readonly string[]>;
  /** Reads the balances of all accounts. */
  look(signal: AbortSignal): Promise<Look>;
  /**
   * Reads what is known to have moved since the baseline.
   *
   * @throws {BaselineLostError} where that cannot be told
   */
  gather(look: Look, kept: Readings, book: ReconcilingBook, signal: AbortSignal): Promise<Gathered>;
}

/**
 * What came of a comparison: `first` where there was nothing to compare with yet, `overdue` where it failed and the last reading of
 * this client, by whichever process, is older than it should be by {@link LATE_MS}.
 */
export type ComparisonOutcome = 'compared' | 'first' | 'failed' | 'overdue';

export interface ReconcilingOptions {
  readonly everyMs: number;
  /** By how much the clocks of the gateway and of the service may differ, with the way between them, in ms. */
  readonly marginMs: number;
}

interface Parts extends ReconcilingOptions {
  readonly records: ReconcilingBook & { readonly readings: ReadingStore };
  readonly ambient: Ambient;
  readonly logger: Logger;
  readonly onComparison: (outcome: ComparisonOutcome) => void;
  readonly onDifference: (direction: 'more' | 'less') => void;
}

/** Who compares, and since when, in ms since the epoch. */
interface Comparer {
  readonly owner: string;
  readonly since: number;
}

/** What is kept of a client: its readings, and what was found and is not told yet. */
interface Kept {
  readonly readings: Readings;
  readonly untold: readonly Untold[];
}

/** A difference, and how many payments of unknown amount it may be of. */
interface Untold extends Difference {
  readonly amountUnknown: number;
}

const UntoldShape = z.array(
  z.object({
    ...{ account: z.string(), cents: z.number(), from: z.number(), to: z.number() },
    amountUnknown: z.number().default(0),
  }),
);

/**
 * Compares the balances of clients with what the gateway knows to have moved, one client after another, until the signal aborts. Of
 * all processes on one store, one compares each client, once in `everyMs`.
 *
 * A difference is kept with the readings before it is told: a process that dies in between leaves it to the next, which may tell it a
 * second time.
 */
export async function reconcileBalances(
  clients: ReadonlyMap<string, ReconcilingCalls>,
  parts: Parts,
  stopping: AbortSignal,
): Promise<void> {
  const { ambient, everyMs, logger } = parts;
  const self = { owner: ambient.newId(), since: ambient.now() };
  const pause = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, everyMs / PAUSES));
  while (!stopping.aborted) {
    for (const [clientId, calls] of clients) {
      if (stopping.aborted) return;
      await compareWhenDue(clientId, calls, self, parts, stopping).catch((err: unknown) =>
        logger.debug({ err }, 'the readings of balances could not be reached; they are later'),
      );
    }
    await ambient.sleep(pause * (1 + ambient.random()), stopping);
  }
}

async function compareWhenDue(
  clientId: string,
  calls: ReconcilingCalls,
  { owner, since }: Comparer,
  parts: Parts,
  stopping: AbortSignal,
): Promise<void> {
  const { records, ambient, logger, everyMs, onComparison } = parts;
  const { readings } = records;
  const takenAt = ambient.now();
  const taken = await readings.take(clientId, owner, LEASE_MS);
  if (taken === undefined) return;
  const over = AbortSignal.any([stopping, clock.timeoutSignal(MOST_MS)]);
  const kept = keptIn(taken.text, clientId, logger);
  try {
    const { next, outcome } = await compared(clientId, calls, kept, parts, over);
    const dueMs = Math.max(0, everyMs - (ambient.now() - takenAt));
    const { untold } = next;
    // Nobody else gets what is to be told before it is told.
    const isOwn = await readings.keep(
      clientId,
      owner,
      JSON.stringify(next),
      untold.length === 0 ? dueMs : LEASE_MS,
    );
    if (!isOwn) return;
    onComparison(outcome);
    if (untold.length === 0) return;
    for (const difference of untold) tell(clientId, difference, parts);
    await readings.keep(clientId, owner, JSON.stringify({ ...next, untold: [] }), dueMs);
  } catch (err) {
    const retryMs = stopping.aborted ? 0 : Math.min(everyMs, RETRY_MS);
    await readings.keep(clientId, owner, undefined, retryMs).catch(() => false);
    if (stopping.aborted) return;
    const { previous, baseline } = kept?.readings ?? {};
    const lastAt = (previous ?? baseline)?.to ?? since;
    onComparison(ambient.now() - lastAt > everyMs + LATE_MS ? 'overdue' : 'failed');
    logger.warn({ err, clientId }, 'balances could not be compared with what has moved; they are later');
  }
}

async function compared(
  clientId: string,
  calls: ReconcilingCalls,
  kept: Kept | undefined,
  { records, marginMs, logger }: Parts,
  signal: AbortSignal,
): Promise<{ readonly next: Kept; readonly outcome: ComparisonOutcome }> {
  const begin = async () => {
    const open = await calls.open(records, signal);
    const readings = firstReadings(await calls.look(signal), open);
    return { next: { readings, untold: kept?.untold ?? [] }, outcome: 'first' } as const;
  };
  if (kept === undefined) return begin();
  const look = await calls.look(signal);
  let gathered: Gathered;
  try {
    gathered = await calls.gather(look, kept.readings, records, signal);
  } catch (err) {
    if (!(err instanceof BaselineLostError)) throw err;
    logger.warn({ err, clientId }, 'the comparison of balances begins anew: what has moved cannot be told');
    return begin();
  }
  const { readings, differences } = await nextReadings(kept.readings, look, gathered, marginMs, calls.turn);
  const outcome = kept.readings.previous === undefined ? 'first' : 'compared';
  const amountUnknown = gathered.amountUnknown.length;
  const found = differences.map((difference): Untold => ({ ...difference, amountUnknown }));
  return { next: { readings, untold: [...kept.untold, ...found] }, outcome };
}

/** Undefined where nothing is kept, and where it is of a form that this version does not read: another one has left it. */
function keptIn(text: string | undefined, clientId: string, logger: Logger): Kept | undefined {
  if (text === undefined) return undefined;
  try {
    const { readings, untold } = Object(JSON.parse(text));
    return { readings: readReadings(readings), untold: UntoldShape.parse(untold) };
  } catch (err) {
    logger.warn({ err, clientId }, 'the comparison of balances begins anew: what was kept cannot be read');
    return undefined;
  }
}

/** One line for each, with what a person needs to look it up, and nothing of whom it is about. */
function tell(clientId: string, { account, cents, from, to, amountUnknown }: Untold, parts: Parts): void {
  const window = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  parts.logger.warn(
    { clientId, account, amount: signedPesos(cents), currency: 'MXN', ...window, amountUnknown },
    'a balance has changed by what the gateway does not know',
  );
  parts.onDifference(cents > 0 ? 'more' : 'less');
}
