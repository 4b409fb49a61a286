import { useCallback, useEffect, useState } from 'react';
import { hasMore, type Page } from './pages.ts';

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
  const [rest, setRest] = useState<readonly Of[]>([]);
  const [reading, setReading] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another first page makes the others stale.
  useEffect(() => setRest([]), [head]);

  const pages = head === undefined ? [] : [head, ...rest];
  const next = pages.at(-1)?.pageInfo;
  const more = useCallback(async () => {
    if (!next?.endCursor) return;
    setReading(true);
    try {
      const page = await read(next.endCursor);
      setRest((before) => [...before, page]);
    } catch (cause) {
      setProblem(cause);
    }
    setReading(false);
  }, [read, next]);

  return {
    pages,
    problem,
    more: hasMore(pages) && !reading && problem === undefined ? () => void more() : undefined,
    again: () => setProblem(undefined),
  };
}
