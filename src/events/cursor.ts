import { entropy } from '../common/entropy.ts';
import { CursorInvalidError } from './errors.ts';

/**
 * A position in one client's log. `epoch` names the log's current life. `position` is that of an event, in the form of the
 * implementation; before the first event it is the epoch itself.
 */
export interface LogPosition {
  readonly epoch: string;
  readonly position: string;
}

/** Where a reader goes on: after a position, or at the oldest event that the log holds when it is read. */
export interface ReadFrom extends LogPosition {
  /**
   * True to begin at the oldest event that the log holds. `position` is then the end of the log at the time when the reader was told of a
   * gap. That told it of all that is missing up to there: only what is missing after `position` is another gap.
   */
  readonly isOldest?: boolean;
}

const OLDEST = 'oldest';
const TIME_DIGITS = 9;
const EPOCH = /^[0-9a-z]{9}[0-9a-f]{12}$/;

/**
 * Returns the name of a log that starts now. The time in it says how far back this life of the log can reach (`begunAt`), and is
 * for people who read it. It does not tell which of two lives came first, because processes have clocks of their own. A cursor of
 * another life than the log's is a gap, whatever its time.
 */
export function newEpoch(now: number): string {
  // Each append proposes an epoch, so drawing one has to be cheap: Node draws UUIDs many at a time. The twelve digits before
  // the version are random.
  const random = entropy.uuid();
  return now.toString(36).padStart(TIME_DIGITS, '0') + random.slice(0, 8) + random.slice(9, 13);
}

/** Returns when the log of an epoch began, by the clock of the process that began it, in milliseconds since 1970. */
export const begunAt = (epoch: string): number => Number.parseInt(epoch.slice(0, TIME_DIGITS), 36);

/** Returns the epoch in a cursor that is not sealed; undefined for any other text. */
export function epochOf(cursor: string): string | undefined {
  const [version, epoch = ''] = Buffer.from(cursor, 'base64url').toString('utf8').split('|');
  return version === '1' && EPOCH.test(epoch) ? epoch : undefined;
}

/** Returns an opaque text: base64url, without padding. */
export function encodeCursor(clientId: string, { epoch, position, isOldest = false }: ReadFrom): string {
  const end = isOldest ? `|${OLDEST}` : '';
  return Buffer.from(`1|${epoch}|${clientId}|${position}${end}`).toString('base64url');
}

/**
 * Returns what a cursor stands for.
 *
 * @param isPosition whether the text can be an event's position in this implementation
 * @throws {CursorInvalidError} for anything but a cursor that such a log made for this client
 */
export function decodeCursor(
  clientId: string,
  cursor: string,
  isPosition: (text: string) => boolean,
): ReadFrom {
  const [version, epoch = '', client, position = '', end, ...rest] = Buffer.from(cursor, 'base64url')
    .toString('utf8')
    .split('|');
  const at = end === undefined ? { epoch, position } : { epoch, position, isOldest: true };
  const whole =
    version === '1' &&
    EPOCH.test(epoch) &&
    client === clientId &&
    (position === epoch || isPosition(position)) &&
    rest.length === 0 &&
    // Buffer skips characters that are not base64url, so the text is compared with what encodeCursor writes.
    encodeCursor(clientId, at) === cursor;
  if (!whole) throw new CursorInvalidError();
  return at;
}
