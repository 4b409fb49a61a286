import { showAccounts } from './accounts.js';
import { ask, keepReading } from './api.js';
import { clockView } from './clock.js';
import { h } from './dom.js';
import { faultsPanel } from './faults.js';
import { header } from './header.js';
import { paymentsPanel } from './payments.js';
import { said } from './say.js';
import { transactionsView } from './transactions.js';
import { webhooksPanel } from './webhooks.js';
import { t } from './words.js';

/** @typedef {import('./api.js').Overview} Overview */

/** @type {import('./api.js').Client} */
const client = await ask('GET', '/sandbox');

const clock = clockView();
const accounts = h('tbody');
const transactions = transactionsView();
const webhooks = webhooksPanel();
const faults = faultsPanel(client);
const lost = h(
  'p',
  { class: 'notice', role: 'alert', hidden: true },
  t('The sandbox does not answer. The page tries again every second.'),
);

const head = (/** @type {string[]} */ ...names) =>
  h(
    'thead',
    {},
    h(
      'tr',
      {},
      ...names.map((name, at) => h('th', { scope: 'col', class: at === names.length - 1 && 'amount' }, name)),
    ),
  );

document.body.append(
  header('/', clock.element),
  lost,
  said,
  h(
    'main',
    { class: 'console' },
    h(
      'div',
      { class: 'what' },
      h(
        'section',
        { 'aria-labelledby': 'accounts' },
        h('h2', { id: 'accounts' }, t('Accounts of {name}', { name: client.name })),
        h(
          'div',
          { class: 'scrolls accounts', tabindex: 0, role: 'group', 'aria-labelledby': 'accounts' },
          h('table', {}, head(t('Account'), 'CLABE', t('Available')), accounts),
        ),
      ),
      transactions.element,
    ),
    h(
      'aside',
      { 'aria-label': t('What can happen') },
      paymentsPanel(client),
      webhooks.element,
      faults.element,
      h(
        'section',
        {},
        h('h2', {}, t('What this is')),
        h('p', {}, t('The REST service in a box. No real money moves, and nothing outlives this process.')),
        h('p', {}, h('a', { href: '/sandbox' }, t('Credentials and ids, as JSON'))),
      ),
    ),
  ),
);

/** @param {Overview['accounts']} there */
const hasAll = (there) => client.accounts.every(({ id }) => there.some((account) => account.id === id));

await keepReading(async () => {
  try {
    /** @type {Overview} */
    const overview = await ask('GET', '/sandbox/overview');
    lost.hidden = true;
    // Another sandbox has taken its place, or this one lost an account by a restart: the forms hold what is gone.
    if (overview.clientId !== client.clientId || !hasAll(overview.accounts)) {
      location.reload();
      return;
    }
    clock.show(overview.clock);
    showAccounts(accounts, overview.accounts);
    await transactions.show(overview.transactions);
    webhooks.show(overview.webhooks);
    faults.show(overview.faults);
  } catch {
    lost.hidden = false;
  }
});
