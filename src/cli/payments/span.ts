import { UsageError } from '../command.ts';

/** @returns ms since the epoch, of a date its beginning in UTC; undefined if there is no text */
function instant(option: string, text: string | undefined): number | undefined {
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

/**
 * Reads `--from` and `--to`.
 *
 * @throws UsageError where they are no times, or nothing is between them: an empty export would say that nothing was paid
 */
export function span(options: { readonly from?: string | undefined; readonly to?: string | undefined }) {
  const from = instant('--from', options.from);
  const to = instant('--to', options.to);
  if (from !== undefined && to !== undefined && from >= to)
    throw new UsageError(
      `nothing is between --from ${options.from} and --to ${options.to}: a day ends with the date of the next one`,
    );
  return { from, to };
}
