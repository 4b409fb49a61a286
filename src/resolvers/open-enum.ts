import type { Logger } from '../common/logger.ts';

/** How many different values are logged, once each. All are counted. */
const MAX_LOGGED = 1_000;
const MAX_SHOWN_LENGTH = 64;

const logged = new Set<string>();
const counts = new Map<string, number>();

function note(enumName: string, raw: unknown, logger: Logger): void {
  counts.set(enumName, (counts.get(enumName) ?? 0) + 1);
  const value = typeof raw === 'string' ? raw.slice(0, MAX_SHOWN_LENGTH) : `a ${typeof raw}`;
  const key = `${enumName} ${value}`;
  if (logged.has(key) || logged.size >= MAX_LOGGED) return;
  logged.add(key);
  logger.warn({ enum: enumName, value }, 'The service sent a value that is not documented.');
}

/** How often an undocumented value has come since the process began, by the enum that shows it as `OTHER`. */
export const undocumentedValues = (): ReadonlyMap<string, number> => counts;

/** Reads a raw value of a list that the spec leaves open ("values seen"): `OTHER` for all that it does not name. */
export type OpenEnum<Known extends string> = (raw: unknown, logger: Logger) => Known | 'OTHER';

/**
 * Makes the reader of one open list. Each value outside it is counted, and logged once per process.
 *
 * @param enumName the GraphQL enum, for the log and the count.
 * @param known the values that the spec names.
 */
export function openEnum<const Known extends string>(
  enumName: string,
  known: readonly Known[],
): OpenEnum<Known> {
  const values = new Map<unknown, Known>(known.map((value) => [value, value]));
  counts.set(enumName, 0);
  return (raw, logger) => {
    if (raw === null || raw === undefined) return 'OTHER';
    const value = values.get(raw);
    if (value !== undefined) return value;
    note(enumName, raw, logger);
    return 'OTHER';
  };
}
