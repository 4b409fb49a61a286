import type { TimestampForm } from './choices.ts';

/** Mexico City keeps UTC-6 all the year. */
const OFFSET_MS = -6 * 3_600_000;
const OFFSET = '-06:00';

/** A moment (ms since the epoch) as the service writes it: `2026-11-20 03:04:05.123000-06:00`, or a form of it. */
export function formatTimestamp(at: number, form: TimestampForm): string {
  const local = new Date(at + OFFSET_MS).toISOString();
  const time = `${local.slice(11, 23)}000`;
  if (form === 'plain') return `${local.slice(0, 10)} ${time}`;
  return `${local.slice(0, 10)}${form === 'iso' ? 'T' : ' '}${time}${OFFSET}`;
}

/** `YYYY-MM-DD` in Mexico City. */
export function formatDate(at: number): string {
  return new Date(at + OFFSET_MS).toISOString().slice(0, 10);
}

/** `YYYY-MM-DD HH:MM:SS` in Mexico City. */
export function formatSeconds(at: number): string {
  return new Date(at + OFFSET_MS).toISOString().slice(0, 19).replace('T', ' ');
}

/** ddmmaa of the operation date, the default external reference of a penny validation (docs/upstream-api.md, endpoint 13). */
export function formatDayMonthYear(at: number): string {
  const [year = '', month = '', day = ''] = formatDate(at).split('-');
  return day + month + year.slice(2);
}
