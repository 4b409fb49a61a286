import { encodeCursor, type LogPosition } from './cursor.ts';
import { EventsGapError, type GapReason, type LogBounds } from './errors.ts';
import type { Source } from './source.ts';

/** The positions before the oldest retained event and of the newest one. */
interface Bounds {
  readonly oldest: LogPosition;
  readonly head: LogPosition;
}

/** Returns the cursors from which a reader starts again who is told of a gap now. */
export const startsAgain = (clientId: string, head: LogPosition): LogBounds => ({
  oldest: encodeCursor(clientId, { ...head, isOldest: true }),
  head: encodeCursor(clientId, head),
});

/**
 * Returns the error for a reader when the log cannot go on from the reader's position.
 *
 * @param at the reader's position; undefined if it reads from an end of the log
 */
export function gapError(
  source: Pick<Source, 'isBefore'>,
  clientId: string,
  at: LogPosition | undefined,
  bounds: Bounds,
): EventsGapError {
  return new EventsGapError(startsAgain(clientId, bounds.head), {
    clientId,
    reason: reasonOf(source, at, bounds),
  });
}

function reasonOf(
  source: Pick<Source, 'isBefore'>,
  at: LogPosition | undefined,
  { oldest, head }: Bounds,
): GapReason {
  if (at === undefined) return 'lost';
  if (at.epoch !== head.epoch) return 'begun-anew';
  // The log still holds its first event, so nothing was trimmed; or it holds none, and trimming keeps the newest.
  if (oldest.position === oldest.epoch || oldest.position === head.position) return 'lost';
  // A reader that goes back from the event that was trimmed last finds it gone. One that goes on from it finds no gap.
  const wentLast = at.position === oldest.position;
  const isGivenUp = wentLast || at.position === at.epoch || source.isBefore(at.position, oldest.position);
  return isGivenUp ? 'trimmed' : 'lost';
}

/**
 * Reads the log. If the result has a gap, confirms that it comes from the current primary and reads once more, before anybody
 * is told of a gap: during a failover a connection may lead to a server that lacks what others have already.
 *
 * @returns undefined if the second read has a gap too
 * @throws {StoreUnavailableError} if it cannot be told now whether there is a gap
 */
export async function readWhole<T>(
  source: Pick<Source, 'confirm'>,
  clientId: string,
  read: () => Promise<T>,
  isWhole: (found: T) => boolean,
): Promise<T | undefined> {
  const first = await read();
  if (isWhole(first)) return first;
  await source.confirm(clientId);
  const second = await read();
  return isWhole(second) ? second : undefined;
}

/**
 * Reads a page from the oldest event on, for a reader that has been told of what is missing up to a position.
 *
 * @param check rejects if the log no longer goes on from that position. It is asked after the page was read, because the page lacks what
 * was trimmed until then.
 */
export async function readFromOldest<T>(read: () => Promise<T>, check: () => Promise<unknown>): Promise<T> {
  const page = await read();
  await check();
  return page;
}
