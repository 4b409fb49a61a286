import { type Optional, present } from './json.ts';

const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(\.\d{1,9})?\s?(Z|z|[+-]\d{2}:?\d{2}|[+-]\d{2})?$/;

/**
 * Writes an upstream timestamp as RFC 3339: a space or `T` between date and time, with an offset or without one, the
 * fraction of a second kept (docs/upstream-api.md, "Conventions").
 *
 * @param utcOffset given to a timestamp that carries none, such as `-06:00`.
 * @returns null for what is absent upstream (null, `""`, `None`), and undefined for a text that is no timestamp.
 */
export function toRfc3339(value: Optional, utcOffset: string): string | null | undefined {
  const text = present(value);
  if (text === null) return value == null || typeof value === 'string' ? null : undefined;
  const match = TIMESTAMP.exec(text.trim());
  if (match === null) return undefined;
  const [, date, time, fraction = '', offset] = match;
  const written = `${date}T${time}${fraction}${offset === undefined ? utcOffset : normalOffset(offset)}`;
  return Number.isNaN(Date.parse(written)) ? undefined : written;
}

/** `Z`, `-06:00`, `-0600` and `-06` as RFC 3339 wants them. */
function normalOffset(offset: string): string {
  if (offset === 'z' || offset === 'Z') return 'Z';
  const digits = offset.slice(1).replace(':', '').padEnd(4, '0');
  return `${offset[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}
