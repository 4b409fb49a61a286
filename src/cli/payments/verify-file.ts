import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { Lru } from '../../common/lru.ts';
import { JournalEntries } from '../../money/journal/entries.ts';
import { digestOf, readLine } from '../../money/journal/journal.ts';
import { JOURNAL_PAGE } from '../../money/journal/verify.ts';
import { CommandError } from '../command.ts';
import { fieldsOf } from './entry-text.ts';

const Exported = z.looseObject({
  clientId: z.string(),
  paymentId: z.string().nullable(),
  line: z.object({
    previous: z.string().nullable(),
    id: z.string(),
    digest: z.string(),
    text: z.string(),
  }),
});

/**
 * The result of verifying a file.
 *
 * - `broken`: this line was changed, or lines before it were removed.
 * - `torn`: the last line is incomplete: the export, or the copying of its file, was cut short.
 */
export interface FileVerdict {
  readonly lines: number;
  readonly problem: { readonly kind: 'broken' | 'torn'; readonly number: number } | undefined;
}

/** What earlier lines of the file have shown of a client's payments. */
interface Chain {
  readonly entries: JournalEntries;
  digest: string | undefined;
  readonly payments: Map<string, string | null>;
  /** The latest lines by their ids. An export that was killed, and went on, has written some of them again. */
  readonly latest: Lru<{ readonly before: string | undefined; readonly digest: string }>;
}

/** Verifies an export in JSON Lines, without the store. @throws CommandError if it cannot be read */
export async function verifyFile(path: string, onLines: (read: number) => void): Promise<FileVerdict> {
  const chains = new Map<string, Chain>();
  let [lines, waiting]: [number, number | undefined] = [0, undefined];
  try {
    for await (const text of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      // An incomplete line counts as torn only at the end.
      if (waiting !== undefined) return { lines, problem: { kind: 'broken', number: waiting } };
      const read = parsed(text);
      if (read === undefined) waiting = lines + 1;
      else if (!(await holds(read, chains))) return { lines, problem: { kind: 'broken', number: lines + 1 } };
      else lines += 1;
      onLines(lines);
    }
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause)) throw cause;
    throw new CommandError(`${path} cannot be read: ${cause.message}`, { cause });
  }
  return { lines, problem: waiting === undefined ? undefined : { kind: 'torn', number: waiting } };
}

/** True if a line follows from the one before, and its readable fields are those that its digest covers. */
async function holds(read: z.output<typeof Exported>, chains: Map<string, Chain>): Promise<boolean> {
  const { clientId, paymentId, line: exported, ...shown } = read;
  const { previous, ...line } = exported;
  const chain = chains.get(clientId) ?? newChain(clientId);
  chains.set(clientId, chain);
  const known = chain.latest.get(line.id);
  if (known?.digest === line.digest) chain.digest = known.before;
  // The first line of an export that begins with --from does not know the one before: that of an export before it does.
  const before = previous ?? chain.digest;
  if (chain.digest !== undefined && before !== chain.digest) return false;
  if (before !== undefined && digestOf(before, line) !== line.digest) return false;
  chain.latest.set(line.id, { before, digest: line.digest });
  chain.digest = line.digest;
  const [entry] = await chain.entries.of([line]);
  if (entry === undefined) return false;
  // A payment's id is made with a key that only the store has, so it can only be checked to be the same in all lines of the
  // payment.
  const begun = readLine(line.text)?.begun ?? line.id;
  const id = chain.payments.get(begun);
  if (id !== undefined && id !== paymentId) return false;
  chain.payments.set(begun, paymentId);
  const fields = fieldsOf(entry);
  // If a payment began before the file does, its lines do not hold the order.
  return Object.entries(fields).every(
    ([name, value]) =>
      name === 'clientId' ||
      name === 'paymentId' ||
      (value === null && entry.asked === null) ||
      value === shown[name],
  );
}

/** Returns the empty state for the lines of one client in a file. */
function newChain(clientId: string): Chain {
  const source = {
    idKey: async () => Buffer.alloc(32),
    journal: { lines: async (_clientId: string, ids: readonly string[]) => ids.map(() => undefined) },
  };
  return {
    entries: new JournalEntries(source, clientId),
    digest: undefined,
    payments: new Map(),
    latest: new Lru(2 * JOURNAL_PAGE),
  };
}

function parsed(text: string): z.output<typeof Exported> | undefined {
  try {
    return Exported.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
