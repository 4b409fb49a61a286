import { browserStorage } from './browser-storage.ts';
import { SPANISH } from './spanish.ts';
import { GRAPHIQL_SPANISH } from './spanish-graphiql.ts';

export type Language = 'en' | 'es';

const KEY = 'pasarela:language';

function chosen(): Language {
  const kept = browserStorage.getItem(KEY);
  if (kept === 'en' || kept === 'es') return kept;
  return navigator.language.toLowerCase().startsWith('es') ? 'es' : 'en';
}

/** Of this visit: changing it loads the page again. */
export const language = chosen();
document.documentElement.lang = language === 'es' ? 'es-MX' : 'en';

export function chooseLanguage(next: Language): void {
  browserStorage.setItem(KEY, next);
  location.reload();
}

/**
 * What the page says, in the visitor's language. The English text is the key.
 *
 * @param values take the places of `{name}`
 */
export function t(english: string, values: Readonly<Record<string, string | number>> = {}): string {
  const text = language === 'es' ? (SPANISH[english] ?? GRAPHIQL_SPANISH[english] ?? english) : english;
  return text.replaceAll(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}

/** `1 event`, `2 events`: each noun is a pair of texts of their own. */
export const counted = (count: number, one: string, many: string): string =>
  t(count === 1 ? one : many, { count });
