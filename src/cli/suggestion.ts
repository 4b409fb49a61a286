import leven from 'leven';

/** How many letters may be wrong in a word for which another is meant. */
const TYPING_ERRORS = 3;

/** A sentence that names the word that was meant, with a space before it; empty where none is near enough. */
export function suggestion(word: string, known: readonly string[]): string {
  const [nearest] = known
    .map((one) => ({ one, distance: leven(word, one, { maxDistance: TYPING_ERRORS }) }))
    .filter(({ one, distance }) => distance < Math.min(TYPING_ERRORS, one.length))
    .sort((first, second) => first.distance - second.distance);
  return nearest === undefined ? '' : ` Did you mean "${nearest.one}"?`;
}
