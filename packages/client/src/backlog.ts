import { MISSED, type MissedVariables } from './documents.ts';
import { Pause } from './pause.ts';
import { ask, type Catching, type CatchingOptions, retryAfterOf } from './source.ts';

/** The filters of `Query.events` that select the same events as a subscription: all that `moneyIn` and `events` have. */
export type Asked = Omit<MissedVariables, 'after'>;

/** Counts how far a feed is behind the log, from the start of a connection until the feed has caught up. */
export function backlog(
  { source, cursor, onMissing, onCaughtUp }: CatchingOptions,
  asked: Asked,
): ReturnType<Catching> {
  const pause = new Pause();
  /** Cursors of events that were missed and have not arrived yet. */
  const awaited = new Set<string>();
  /** Cursors of events that have arrived while the missed ones are being asked for. */
  let arrived: Set<string> | undefined;
  /** True if more events were missed than the last page showed. */
  let isMore = false;
  /** Where the last page ended, if it showed no event and none has arrived since. */
  let end: string | null | undefined;
  let isOver = false;

  /** Reads a page of the events that have arrived in the log after the last one received. */
  const read = async () => (await ask(source, MISSED, { after: end ?? cursor(), ...asked })).events;
  const measure = async (): Promise<void> => {
    while (!isOver) {
      const beside = new Set<string>();
      arrived = beside;
      // Where none came, how long to wait.
      const missed = (await read().catch(retryAfterOf)) ?? 0;
      if (typeof missed === 'number') {
        if (!isOver) await pause.next(missed);
        continue;
      }
      for (const { cursor: place } of missed.nodes) if (!beside.has(place)) awaited.add(place);
      isMore = missed.pageInfo.hasNextPage;
      // Of a filter that seldom matches, a page may end before it has found anything.
      if (!(missed.nodes.length + beside.size)) end = missed.pageInfo.endCursor;
      arrived = undefined;
      reportProgress();
      return;
    }
  };
  const reportProgress = (): void => {
    if (isOver || arrived !== undefined) return;
    if (awaited.size > 0) {
      onMissing(awaited.size);
    } else if (isMore) {
      // The next page is asked for once this one has been received.
      void measure();
    } else {
      isOver = true;
      onCaughtUp();
    }
  };

  void measure();
  return {
    arrive(place) {
      end = null;
      arrived?.add(place);
      if (awaited.delete(place)) reportProgress();
    },
    /** The next connection counts for itself. */
    close() {
      isOver = true;
      pause.wake(true);
    },
  };
}
