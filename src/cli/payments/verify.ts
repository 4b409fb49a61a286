import { type Anchor, type JournalProblem, verifyJournal } from '../../money/journal/verify.ts';
import { EXIT, type ExitCode, print, readArguments, UsageError } from '../command.ts';
import { Progress } from './progress.ts';
import { clientsMeant, withRecords } from './records.ts';
import { verifyFile } from './verify-file.ts';

const OPTIONS = { client: { type: 'string' }, anchor: { type: 'string' }, file: { type: 'string' } } as const;

/** `pasarela payments verify`: checks the chain of the journal. */
export async function verifyPayments(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readArguments(args, OPTIONS);
  if (positionals.length > 0) throw new UsageError(`takes no argument, and got "${positionals.join(' ')}"`);
  const { client, file } = values;
  const anchor = anchorOf(values.anchor);
  if (file !== undefined) {
    if (client !== undefined || anchor !== undefined) throw new UsageError('--file takes no other option');
    return verifyExport(file);
  }
  if (anchor !== undefined && client === undefined) throw new UsageError('--anchor wants --client ID');
  return withRecords(async (records) => {
    const clients = await clientsMeant(records, client);
    if (clients.length === 0) print('The journal is empty.');
    let code: ExitCode = EXIT.done;
    for (const clientId of clients) {
      const progress = new Progress('lines');
      const verdict = await verifyJournal(records.journal, clientId, anchor, (read, all) =>
        progress.show(read, all),
      );
      progress.end();
      const { lines, last, digest, problem } = verdict;
      print(`Client ${clientId}: ${lines} ${lines === 1 ? 'line holds' : 'lines hold'}.`);
      if (last !== '') print(`  anchor: ${last}:${digest}`);
      if (problem === undefined) continue;
      print(`  ${wordsOf(problem)}`);
      code = EXIT.wrong;
    }
    return code;
  });
}

async function verifyExport(path: string): Promise<ExitCode> {
  const progress = new Progress('lines');
  const { lines, problem } = await verifyFile(path, (read) => progress.show(read, read));
  progress.end();
  print(`${lines} ${lines === 1 ? 'line holds' : 'lines hold'}.`);
  if (problem === undefined) return EXIT.done;
  print(
    problem.kind === 'torn'
      ? `Line ${problem.number} is the last and is not whole: the end is torn.`
      : `Line ${problem.number} does not hold: it was changed, or lines before it were taken out.`,
  );
  return EXIT.wrong;
}

function anchorOf(text: string | undefined): Anchor | undefined {
  if (text === undefined) return undefined;
  const [, id, digest] = /^(\d+-\d+):([\da-f]{24})$/.exec(text) ?? [];
  if (id !== undefined && digest !== undefined) return { id, digest };
  throw new UsageError('--anchor wants what an earlier verify has printed');
}

function wordsOf(problem: JournalProblem): string {
  switch (problem.kind) {
    case 'broken':
      return `Line ${problem.number} (${problem.id}, of ${new Date(problem.at).toISOString()}) does not hold: it was changed, or lines before it were taken out.`;
    case 'torn':
      return `The end is torn: ${problem.missing} of the last lines are missing, and those before hold.`;
    case 'headless':
      return 'The count beside the lines is gone, so that none of them can be tried.';
    case 'unknown-anchor':
      return 'The line of --anchor is not there, or is another: it was cut off as too old, the record was put back to an earlier state, or the journal has been written anew.';
  }
}
