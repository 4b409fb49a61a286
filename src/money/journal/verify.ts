import { digestOf, partsOf } from './journal.ts';
import type { JournalLine, JournalStore } from './store.ts';

/** Lines that are read from a store at a time. */
export const JOURNAL_PAGE = 2_000;

/** The result of verifying a client's journal. */
export interface Verdict {
  /** Number of intact lines, from the oldest that is kept. */
  readonly lines: number;
  /** Id and digest of the last of them; empty if there is none. */
  readonly last: string;
  readonly digest: string;
  /** Undefined if all lines are intact. */
  readonly problem: JournalProblem | undefined;
}

/**
 * - `broken`: this line does not follow from the one before. It was changed, or lines before it were removed.
 * - `torn`: every line that is there is intact, and `missing` lines are gone at the end.
 * - `headless`: lines are there, and the head that the store keeps beside them is gone.
 * - `unknown-anchor`: the line of the anchor is not there, or has another digest.
 */
export type JournalProblem =
  | { readonly kind: 'broken'; readonly number: number; readonly id: string; readonly at: number }
  | { readonly kind: 'torn'; readonly missing: number }
  | { readonly kind: 'headless' }
  | { readonly kind: 'unknown-anchor' };

/** Id and digest of a line that somebody has noted outside of the store. */
export interface Anchor {
  readonly id: string;
  readonly digest: string;
}

/**
 * Checks the chain of a client's journal from the oldest line that is kept. Lines may be added and cut off meanwhile.
 *
 * @param onLines is called with how many lines have been read, and how many there are
 */
export async function verifyJournal(
  store: JournalStore,
  clientId: string,
  anchor: Anchor | undefined,
  onLines: (read: number, all: number) => void,
): Promise<Verdict> {
  const { head, first } = await firstLines(store, clientId);
  let [digest, last, lines] = [head.base, '', 0];
  let isAnchored = anchor === undefined;
  const found = (problem: JournalProblem | undefined): Verdict => ({ lines, last, digest, problem });
  for (
    let page: readonly JournalLine[] = first;
    page.length > 0;
    page = await store.read(clientId, last, JOURNAL_PAGE)
  ) {
    if (head.written === 0) return found({ kind: 'headless' });
    for (const line of page) {
      if (digestOf(digest, line) !== line.digest) {
        const at = partsOf(line.id)[0];
        return found({ kind: 'broken', number: head.cut + lines + 1, id: line.id, at });
      }
      [digest, last] = [line.digest, line.id];
      lines += 1;
      if (anchor?.id === line.id) isAnchored = anchor.digest === line.digest;
    }
    onLines(lines, Math.max(lines, head.written - head.cut));
  }
  const missing = head.written - head.cut - lines;
  if (missing > 0) return found({ kind: 'torn', missing });
  return found(isAnchored ? undefined : { kind: 'unknown-anchor' });
}

/**
 * Reads the head, and the first lines that follow from it. Lines may be added, and the oldest cut off, between the two reads;
 * lines that the head counts as cut off are left out.
 */
export async function firstLines(store: JournalStore, clientId: string) {
  for (;;) {
    const before = await store.head(clientId);
    const read = await store.read(clientId, undefined, JOURNAL_PAGE);
    const head = await store.head(clientId);
    const first = read.slice(read.findIndex(({ digest }) => digest === head.base) + 1);
    const [line] = first;
    const follows =
      line === undefined ? head.written === head.cut : digestOf(head.base, line) === line.digest;
    // Otherwise all lines that were read may have been cut off meanwhile.
    if (follows || head.cut === before.cut) return { head, first };
  }
}
