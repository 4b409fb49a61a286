import { h } from './dom.js';
import { language, t } from './words.js';

/** The service's own words for states, as a Spanish reader says them. */
const IN_SPANISH = /** @type {Record<string, string>} */ ({
  INITIALIZED: 'Iniciada',
  IN_PROCESS: 'En proceso',
  LIQUIDATED: 'Liquidada',
  REFUNDED: 'Devuelta',
  PENDING: 'Pendiente',
  DELAYED: 'Demorado',
  COMPLETED: 'Completado',
  FAILED: 'Fallido',
});

const GOOD = ['LIQUIDATED', 'COMPLETED'];
const BAD = ['REFUNDED', 'FAILED'];

/**
 * A state of a transaction or a receipt, with the service's own word for it where that is another.
 *
 * @param {string} status
 */
export function badge(status) {
  const kind = GOOD.includes(status) ? ' good' : BAD.includes(status) ? ' bad' : '';
  return h('span', { class: `badge${kind}`, title: status }, nameOf(status));
}

/** @param {string} status */
export const nameOf = (status) => (language === 'es' ? (IN_SPANISH[status] ?? status) : status);

/**
 * @param {string} subCategory
 * @param {boolean} hasReceipt
 */
export function kindOf(subCategory, hasReceipt) {
  if (hasReceipt) return t('Penny validation');
  const names = /** @type {Record<string, string>} */ ({
    SPEI_CREDIT: t('SPEI credit'),
    SPEI_DEBIT: t('SPEI transfer'),
    INT_DEBIT: t('Internal transfer, out'),
    INT_CREDIT: t('Internal transfer, in'),
  });
  return names[subCategory] ?? subCategory;
}
