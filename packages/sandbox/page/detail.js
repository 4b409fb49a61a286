import { act, ask } from './api.js';
import { button, h, labelled, pathText } from './dom.js';
import { keep, kept } from './kept.js';
import { RECEIPTS } from './payments.js';
import { reasonText } from './reasons.js';
import { badge, nameOf } from './states.js';
import { pesos, spanOf, t, timeOf } from './words.js';

/**
 * @typedef {import('./api.js').Detail} Detail
 * @typedef {{ at: string, label: Node | string, more?: HTMLElement | undefined, kind: string, key: string }} Step
 */

/** A transaction, with all that came of it on one axis of time. @param {Detail} detail */
export function detailView(detail) {
  const { transaction, receipt } = detail;
  const steps = stepsOf(detail).sort((a, b) => a.at.localeCompare(b.at));
  const [start, end] = [steps[0], steps.at(-1)].map((step) => Date.parse(step?.at ?? ''));
  return h(
    'section',
    { class: 'detail', 'aria-label': t('What happened') },
    h('dl', {}, ...facts(detail).flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)])),
    h('div', { class: 'actions' }, ...actions(detail)),
    receipt !== null &&
      h(
        'p',
        {},
        h('a', { href: receipt.url, target: '_blank', rel: 'noopener' }, t('Open the receipt (CEP)')),
      ),
    h('ol', { class: 'axis' }, ...steps.map((step) => onAxis(step, start ?? 0, end ?? 0))),
    h(
      'details',
      { class: 'raw', 'data-step': 'raw' },
      h('summary', {}, t('As the service answers it')),
      h('pre', { tabindex: 0 }, JSON.stringify(transaction, null, 2)),
    ),
  );
}

/** @param {Detail} detail @returns {[string, string][]} */
const facts = ({ transaction, receipt }) => [
  [t('Id'), transaction.id],
  [t('Tracking key'), transaction.trackingId],
  [t('Concept'), transaction.description],
  ...(receipt?.beneficiaryName
    ? [/** @type {[string, string]} */ ([t('Holder'), receipt.beneficiaryName])]
    : []),
];

/** @param {Detail} detail @returns {HTMLElement[]} */
function actions({ transaction: { id, subCategory, transactionStatus, amount }, receipt }) {
  const isOnTheWay = receipt?.status === 'PENDING' || receipt?.status === 'DELAYED';
  if (isOnTheWay) {
    return RECEIPTS().map(([wish, label]) =>
      button(label, () =>
        act(async () => {
          await ask('POST', '/sandbox/receipts', { transactionId: id, receipt: wish });
          return t('Done: {what}.', { what: label });
        }),
      ),
    );
  }
  if (subCategory === 'SPEI_CREDIT' && transactionStatus === 'LIQUIDATED') {
    return [
      button(t('Refund'), () =>
        act(async () => {
          await ask('POST', '/sandbox/refunds', { transactionId: id });
          return t('{amount} was sent back to the payer.', { amount: pesos(amount) });
        }),
      ),
    ];
  }
  if (transactionStatus !== 'INITIALIZED') return [];
  const end = (/** @type {'done' | 'failed'} */ outcome, /** @type {string} */ label) =>
    button(label, () =>
      act(async () => {
        const { transaction } = await ask('POST', '/sandbox/completions', { id, outcome });
        return t('It is {status} now.', { status: nameOf(transaction.transactionStatus) });
      }),
    );
  return [end('done', t('Settle now')), end('failed', t('Fail now'))];
}

