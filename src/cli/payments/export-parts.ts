import { JournalEntries } from '../../money/journal/entries.ts';
import { digestOf } from '../../money/journal/journal.ts';
import type { JournalLine } from '../../money/journal/store.ts';
import { firstLines, JOURNAL_PAGE } from '../../money/journal/verify.ts';
import type { MoneyRecords } from '../../money/record.ts';
import { CommandError } from '../command.ts';
import { csvOf, jsonOf } from './entry-text.ts';

/** Where an export begins: after a line with its digest, or after an id. */
export type Place = JournalLine | { readonly id: string };

interface Wanted {
  readonly records: MoneyRecords;
  readonly clientId: string;
  /** Only lines after this one; undefined for all. */
  readonly after: Place | undefined;
  /** Only lines before this time, in ms since the epoch; all if it is absent. */
  readonly to?: number;
  readonly isCsv: boolean;
}

/** Consecutive lines, in the form of the export. */
interface Part {
  readonly text: string;
  /** The last line of `text`. */
  readonly last: JournalLine;
  /** How many lines have been read, and how many there are. */
  readonly done: number;
  readonly all: number;
}

/** Returns an id before all lines of this time, and after all lines of earlier times. */
export const justBefore = (ms: number): Place => ({
  // Ids begin with no sign.
  id: ms <= 0 ? '0-0' : `${ms - 1}-${Number.MAX_SAFE_INTEGER}`,
});

/**
 * Yields the lines of the journal, including those that are added meanwhile. It reads the next ones while some are being
 * written.
 *
 * @throws CommandError at a line that does not follow from the one before, or that this version cannot read. The lines before
 * it are yielded first.
 */
export async function* partsOf({
  records,
  clientId,
  after,
  to = Number.POSITIVE_INFINITY,
  isCsv,
}: Wanted): AsyncGenerator<Part, void> {
  const { journal } = records;
  const entries = new JournalEntries(records, clientId);
  const read = (id: string) => journal.read(clientId, id, JOURNAL_PAGE);
  const begin = after === undefined ? await firstLines(journal, clientId) : undefined;
  const { written, cut, base } = begin?.head ?? (await journal.head(clientId));
  let page = after === undefined ? Promise.resolve(begin?.first ?? []) : read(after.id);
  let previous = after === undefined ? base : 'digest' in after ? after.digest : undefined;
  for (let done = 0; ; ) {
    const lines = (await page).filter(({ id }) => Number.parseInt(id, 10) < to);
    const newest = lines.at(-1);
    if (newest === undefined) return;
    page = read(newest.id);
    // A rejection is thrown when it is awaited.
    page.catch(() => {});
    const held = lines.slice(0, holding(previous, lines));
    const told = await entries.of(held);
    const known = held.findIndex((line, index) => told[index]?.line !== line);
    const shown = known === -1 ? told : told.slice(0, known);
    let text = '';
    for (const entry of shown) {
      text += isCsv ? csvOf(entry) : `${jsonOf(entry, previous)}\n`;
      previous = entry.line.digest;
    }
    done += shown.length;
    const last = held[shown.length - 1];
    if (last !== undefined) yield { text, last, done, all: Math.max(done, written - cut) };
    const wrong = lines[shown.length];
    if (wrong !== undefined) throw new CommandError(problemOf(wrong, shown.length < held.length));
  }
}

/**
 * Returns how many of the lines follow, each from the one before. @param previous digest of the line before; undefined if it
 * is not known
 */
function holding(previous: string | undefined, lines: readonly JournalLine[]): number {
  const broken = lines.findIndex((line, index) => {
    const before = index === 0 ? previous : lines[index - 1]?.digest;
    return before !== undefined && digestOf(before, line) !== line.digest;
  });
  return broken === -1 ? lines.length : broken;
}

const problemOf = ({ id }: JournalLine, isUnknown: boolean): string =>
  isUnknown
    ? `Line ${id} is of a form that this version does not know: a newer one has written it. Export with that version.`
    : `Line ${id} does not follow from the one before. pasarela payments verify says more.`;
