import { clock } from '../../common/clock.ts';

/** The longest wait that is believed, in milliseconds. Clients are told of it, and a timer of theirs that is to ring after 25 days rings at once. */
const LONGEST_MS = 24 * 3_600_000;

/** Reads `Retry-After`: seconds or an HTTP date (RFC 9110, 10.2.3). Returns milliseconds from now, those of a day at most. */
export function parseRetryAfter(header: string | string[] | undefined): number | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  if (value === undefined) return undefined;
  // `Date.parse` takes `1.5` for a day of 2001. An HTTP date begins with the name of its day.
  const ms = /^\d+$/.test(value.trim())
    ? Number(value) * 1000
    : /^[A-Z]/i.test(value)
      ? Date.parse(value) - clock.now()
      : Number.NaN;
  return Number.isFinite(ms) ? Math.min(Math.max(0, ms), LONGEST_MS) : undefined;
}

/** Reads the media type of `Content-Type`, without its parameters (RFC 9110, 8.3). */
export function parseMediaType(header: string | string[] | undefined): string | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  return /^[\w.+-]{1,64}\/[\w.+-]{1,64}/.exec(value ?? '')?.[0].toLowerCase();
}