/** @param {Detail} detail @returns {Step[]} */
function stepsOf({ trail, movements, calls, deliveries }) {
  return [
    ...calls.map(({ at, method, path, status }, index) => ({
      at,
      key: `call-${index}`,
      kind: 'call',
      label: h(
        'span',
        {},
        'REST ',
        h('code', {}, method),
        ' ',
        pathText(path, path.replace(/^\/v1\/clients\/[^/]+/, '…')),
        ' ',
        h(
          'span',
          { class: status === null || status >= 400 ? 'badge bad' : 'badge good' },
          status === null ? t('no complete answer') : String(status),
        ),
      ),
    })),
    ...trail.map(({ at, of, status }, index) => ({
      at,
      key: `trail-${index}`,
      kind: of,
      label: h('span', {}, of === 'receipt' ? t('Receipt') : t('Transaction'), ' ', badge(status)),
    })),
    ...movements.map(({ at, from, to, amount }, index) => ({
      at,
      key: `movement-${index}`,
      kind: 'movement',
      label: `${pesos(amount)}: ${placeOf(from)} → ${placeOf(to)}`,
    })),
    ...deliveries.flatMap(attemptsOf),
  ];
}

/** An account of the ledger, in words. @param {string} account */
const placeOf = (account) =>
  account.startsWith('held:') ? t('held') : account.startsWith('account:') ? t('account') : 'SPEI';

/** @param {Detail['deliveries'][number]} delivery @returns {Step[]} */
function attemptsOf({ id, webhookType, url, body, attempts, state }) {
  return attempts.map(({ at, status, body: reply, error }, index) => {
    const isLast = index === attempts.length - 1;
    const isBad = status === null || status >= 400;
    const answer = status === null ? reasonText(error ?? 'no answer') : String(status);
    return {
      at,
      key: `${id}-${index}`,
      kind: isBad ? 'webhook bad' : 'webhook',
      label: h(
        'span',
        {},
        `Webhook ${webhookType}`,
        index > 0 ? ` (${t('retry {number}', { number: index })})` : '',
        ' ',
        h('span', { class: isBad ? 'badge bad' : 'badge good' }, answer),
        isLast && state === 'PENDING' ? ` ${t('another try follows')}` : '',
        isLast && state === 'GIVEN_UP' ? ` ${t('given up')}` : '',
      ),
      more: h(
        'div',
        {},
        h('p', {}, 'POST ', h('code', {}, url)),
        h('pre', { tabindex: 0 }, JSON.stringify(body, null, 2)),
        reply !== null && reply !== '' && h('p', {}, t('Answer'), ': ', h('code', {}, reply)),
        sendForm(id),
      ),
    };
  });
}

/** Where people's own handlers often listen. */
const HANDLER = 'http://127.0.0.1:3000/webhooks';
const HANDLER_KEY = 'pasarela:handler';

/** Sends a message again: to where its webhook points, or to a handler of one's own. @param {string} id */
function sendForm(id) {
  const url = h('input', {
    type: 'url',
    required: true,
    pattern: 'https?://.+',
    value: kept(HANDLER_KEY) ?? HANDLER,
  });
  return h(
    'form',
    {
      class: 'send',
      submit: (event) => {
        event.preventDefault();
        keep(HANDLER_KEY, url.value);
        void act(async () => {
          const { status } = await ask('POST', `/sandbox/deliveries/${id}/send`, { url: url.value });
          return t('Your handler answered with {status}.', { status });
        });
      },
    },
    button(t('Send again'), () =>
      act(async () => {
        const sent = await ask('POST', `/sandbox/deliveries/${id}/resend`, {});
        const last = sent.attempts.at(-1);
        return t('Sent again. The answer: {answer}.', {
          answer: last?.status ?? reasonText(last?.error ?? 'no answer'),
        });
      }),
    ),
    labelled(t('or to your own handler'), url),
    h('button', {}, t('Send there')),
  );
}

/**
 * @param {Step} step
 * @param {number} start
 * @param {number} end
 */
function onAxis({ at, label, more, kind, key }, start, end) {
  const passed = Date.parse(at) - start;
  const place = end === start ? 0 : (passed / (end - start)) * 100;
  const mark = h('span', { class: 'mark' });
  mark.style.setProperty('left', `${place}%`);
  const text =
    more === undefined
      ? h('div', {}, label)
      : h('details', { 'data-step': key }, h('summary', {}, label), more);
  return h(
    'li',
    { class: kind },
    h('time', { datetime: at, title: timeOf(at) }, spanOf(passed)),
    h('span', { class: 'lane', 'aria-hidden': 'true' }, mark),
    text,
  );
}
