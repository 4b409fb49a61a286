import { ask } from './api.js';
import { detailView } from './detail.js';
import { h, showList } from './dom.js';
import { keepFocus } from './focus.js';
import { badge, kindOf } from './states.js';
import { dayOf, pesos, t, timeOf } from './words.js';

/** @typedef {import('./api.js').Line} Line */

/** The movements, newest first; each opens to all that came of it. */
export function transactionsView() {
  const list = h('ol', { class: 'transactions', 'aria-labelledby': 'movements' });
  const none = h('p', { class: 'quiet' }, t('Nothing has moved yet.'));
  /** @type {string | undefined} */
  let open;
  /** @type {readonly Line[]} */
  let lines = [];
  /** @type {{ id: string, text: string, element: HTMLElement } | undefined} */
  let detail;

  const readDetail = async () => {
    if (open === undefined) return;
    const id = open;
    /** @type {import('./api.js').Detail} */
    const read = await ask('GET', `/sandbox/transactions/${id}`);
    // Another line was opened meanwhile.
    if (open !== id) return;
    const text = JSON.stringify(read);
    if (detail?.id === id && detail.text === text) return;
    const wereOpen = [...(detail?.id === id ? detail.element.querySelectorAll('details[open]') : [])].map(
      (one) => one.getAttribute('data-step'),
    );
    const element = detailView(read);
    for (const step of wereOpen)
      element.querySelector(`details[data-step="${step}"]`)?.setAttribute('open', '');
    detail = { id, text, element };
  };
  /** The day of the newest line: lines of that day show their time, older ones their day too. */
  const today = () => dayOf(lines[0]?.at ?? new Date().toISOString());
  let isPressed = false;
  const show = () => {
    // A click counts only where the same element was pressed and released.
    if (isPressed) return;
    none.hidden = lines.length > 0;
    keepFocus(list, () => {
      showList(
        list,
        lines,
        ({ id }) => id,
        (line) => JSON.stringify(line) + (line.id === open) + today(),
        (line) => row(line, line.id === open, today(), toggle),
      );
      const place = list.querySelector('.opened');
      if (place !== null && detail !== undefined && place.firstChild !== detail.element) {
        place.replaceChildren(detail.element);
      }
    });
  };
  list.addEventListener('pointerdown', () => {
    isPressed = true;
  });
  for (const end of ['pointerup', 'pointercancel', 'contextmenu', 'blur'])
    addEventListener(end, () => {
      if (!isPressed) return;
      isPressed = false;
      setTimeout(show);
    });
  const toggle = async (/** @type {string} */ id) => {
    open = open === id ? undefined : id;
    detail = undefined;
    await readDetail();
    show();
  };
  return {
    element: h(
      'section',
      { 'aria-labelledby': 'movements' },
      h('h2', { id: 'movements' }, t('Movements')),
      none,
      list,
    ),
    /** @param {readonly Line[]} next */
    async show(next) {
      lines = next;
      // A sandbox that was started anew does not have it any more.
      if (!lines.some(({ id }) => id === open)) open = undefined;
      await readDetail();
      show();
    },
  };
}

/**
 * @param {Line} line
 * @param {boolean} isOpen
 * @param {string} today
 * @param {(id: string) => Promise<void>} toggle
 */
function row(line, isOpen, today, toggle) {
  const { id, at, subCategory, status, amount, description, source, destination, receipt } = line;
  return h(
    'li',
    {},
    h(
      'button',
      { type: 'button', class: 'line', 'aria-expanded': String(isOpen), click: () => void toggle(id) },
      h('time', { datetime: at }, dayOf(at) === today ? timeOf(at) : dayOf(at)),
      h('span', { class: 'kind' }, kindOf(subCategory, receipt !== null)),
      h('span', { class: 'who' }, `${nameOf(source)} → ${nameOf(destination)}`),
      h('span', { class: 'concept quiet' }, description),
      h('span', { class: 'amount' }, pesos(amount)),
      h('span', { class: 'badges' }, badge(status), receipt && badge(receipt.status), webhooksOf(line)),
    ),
    isOpen && h('div', { class: 'opened' }),
  );
}

/** @param {Line['source']} party */
const nameOf = ({ alias, holderName, accountId }) => (accountId === undefined ? holderName : alias);

/** @param {Line} line */
function webhooksOf({ webhooks: { PENDING, ANSWERED, GIVEN_UP } }) {
  if (PENDING > 0) return h('span', { class: 'badge' }, t('webhook on its way'));
  if (GIVEN_UP > 0) return h('span', { class: 'badge bad' }, t('webhook given up'));
  return (
    ANSWERED > 0 && h('span', { class: 'badge good' }, ANSWERED === 1 ? '1 webhook' : `${ANSWERED} webhooks`)
  );
}
