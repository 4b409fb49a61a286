import { browserStorage } from './browser-storage.ts';
import { SPANISH } from './spanish.ts';
import { GRAPHIQL_SPANISH } from './spanish-graphiql.ts';

export type Language = 'en' | 'es';

const KEY = 'pasarela:language';

/** In the address, where the browser keeps nothing. */
const PARAMETER = 'language';

function chosen(): Language {
  const kept = new URLSearchParams(location.search).get(PARAMETER) ?? browserStorage.getItem(KEY);
  if (kept === 'en' || kept === 'es') return kept;
  return navigator.language.toLowerCase().startsWith('es') ? 'es' : 'en';
}

/** Of this visit: changing it loads the page again. */
export const language = chosen();
document.documentElement.lang = language === 'es' ? 'es-MX' : 'en';

/** Loads the page again in another language. */
export function chooseLanguage(next: Language): void {
  const address = new URL(location.href);
  address.searchParams.delete(PARAMETER);
  if (!isKept(next)) address.searchParams.set(PARAMETER, next);
  history.replaceState(null, '', address);
  location.reload();
}

/** Keeps the language. @returns whether the page finds it once it is loaded again */
function isKept(next: Language): boolean {
  try {
    browserStorage.setItem(KEY, next);
    // The look-up alone throws where it is blocked.
    return localStorage.getItem(KEY) === next;
  } catch {
    return false;
  }
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
