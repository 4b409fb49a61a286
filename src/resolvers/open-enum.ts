import type { Logger } from '../context.ts';

/** How many different values are remembered: more of them are counted under one name. */
const MAX_REMEMBERED = 1_000;
const MAX_SHOWN_LENGTH = 64;
const OVERFLOW = 'further values';

const seen = new Map<string, number>();

function note(enumName: string, raw: string, logger: Logger): void {
  const key = `${enumName} ${raw.slice(0, MAX_SHOWN_LENGTH)}`;
  const known = seen.has(key);
  const slot = known || seen.size < MAX_REMEMBERED ? key : OVERFLOW;
  if (!seen.has(slot)) {
    logger.warn(
      { enum: enumName, value: raw.slice(0, MAX_SHOWN_LENGTH) },
      'The service sent a value that is not documented.',
    );
  }
  seen.set(slot, (seen.get(slot) ?? 0) + 1);
}

/** How often each undocumented value has come since the start, by `<enum> <value>`. */
export const undocumentedValues = (): ReadonlyMap<string, number> => seen;

/** Reads a raw value of a list that the spec leaves open ("values seen"): `OTHER` for all that it does not name. */
export type OpenEnum<Known extends string> = (raw: string | null, logger: Logger) => Known | 'OTHER';

/**
 * Makes the reader of one open list. Each value outside it is counted, and logged once per process.
 *
 * @param enumName the GraphQL enum, for the log.
 * @param known the values that the spec names.
 */
export function openEnum<const Known extends string>(
  enumName: string,
  known: readonly Known[],
): OpenEnum<Known> {
  const values = new Map<string, Known>(known.map((value) => [value, value]));
  return (raw, logger) => {
    if (raw === null) return 'OTHER';
    const value = values.get(raw);
    if (value !== undefined) return value;
    note(enumName, raw, logger);
    return 'OTHER';
  };
}
