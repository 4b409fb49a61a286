import { BadInputError } from './errors.ts';

const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d:\d\d:)(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/**
 * The first whole millisecond since 1970 that is not before a time; undefined for none. What is looked for bears whole ones: it
 * was before the time exactly when it was before that millisecond.
 *
 * @throws BadInputError for a day that no calendar has.
 */
function instantOf(name: string, text: string | null | undefined): number | undefined {
  if (text == null) return undefined;
  const [, year, month, day, minute, second, fraction = '', offset = ''] = TIME.exec(text) ?? [];
  const midnight = Date.parse(`${year}-${month}-${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || new Date(midnight).getUTCDate() !== Number(day)) {
    throw new BadInputError(`Argument "${name}" names a day that there is not.`);
  }
  const start = Date.parse(`${year}-${month}-${day}T${minute}00${offset.toUpperCase()}`);
  // A leap second is the one after the minute.
  return start + Number(second) * 1_000 + Math.ceil(Number(`0${fraction}`) * 1_000);
}

/**
 * The times between which something is looked for; undefined for an end that is open.
 *
 * @param names of the two arguments, the earlier time's first.
 * @throws BadInputError for a day that no calendar has, or where nothing can lie between the two.
 */
export function spanOf(
  names: readonly [string, string],
  from: string | null | undefined,
  to: string | null | undefined,
): { readonly from: number | undefined; readonly to: number | undefined } {
  const span = { from: instantOf(names[0], from), to: instantOf(names[1], to) };
  if (span.from !== undefined && span.to !== undefined && span.from >= span.to) {
    throw new BadInputError(`Argument "${names[0]}" must be earlier than "${names[1]}".`);
  }
  return span;
}
