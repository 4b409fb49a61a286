import { VARIABLE_NAMES } from './variables.ts';

/** Returns how many typing errors a name may have to count as another name: one in a short name, two in a long one. */
const slipsIn = (name: string): number => (name.length < 6 ? 1 : 2);

/** What people add to a name, or leave out of it: a unit, or that a file holds the value. */
const ENDING = /_(?:MS|MILLISECONDS|S|SECONDS|BYTES|FILE)$/;

/**
 * Returns sentences for the operator about variables that Pasarela does not read and whose names are nearly those of its own.
 *
 * @param environment such as `process.env`
 */
export function misspellingsIn(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  const known: readonly string[] = VARIABLE_NAMES;
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name)) return [];
    const stem = name.replace(ENDING, '');
    const closest = known.find(
      (other) =>
        // Comparing every pair of names to the end would take a thirtieth of a start.
        (stem === other.replace(ENDING, '') ||
          (Math.abs(name.length - other.length) <= slipsIn(other) &&
            isWithin(slipsIn(other), name, other))) &&
        (environment[other] ?? '') === '',
    );
    return closest === undefined ? [] : [`${name} is set, and nothing reads it. Is ${closest} meant?`];
  });
}

/** Whether so many letters at most have to be added, left out, changed or swapped with the next one until one word is the other. */
function isWithin(most: number, one: string, other: string): boolean {
  let [before, last]: [number[], number[]] = [
    [],
    Array.from({ length: other.length + 1 }, (_, index) => index),
  ];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const changed = (last[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      const isSwapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : changed;
      row.push(Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, changed, swapped));
    }
    // No later row has less than the least of these two. Most words differ in their first letters.
    if (Math.min(...row) > most && Math.min(...last) > most) return false;
    [before, last] = [last, row];
  }
  return (last[other.length] ?? 0) <= most;
}
