import { useCallback, useEffect, useState } from 'react';
import { hasMore, type Page, withPage } from './pages.ts';

export interface Pages<Of extends Page> {
  /** What was read so far, the first page before all others. */
  readonly pages: readonly Of[];
  /** Why the last page could not be read. */
  readonly problem: unknown;
  /** Reads the next page. Undefined once all were read, while one is being read, and after a problem. */
  readonly more: (() => void) | undefined;
  /** Forgets the problem: the next page may be asked for again. */
  readonly again: () => void;
}

/**
 * A list, a page after another: a merchant may have thousands.
 *
 * @param head the first page; another one makes the others stale
 * @param read reads the page behind a cursor, and throws where there is none. Keep it the same from one rendering to the next
 */
export function usePages<Of extends Page>(
  head: Of | undefined,
  read: (after: string) => Promise<Of>,
): Pages<Of> {
  const [kept, setKept] = useState<readonly Of[]>([]);
  const [reading, setReading] = useState(false);
  const [failure, setFailure] = useState<{ readonly behind: Of; readonly cause: unknown }>();
  useEffect(() => setKept(head === undefined ? [] : [head]), [head]);

  // Another first page makes the others stale, at once and while one is being read.
  const pages = head === undefined ? [] : kept[0] === head ? kept : [head];
  const last = pages.at(-1);
  const more = useCallback(async () => {
    if (!last?.pageInfo.endCursor) return;
    setReading(true);
    try {
      const page = await read(last.pageInfo.endCursor);
      setKept((before) => withPage(before, last, page));
    } catch (cause) {
      setFailure({ behind: last, cause });
    }
    setReading(false);
  }, [read, last]);

  const problem = failure?.behind === last ? failure?.cause : undefined;
  return {
    pages,
    problem,
    more: hasMore(pages) && !reading && problem === undefined ? () => void more() : undefined,
    again: () => setFailure(undefined),
  };
}
