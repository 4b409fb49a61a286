import { clock } from '../../common/clock.ts';

/** Reads `Retry-After`: seconds or an HTTP date (RFC 9110, 10.2.3). Returns milliseconds from now. */
export function parseRetryAfter(header: string | string[] | undefined): number | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  if (value === undefined) return undefined;
  // `Date.parse` takes `1.5` for a day of 2001. An HTTP date begins with the name of its day.
  const ms = /^\d+$/.test(value.trim())
    ? Number(value) * 1000
    : /^[A-Z]/i.test(value)
      ? Date.parse(value) - clock.now()
      : Number.NaN;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** Reads the media type of `Content-Type`, without its parameters (RFC 9110, 8.3). */
export function parseMediaType(header: string | string[] | undefined): string | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  return /^[\w.+-]{1,64}\/[\w.+-]{1,64}/.exec(value ?? '')?.[0].toLowerCase();
}
