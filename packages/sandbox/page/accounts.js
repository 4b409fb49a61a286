import { h, showList } from './dom.js';
import { pesos, t } from './words.js';

/** @type {Map<string, string>} */
const balances = new Map();

/**
 * Shows the accounts; a balance that has changed is marked for a moment.
 *
 * @param {HTMLElement} body
 * @param {import('./api.js').Overview['accounts']} accounts
 */
export function showAccounts(body, accounts) {
  showList(
    body,
    accounts,
    ({ id }) => id,
    ({ availableBalance, status }) => `${availableBalance} ${status}`,
    ({ id, alias, clabe, availableBalance, status }) => {
      const before = balances.get(id);
      const isNew = before !== undefined && before !== availableBalance;
      balances.set(id, availableBalance);
      return h(
        'tr',
        {},
        h('td', {}, alias, status === 'BLOCKED' && h('span', { class: 'badge bad' }, t('blocked'))),
        h('td', {}, h('code', {}, clabe)),
        h('td', { class: isNew ? 'amount changed' : 'amount' }, pesos(availableBalance)),
      );
    },
  );
}
