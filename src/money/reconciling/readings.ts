import { z } from 'zod';
import { type BalanceReading, type Difference, type Movement, reconcile } from './compare.ts';
import type { Turn } from './in-turns.ts';
import type { ComparedAccount } from './movements.ts';

const ReadingShape = z.object({
  from: z.number(),
  to: z.number(),
  balances: z.record(z.string(), z.number()),
});
const ReadingsShape = z.object({
  baseline: ReadingShape,
  previous: ReadingShape.optional(),
  cursors: z.tuple([z.string(), z.string()]),
  open: z.array(z.string()),
});

/** What is kept from one comparison to the next. */
export interface Readings {
  readonly baseline: BalanceReading;
  /** Undefined until a second reading has been made. */
  readonly previous?: BalanceReading | undefined;
  /** Of the event log, when the two were read. */
  readonly cursors: readonly [string, string];
  /** Payments that were open at the baseline, or have been since. */
  readonly open: readonly string[];
}

/** Readings as they are kept in JSON. @throws for a value that is none */
export const readReadings = (kept: unknown): Readings => ReadingsShape.parse(kept);

/** The balances as they read now, and where the event log stood before they were read. */
export interface Look {
  readonly cursor: string;
  readonly reading: BalanceReading;
  readonly accounts: readonly ComparedAccount[];
}

/** What is known to have moved since a baseline, and which payments are open, or were since then. */
export interface Gathered {
  readonly movements: readonly Movement[];
  readonly open: readonly string[];
  /** Payments that may have moved since then, and of which nothing tells how much: they are in no movement. */
  readonly amountUnknown: readonly string[];
}

/**
 * The readings to begin with.
 *
 * @param open payments that were open before the balances were read: the money of each may be in them or not
 */
export const firstReadings = ({ cursor, reading }: Look, open: readonly string[]): Readings => ({
  baseline: reading,
  cursors: [cursor, cursor],
  open,
});

/** Compares a new reading with those before it. */
export async function nextReadings(
  kept: Readings,
  { cursor, reading }: Look,
  { movements, open }: Gathered,
  marginMs: number,
  turn: Turn,
): Promise<{ readonly readings: Readings; readonly differences: readonly Difference[] }> {
  const { baseline, previous } = kept;
  const [first, second] = kept.cursors;
  const before = { baseline, previous };
  const { kept: next, differences } = await reconcile(before, reading, movements, marginMs, turn);
  const cursors = [next.baseline === previous ? second : first, cursor] as const;
  return { readings: { ...next, cursors, open }, differences };
}
