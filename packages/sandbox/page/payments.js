import { act, ask } from './api.js';
import { button, h, labelled } from './dom.js';
import { pesos, t } from './words.js';

/** @typedef {import('./api.js').Client} Client */

/** @param {string} text such as `12` or `12.5` @returns {string} with two decimals */
const inCents = (text) => {
  const [whole = '0', cents = ''] = text.split('.');
  return `${whole}.${cents.padEnd(2, '0')}`;
};

const amountField = (/** @type {string} */ value) =>
  h('input', { inputmode: 'decimal', required: true, pattern: '\\d{1,12}(\\.\\d{1,2})?', size: 10, value });

/** @param {string} value @param {string} label */
const option = (value, label) => h('option', { value }, label);

/**
 * A form that does one thing.
 *
 * @param {string} title
 * @param {string} verb
 * @param {() => Promise<string>} deed
 * @param {...Node} fields
 */
const form = (title, verb, deed, ...fields) =>
  h(
    'details',
    { name: 'payment' },
    h('summary', {}, title),
    h(
      'form',
      {
        submit: (event) => {
          event.preventDefault();
          void act(deed);
        },
      },
      ...fields,
      h('button', { class: 'primary' }, verb),
    ),
  );

/** What people outside and the client itself can do with money. @param {Client} client */
export function paymentsPanel(client) {
  const credit = creditForm(client);
  credit.open = true;
  return h(
    'section',
    { class: 'panel', 'aria-labelledby': 'payments' },
    h('h2', { id: 'payments' }, t('Move money')),
    credit,
    transferForm(client),
    validationForm(client),
    h(
      'p',
      {},
      button(t('Refund the latest credit'), () =>
        act(async () => {
          const { refund } = await ask('POST', '/sandbox/refunds', {});
          return t('{amount} was sent back to the payer.', { amount: pesos(refund.amount) });
        }),
      ),
    ),
  );
}

/** @param {Client} client */
function creditForm({ accounts }) {
  const to = h('select', {}, ...accounts.map(({ clabe, alias }) => option(clabe, alias)));
  const amount = amountField('1250.00');
  const payer = h('input', { value: 'Ana Torres', required: true });
  const concept = h('input', { value: 'Factura 101' });
  return form(
    t('A credit arrives by SPEI'),
    t('Simulate the credit'),
    async () => {
      const { transaction } = await ask('POST', '/sandbox/spei-credits', {
        clabe: to.value,
        amount: inCents(amount.value),
        payerName: payer.value,
        concept: concept.value,
      });
      const values = { amount: pesos(inCents(amount.value)), payer: payer.value };
      return transaction.transactionStatus === 'INITIALIZED'
        ? t('{amount} from {payer} arrived, and is held until its webhook is answered.', values)
        : t('{amount} from {payer} arrived.', values);
    },
    labelled(t('To'), to),
    labelled(t('Amount'), amount),
    labelled(t('Payer'), payer),
    labelled(t('Concept'), concept),
  );
}

/** @param {Client} client */
const authorization = ({ accessToken }) => ({ authorization: `Bearer ${accessToken}` });

/** The token of this moment: the page may be older than the one that it began with. */
const currentClient = () => /** @type {Promise<Client>} */ (ask('GET', '/sandbox'));

/** @param {Client} client */
function transferForm({ accounts, instruments, clientId }) {
  const inside = new Set(accounts.map(({ instrumentId }) => instrumentId));
  const from = h('select', {}, ...accounts.map(({ instrumentId, alias }) => option(instrumentId, alias)));
  const group = (/** @type {string} */ label, /** @type {string} */ role) =>
    h(
      'optgroup',
      { label },
      ...instruments.filter((one) => one.role === role).map(({ id, alias }) => option(id, alias)),
    );
  const to = h(
    'select',
    {},
    group(t('Own accounts (internal)'), 'internal'),
    group(t('CLABE at another bank'), 'clabe'),
    group(t('Debit card'), 'card'),
  );
  to.selectedIndex = 1;
  const amount = amountField('150.00');
  const concept = h('input', { value: 'Pago de prueba', maxlength: 39 });
  return form(
    t('A transfer leaves'),
    t('Transfer'),
    async () => {
      const isInternal = inside.has(to.value);
      const body = {
        client_id: clientId,
        source_instrument_id: from.value,
        destination_instrument_id: to.value,
        transaction_request: {
          amount: inCents(amount.value),
          currency: 'MXN',
          description: concept.value,
          external_reference: '1234567',
        },
      };
      const path = `/v1/transactions/${isInternal ? 'internal_transaction' : 'money_out'}`;
      await ask('POST', path, body, authorization(await currentClient()));
      return isInternal
        ? t('{amount} moved between the two accounts.', { amount: pesos(inCents(amount.value)) })
        : t('{amount} is on its way by SPEI.', { amount: pesos(inCents(amount.value)) });
    },
    labelled(t('From'), from),
    labelled(t('To'), to),
    labelled(t('Amount'), amount),
    labelled(t('Concept'), concept),
  );
}

/** What may become of a receipt, beside the ordinary. */
export const RECEIPTS = () =>
  /** @type {const} */ ([
    ['now', t('Receipt now')],
    ['late', t('Receipt late')],
    ['never', t('No receipt')],
    ['other-holder', t('Another holder')],
  ]);

/** @param {Client} client */
function validationForm({ instruments, clientId, centralizingInstrumentId }) {
  const receivers = instruments.filter(({ role }) => role === 'clabe');
  const to = h('select', {}, ...receivers.map(({ id, alias }) => option(id, alias)));
  const receipt = h(
    'select',
    {},
    option('', t('As usual: after 90 s')),
    ...RECEIPTS().map(([value, label]) => option(value, label)),
  );
  return form(
    t('A penny validation'),
    t('Validate'),
    async () => {
      const made = await ask(
        'POST',
        '/v1/transactions/penny_validation',
        {
          client_id: clientId,
          source_instrument_id: centralizingInstrumentId,
          destination_instrument_id: to.value,
        },
        authorization(await currentClient()),
      );
      if (receipt.value !== '') {
        await ask('POST', '/sandbox/receipts', { transactionId: made.id, receipt: receipt.value });
      }
      return t('0.01 MXN was sent, and its receipt will name the holder.');
    },
    labelled(t('To'), to),
    labelled(t('Receipt'), receipt),
  );
}
