import type { MoneyRecords } from '../../money/record.ts';
import { EXIT, type ExitCode, readArguments, refuseArguments, UsageError } from '../command.ts';
import { CSV_HEADER } from './entry-text.ts';
import { justBefore, partsOf } from './export-parts.ts';
import { followJournal } from './follow.ts';
import { isPutBack, remarkHolds } from './hold-text.ts';
import { Progress } from './progress.ts';
import { clientsMeant, withRecords } from './records.ts';
import { span } from './span.ts';
import { write } from './write.ts';

const OPTIONS = {
  client: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  format: { type: 'string' },
  follow: { type: 'boolean' },
  state: { type: 'string' },
} as const;

/** `pasarela payments export`: writes the journal to standard output. */
export async function exportJournal(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readArguments(args, OPTIONS);
  const { client, format = 'jsonl', follow = false, state: stateFile } = values;
  refuseArguments(positionals);
  if (format !== 'jsonl' && format !== 'csv') throw new UsageError('--format wants "jsonl" or "csv"');
  if (follow !== (stateFile !== undefined))
    throw new UsageError('--follow wants --state FILE, and --state --follow');
  if (follow && values.to !== undefined) throw new UsageError('--follow takes no --to');
  const isCsv = format === 'csv';
  const { from, to } = span(values);
  return withRecords(async (records) => {
    await remarkHolds(records, isPutBack);
    const clients = await clientsMeant(records, client);
    if (stateFile === undefined) {
      await exportAll(records, clients, { from, to, isCsv });
      return EXIT.done;
    }
    const [clientId, ...others] = clients;
    if (clientId === undefined || others.length > 0) {
      throw new UsageError('--follow wants --client ID, as the journal has several clients or none');
    }
    await followJournal({ records, clientId, isCsv, from, stateFile });
    return EXIT.done;
  });
}

/** Exports one client after another. @param range in ms since the epoch */
async function exportAll(
  records: MoneyRecords,
  clients: readonly string[],
  {
    from,
    to,
    isCsv,
  }: { readonly from: number | undefined; readonly to: number | undefined; readonly isCsv: boolean },
): Promise<void> {
  if (isCsv) await write(CSV_HEADER);
  const after = from === undefined ? undefined : justBefore(from);
  const range = to === undefined ? {} : { to };
  const progress = new Progress('lines');
  try {
    for (const clientId of clients) {
      for await (const { text, done, all } of partsOf({ records, clientId, after, ...range, isCsv })) {
        await write(text);
        progress.show(done, all);
      }
    }
  } finally {
    progress.end();
  }
}
