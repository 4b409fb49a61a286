import { keep, kept } from './kept.js';
import { SPANISH } from './spanish.js';

const KEY = 'pasarela:language';
/** In the address, where the browser keeps nothing. */
const PARAMETER = 'language';

/** @returns {'en' | 'es'} */
function chosen() {
  const language = new URLSearchParams(location.search).get(PARAMETER) ?? kept(KEY);
  if (language === 'en' || language === 'es') return language;
  return navigator.language.toLowerCase().startsWith('es') ? 'es' : 'en';
}

/** Of this visit: changing it loads the page again. */
export const language = chosen();
document.documentElement.lang = language === 'es' ? 'es-MX' : 'en';

/** @param {'en' | 'es'} next */
export function choose(next) {
  const address = new URL(location.href);
  address.searchParams.delete(PARAMETER);
  if (!keep(KEY, next)) address.searchParams.set(PARAMETER, next);
  history.replaceState(null, '', address);
  location.reload();
}

/**
 * What the page says, in the visitor's language. The English text is the key.
 *
 * @param {string} english
 * @param {Record<string, string | number>} [values] take the places of `{name}`
 */
export function t(english, values = {}) {
  const text = language === 'es' ? (SPANISH[english] ?? english) : english;
  return text.replaceAll(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place));
}

const PESOS = new Intl.NumberFormat(language === 'es' ? 'es-MX' : 'en-US', { minimumFractionDigits: 2 });

/** @param {string} amount two decimals, `1250.00` */
export const pesos = (amount) => `${PESOS.format(/** @type {`${number}`} */ (amount))} MXN`;

const CLOCK = new Intl.DateTimeFormat(language === 'es' ? 'es-MX' : 'en-US', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZone: 'America/Mexico_City',
});
const DAY = new Intl.DateTimeFormat(language === 'es' ? 'es-MX' : 'en-US', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'America/Mexico_City',
});

/** @param {string} at ISO 8601 */
export const timeOf = (at) => CLOCK.format(new Date(at));

/** @param {string} at ISO 8601 */
export const dayOf = (at) => DAY.format(new Date(at));

/**
 * A span of time, such as `+1 min 30 s`.
 *
 * @param {number} milliseconds
 */
export function spanOf(milliseconds) {
  const all = Math.max(0, Math.round(milliseconds / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const parts = [hours > 0 && `${hours} h`, minutes > 0 && `${minutes} min`, seconds > 0 && `${seconds} s`];
  return `+${parts.filter(Boolean).join(' ') || '0 s'}`;
}
