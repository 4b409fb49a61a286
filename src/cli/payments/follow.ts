import { onToldToEnd } from '../../app/lifecycle.ts';
import { type MoneyRecords, RecordsUnavailableError } from '../../money/record.ts';
import { CommandError, remark, syncOut } from '../command.ts';
import { CursorFile } from '../cursor-file.ts';
import { Attempts, rest } from '../forward/attempts.ts';
import { CSV_HEADER } from './entry-text.ts';
import { justBefore, type Place, partsOf } from './export-parts.ts';
import { Progress } from './progress.ts';
import { write, written } from './write.ts';

/** How long to wait for new lines, in ms. */
const LOOK_EVERY_MS = 1_000;

interface Following {
  readonly records: MoneyRecords;
  readonly clientId: string;
  readonly isCsv: boolean;
  /** Where to begin if the file holds no place, in ms since the epoch; undefined for the oldest line. */
  readonly from: number | undefined;
  /** The file that keeps the place up to which lines were written. */
  readonly stateFile: string;
}

/**
 * Goes on from the place in the file, until a signal. It saves the place of lines once the pipe, or the disk, has them. While
 * the store is away it asks again.
 *
 * @throws CommandError if lines are missing or not intact, or if the file cannot be used
 */
export async function followJournal(following: Following): Promise<void> {
  const { records, clientId, isCsv, from, stateFile } = following;
  const ending = new AbortController();
  onToldToEnd(() => ending.abort());
  const state = new CursorFile(stateFile);
  const progress = new Progress('lines');
  try {
    let after: Place | undefined = await placeIn(state, records, clientId, stateFile);
    if (after === undefined && isCsv) await write(CSV_HEADER);
    after ??= from === undefined ? undefined : justBefore(from);
    remark(`Following the journal of ${clientId}. Ctrl-C ends it.`);
    for (const attempts = new Attempts(ending.signal); !ending.signal.aborted; ) {
      try {
        for await (const { text, last, done, all } of partsOf({ records, clientId, after, isCsv })) {
          await write(text);
          // A full pipe leaves what fits in the memory of this process, which may be killed before the reader comes to it.
          await written();
          await syncOut();
          after = last;
          state.save(`${last.id}-${last.digest}`);
          progress.show(done, all);
          if (ending.signal.aborted) break;
        }
        attempts.succeeded();
      } catch (error) {
        if (!(error instanceof RecordsUnavailableError)) throw error;
        progress.end();
        await attempts.failed(error.message);
        continue;
      }
      progress.end();
      await rest(LOOK_EVERY_MS, ending.signal);
    }
  } finally {
    progress.end();
    await state.close();
  }
}

/** Returns the line at which an earlier run ended. @throws CommandError if the journal lacks it, or has another there */
async function placeIn({ cursor }: CursorFile, { journal }: MoneyRecords, clientId: string, path: string) {
  if (cursor === undefined) return undefined;
  const [, id, digest] = /^(\d+-\d+)-([\da-f]+)$/.exec(cursor) ?? [];
  if (id === undefined) {
    throw new CommandError(
      `${path} holds no place in a journal. Name another file with --state, and begin there with --from.`,
    );
  }
  const [line] = await journal.lines(clientId, [id]);
  if (line !== undefined && line.digest === digest) return line;
  throw new CommandError(
    'The journal does not hold the line where the last export ended: it was cut off as too old, the record was put back to an earlier state, or somebody has changed it. pasarela payments verify says more. Begin anew with another --state and --from.',
  );
}
