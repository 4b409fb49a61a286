import { once } from 'node:events';
import { clock } from '../../common/clock.ts';
import { digestOf } from '../../money/journal.ts';
import { JournalEntries } from '../../money/journal-entries.ts';
import type { JournalLine } from '../../money/journal-store.ts';
import { firstLines, JOURNAL_PAGE } from '../../money/journal-verify.ts';
import type { MoneyRecords } from '../../money/record.ts';
import { CommandError, EXIT, type ExitCode, readArguments, remark, UsageError } from '../command.ts';
import { CursorFile } from '../cursor-file.ts';
import { CSV_HEADER, csvOf, jsonOf } from './entry-text.ts';
import { instant } from './instant.ts';
import { Progress } from './progress.ts';
import { clientsMeant, withRecords } from './records.ts';

/** How long to wait for new lines, in ms. */
const LOOK_EVERY_MS = 1_000;

const OPTIONS = {
  client: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  format: { type: 'string' },
  follow: { type: 'boolean' },
  state: { type: 'string' },
} as const;

interface Export {
  readonly records: MoneyRecords;
  readonly clientId: string;
  /** Only lines after this id; undefined for all. */
  readonly after: JournalLine | { readonly id: string } | undefined;
  /** Only lines before this time, in ms since the epoch. */
  readonly to: number;
  readonly isCsv: boolean;
  readonly progress: Progress;
}

/** `pasarela payments export`: writes the journal to standard output. */
export async function exportJournal(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readArguments(args, OPTIONS);
  const { client, from, to, format = 'jsonl', follow = false, state } = values;
  if (positionals.length > 0) throw new UsageError(`takes no argument, and got "${positionals.join(' ')}"`);
  if (format !== 'jsonl' && format !== 'csv') throw new UsageError('--format wants "jsonl" or "csv"');
  if (follow !== (state !== undefined))
    throw new UsageError('--follow wants --state FILE, and --state --follow');
  if (follow && to !== undefined) throw new UsageError('--follow takes no --to');
  const isCsv = format === 'csv';
  const range = { from: instant('--from', from), to: instant('--to', to) ?? Number.POSITIVE_INFINITY };
  return withRecords(async (records) => {
    const clients = await clientsMeant(records, client);
    if (state !== undefined) {
      const [clientId, ...others] = clients;
      if (clientId === undefined || others.length > 0) {
        throw new UsageError('--follow wants --client ID, as the journal has several clients or none');
      }
      await followJournal({ records, clientId, isCsv }, range.from, new CursorFile(state));
      return EXIT.done;
    }
    if (isCsv) await write(CSV_HEADER);
    const progress = new Progress('lines');
    const after = range.from === undefined ? undefined : justBefore(range.from);
    for (const clientId of clients) await run({ records, clientId, after, to: range.to, isCsv, progress });
    progress.end();
    return EXIT.done;
  });
}

/** An id that is before all lines of this time, and after all of the time before. */
const justBefore = (ms: number): { readonly id: string } => ({ id: `${ms - 1}-${Number.MAX_SAFE_INTEGER}` });

/**
 * Writes the lines that are there. The next page is read while one is written.
 *
 * @returns the last line that was written, or what it began after
 * @throws CommandError at a line that does not follow from the one before
 */
async function run({ records, clientId, after, to, isCsv, progress }: Export) {
  const entries = new JournalEntries(records, clientId);
  const { head, first } = await firstLines(records.journal, clientId);
  let [last, previous, count] = [after, digestBefore(after, head.base), 0];
  const read = (id: string) => records.journal.read(clientId, id, JOURNAL_PAGE);
  for (let page = last === undefined ? Promise.resolve(first) : read(last.id); ; ) {
    const lines = (await page).filter(({ id }) => Number.parseInt(id, 10) < to);
    const newest = lines.at(-1);
    if (newest === undefined) return last;
    page = read(newest.id);
    // What it rejects with is told when it is waited for.
    page.catch(() => {});
    let text = '';
    for (const entry of await entries.of(lines)) {
      if (previous !== undefined && digestOf(previous, entry.line) !== entry.line.digest) {
        await write(text);
        throw new CommandError(
          `Line ${entry.line.id} does not follow from the one before. pasarela payments verify says more.`,
        );
      }
      text += isCsv ? csvOf(entry) : `${jsonOf(entry, previous)}\n`;
      previous = entry.line.digest;
    }
    await write(text);
    last = newest;
    count += lines.length;
    progress.show(count, Math.max(count, head.written - head.cut));
  }
}

/** Undefined where an export begins at a time, and the line before is not known. */
const digestBefore = (after: Export['after'], base: string): string | undefined =>
  after === undefined ? base : 'digest' in after ? after.digest : undefined;

/** Goes on where the file says, until a signal. What was written is saved after it has been handed on. */
async function followJournal(
  { records, clientId, isCsv }: Pick<Export, 'records' | 'clientId' | 'isCsv'>,
  from: number | undefined,
  state: CursorFile,
): Promise<void> {
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  const progress = new Progress('lines');
  try {
    let after: Export['after'] = await placeIn(state.cursor, records, clientId);
    if (after === undefined && isCsv) await write(CSV_HEADER);
    after ??= from === undefined ? undefined : justBefore(from);
    remark(`Following the journal of ${clientId}. Ctrl-C ends it.`);
    while (!ending.signal.aborted) {
      const last: Export['after'] = await run({
        ...{ records, clientId, after, isCsv, progress },
        to: Number.POSITIVE_INFINITY,
      });
      if (last !== undefined && 'digest' in last && last !== after) state.save(`${last.id}-${last.digest}`);
      after = last;
      progress.end();
      await clock.sleep(LOOK_EVERY_MS, { signal: ending.signal }).catch(() => {});
    }
  } finally {
    await state.close();
  }
}

/** The line where an earlier run has ended. @throws CommandError where the journal does not have it, as it was */
async function placeIn(cursor: string | undefined, { journal }: MoneyRecords, clientId: string) {
  if (cursor === undefined) return undefined;
  const [, id = '', digest] = /^(\d+-\d+)-([\da-f]+)$/.exec(cursor) ?? [];
  const [line] = await journal.lines(clientId, [id]);
  if (line !== undefined && line.digest === digest) return line;
  throw new CommandError(
    'The journal does not hold the line where the last export ended: it was cut off as too old, the record was put back to an earlier state, or somebody has changed it. pasarela payments verify says more. Begin anew with another --state and --from.',
  );
}

async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain');
}
