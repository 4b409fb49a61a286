import leven from 'leven';

/** How many wrong letters a word may have to be taken for another. */
const TYPING_ERRORS = 3;

/**
 * Returns a sentence that names the word that was probably meant, with a space before it; empty if none is similar enough.
 */
export function suggestion(word: string, known: readonly string[]): string {
  const [nearest] = known
    .map((one) => ({ one, distance: leven(word, one, { maxDistance: TYPING_ERRORS }) }))
    .filter(({ one, distance }) => distance < Math.min(TYPING_ERRORS, one.length))
    .sort((first, second) => first.distance - second.distance);
  return nearest === undefined ? '' : ` Did you mean "${nearest.one}"?`;
}
