import { h } from './dom.js';
import { choose, language, t } from './words.js';

/**
 * The top of each page.
 *
 * @param {'/' | '/docs'} here
 * @param {...import('./dom.js').Child} more
 */
export function header(here, ...more) {
  const other = language === 'es' ? 'en' : 'es';
  const link = (/** @type {string} */ path, /** @type {string} */ label) =>
    // The address may hold the language.
    h('a', { href: path + location.search, 'aria-current': path === here ? 'page' : undefined }, label);
  return h(
    'header',
    {},
    h('h1', {}, 'Pasarela sandbox'),
    h('nav', { 'aria-label': t('Pages') }, link('/', t('Console')), link('/docs', t('Reference'))),
    ...more,
    h(
      'button',
      { type: 'button', class: 'language', lang: other, click: () => choose(other) },
      other === 'es' ? 'Español' : 'English',
    ),
  );
}
