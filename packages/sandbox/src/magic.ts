import type { MiddlewareHandler } from 'hono';
import { ambient } from './ambient.ts';
import { preconditionFailed } from './errors.ts';
import { spoil } from './faults.ts';
import type { Env } from './http.ts';
import type { Instrument } from './state.ts';

/** What becomes of a transfer that says so. */
type Magic = 'refused' | 'failed' | 'returned' | 'late' | 'stuck' | 'late answer' | 'lost answer';

/** What a transfer says it by: words in its concept or of its receiver, or its amount in centavos (docs/sandbox.md, "Magic values"). */
const MAGIC: readonly (readonly [magic: Magic, words: string, amount: bigint])[] = [
  ['refused', 'refused transfer', 109_101n],
  ['failed', 'failed transfer', 109_102n],
  ['returned', 'returned transfer', 109_103n],
  ['late', 'late transfer', 109_104n],
  ['stuck', 'stuck transfer', 109_105n],
  ['late answer', 'late answer', 109_106n],
  ['lost answer', 'lost answer', 109_107n],
];

/** Real ms. */
const LATE_ANSWER_MS = 2_000;

interface Transfer {
  readonly destination: Instrument;
  readonly description: string;
  readonly amount: bigint;
}

/** Whether an instrument's alias or its holder's name contains some words, given in lower case. */
export const says = ({ alias, detail }: Instrument, words: string): boolean =>
  `${alias} ${detail.holderName}`.toLowerCase().includes(words);

/** What a transfer says is to become of it; undefined for an ordinary one. */
export function magicOf({ destination, description, amount }: Transfer): Magic | undefined {
  const concept = description.toLowerCase();
  const row = MAGIC.find(
    ([, words, cents]) => amount === cents || concept.includes(words) || says(destination, words),
  );
  return row?.[0];
}

/** @throws ApiError FAILED_PRECONDITION for a transfer that says that it is to be refused. */
export function refuseByMagic(transfer: Transfer): void {
  if (magicOf(transfer) === 'refused') throw preconditionFailed('The account is not currently active.');
}

/** Answers late or not at all where the transfer that was performed says so. */
export const magicAnswers: MiddlewareHandler<Env> = async (c, next) => {
  await next();
  const performed = c.get('performed');
  const magic = performed === undefined ? undefined : magicOf(performed);
  if (magic === 'late answer') await ambient.sleep(LATE_ANSWER_MS);
  if (magic === 'lost answer') await spoil(c, 'reset-after-commit');
};
