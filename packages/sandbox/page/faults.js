import { act, ask } from './api.js';
import { button, h, labelled, pathText, showList } from './dom.js';
import { headingOf } from './focus.js';
import { t } from './words.js';

/** @typedef {import('./api.js').Overview['faults'][number]} Fault */

/** @returns {Record<string, { label: string, fault: unknown }>} */
const kinds = () => ({
  'lose-answer': { label: t('it is done, but its answer is lost'), fault: 'reset-after-commit' },
  'lose-request': { label: t('it is lost on the way'), fault: 'reset-before' },
  delay: { label: t('it takes 2 s longer'), fault: { delayMs: 2_000 } },
  'status-503': { label: t('it is answered with 503'), fault: { status: 503 } },
  hang: { label: t('it is never answered'), fault: 'hang' },
  truncate: { label: t('its answer is cut off'), fault: 'truncate' },
  garbage: { label: t('its answer is no JSON'), fault: 'garbage' },
});

/** @returns {Record<string, { label: string, match: object, namesNoAccount?: true }>} */
const requests = () => ({
  payment: { label: t('a payment is sent'), match: { method: 'POST', path: '/v1/transactions/' } },
  any: { label: t('any request is sent'), match: { path: '/v1/' } },
  accounts: {
    label: t('the accounts are listed'),
    match: { method: 'GET', path: '/v1/clients/*/accounts' },
    namesNoAccount: true,
  },
  transaction: {
    label: t('a transaction is read'),
    match: { method: 'GET', path: '/v1/clients/*/transactions/*' },
  },
});

/** @param {Fault} fault */
function stateOf({ used, times, inForce }) {
  if (used === 0) return t('armed');
  const seen = used === 1 ? t('seen once') : t('seen {times} times', { times: used });
  return inForce && times === null ? `${t('armed')}, ${seen}` : seen;
}

/** What goes wrong with the next requests: armed here, then seen, or disarmed. @param {import('./api.js').Client} client */
export function faultsPanel({ accounts }) {
  const [all, which] = [kinds(), requests()];
  const list = h('ul', { class: 'plain' });
  const choice = (/** @type {Record<string, { label: string }>} */ from) =>
    h('select', {}, ...Object.entries(from).map(([value, { label }]) => h('option', { value }, label)));
  const [what, of] = [choice(all), choice(which)];
  const whose = h(
    'select',
    {},
    h('option', { value: '' }, t('any account')),
    ...accounts.map(({ id, alias }) => h('option', { value: id }, alias)),
  );
  of.addEventListener('change', () => {
    whose.disabled = which[of.value]?.namesNoAccount === true;
  });
  const often = h(
    'select',
    {},
    h('option', { value: 1 }, t('once')),
    h('option', { value: 0 }, t('until disarmed')),
  );
  const arm = async () => {
    const times = Number(often.value);
    await ask('POST', '/sandbox/faults', {
      match: {
        ...which[of.value]?.match,
        ...(whose.disabled || whose.value === '' ? {} : { account: whose.value }),
      },
      fault: all[what.value]?.fault,
      ...(times === 0 ? {} : { times }),
    });
    return t('Armed. It hits the next matching request.');
  };
  const healthy = h('p', { class: 'quiet' }, t('Every request is answered as it should be.'));
  const disarmAll = button(t('Disarm all'), () =>
    act(async () => {
      await ask('DELETE', '/sandbox/faults');
      return t('No fault is armed any more.');
    }),
  );
  return {
    element: h(
      'section',
      { class: 'panel', 'aria-labelledby': 'faults' },
      h('h2', { id: 'faults' }, t('Make a request fail')),
      h(
        'form',
        {
          class: 'tall',
          submit: (event) => {
            event.preventDefault();
            void act(arm);
          },
        },
        labelled(t('When'), of),
        labelled(t('Account'), whose),
        labelled(t('Then'), what),
        labelled(t('How often'), often),
        h('button', { class: 'primary' }, t('Arm')),
      ),
      healthy,
      list,
      disarmAll,
    ),
    /** @param {Fault[]} faults */
    show(faults) {
      healthy.hidden = faults.length > 0;
      if (faults.length === 0 && document.activeElement === disarmAll) headingOf(disarmAll)?.focus();
      disarmAll.hidden = faults.length === 0;
      showList(
        list,
        faults.toReversed(),
        ({ id }) => String(id),
        stateOf,
        (fault) => line(fault, all, accounts),
      );
    },
  };
}

/** @param {Fault} fault @param {ReturnType<typeof kinds>} all @param {import('./api.js').Client['accounts']} accounts */
function line(fault, all, accounts) {
  const text = JSON.stringify(fault.fault);
  const known = Object.values(all).find((one) => JSON.stringify(one.fault) === text);
  const { method = '', path = '', account } = fault.match;
  return h(
    'li',
    { class: 'entry' },
    h('span', { class: fault.inForce ? 'badge bad' : 'badge' }, stateOf(fault)),
    ' ',
    known?.label ?? text,
    ' ',
    h('code', {}, method || (path === '' && t('any request is sent'))),
    ' ',
    path !== '' && pathText(path),
    ' ',
    account !== undefined && (accounts.find(({ id }) => id === account)?.alias ?? h('code', {}, account)),
    ' ',
    button(fault.inForce ? t('Disarm') : t('Clear'), () =>
      act(async () => {
        await ask('DELETE', `/sandbox/faults/${fault.id}`);
        return fault.inForce ? t('Disarmed.') : '';
      }),
    ),
  );
}
