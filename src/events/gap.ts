import { encodeCursor, type LogPosition } from './cursor.ts';
import { EventsGapError, type GapReason } from './errors.ts';
import type { Source } from './source.ts';

/** The places from which everything retained, and nothing but what comes, can be read. */
interface Bounds {
  readonly oldest: LogPosition;
  readonly head: LogPosition;
}

/**
 * What a reader is told when the log cannot go on from where it stands.
 *
 * @param at where it stands; undefined where it reads from an end of the log
 */
export function gapError(
  source: Pick<Source, 'isBefore'>,
  clientId: string,
  at: LogPosition | undefined,
  bounds: Bounds,
): EventsGapError {
  const { oldest, head } = bounds;
  return new EventsGapError(
    { oldest: encodeCursor(clientId, oldest), head: encodeCursor(clientId, head) },
    { clientId, reason: reasonOf(source, at, bounds) },
  );
}

function reasonOf(
  source: Pick<Source, 'isBefore'>,
  at: LogPosition | undefined,
  { oldest, head }: Bounds,
): GapReason {
  if (at === undefined) return 'lost';
  if (at.epoch !== head.epoch) return 'begun-anew';
  // Nothing has been given up.
  if (oldest.position === oldest.epoch) return 'lost';
  const isGivenUp = at.position === at.epoch || source.isBefore(at.position, oldest.position);
  return isGivenUp ? 'trimmed' : 'lost';
}

/**
 * Reads of the log by one who may be about to be told of a gap: a read that is not whole is made once more, when it is certain that
 * it is of the log as it is now. During a failover a connection may lead to a server that lacks what others have already.
 *
 * @returns undefined where the second read is not whole either
 * @throws {StoreUnavailableError} where it cannot be told now whether there is a gap
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
