import { ageOf, type Clocks } from '../lived-time.ts';
import { RETENTION_MS, type Sent } from '../record.ts';

/**
 * If the clock shows a time that is earlier than the sending by more than this, in ms, it was set back, and nothing shows how
 * long ago the sending was.
 */
const SET_BACK_MS = 10 * 60 * 1000;

/**
 * Returns when a request was sent, and how long ago that is at most.
 *
 * @param at by the running clock
 */
export function sending(
  row: Record<string, unknown>,
  clocks: Clocks,
  at: number,
): Pick<Sent, 'sentAt' | 'ageMs'> {
  const sentAt = Number(row['sent_at']);
  if (clocks.now() < sentAt - SET_BACK_MS) return { sentAt, ageMs: RETENTION_MS };
  const stamp = { wall: sentAt, bootId: String(row['boot_id']), bootMs: Number(row['boot_ms']) };
  // Null in a file of an earlier schema.
  const sentClock = row['sent_clock'] ?? at;
  return { sentAt, ageMs: Math.max(ageOf(stamp, clocks), at - Number(sentClock)) };
}
