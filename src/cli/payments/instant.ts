import { UsageError } from '../command.ts';

/** @returns ms since the epoch, of a date its beginning in UTC; undefined if there is no text */
export function instant(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  const day = /^\d{4}-\d{2}-\d{2}/.exec(text)?.[0];
  // JavaScript reads the 31st of February as the 3rd of March.
  const isDay = day !== undefined && new Date(Date.parse(day)).getUTCDate() === Number(day.slice(-2));
  // JavaScript reads a time without an offset in the zone of this machine, which in a container is seldom that of the customer.
  const hasOffset = text === day || /(Z|[+-]\d{2}:\d{2})$/i.test(text);
  if (isDay && hasOffset && !Number.isNaN(ms)) return ms;
  throw new UsageError(
    `${option} wants a date, or a time with its offset, such as 2026-11-01 or 2026-11-01T00:00:00-06:00, and got "${text}"`,
  );
}
