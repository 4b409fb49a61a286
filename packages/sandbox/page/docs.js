import { ask } from './api.js';
import { h, labelled, pathText } from './dom.js';
import { header } from './header.js';
import { language, t } from './words.js';

/**
 * @typedef {import('../src/reference-entry.ts').ReferenceEntry} Entry
 * @typedef {{ apiKey: string, accessToken: string, entries: Entry[] }} Reference
 */

/** @type {Reference} */
const reference = await ask('GET', '/docs/reference');

/** Takes the credentials of this moment: the page may be open for longer than its token is good. */
async function renewCredentials() {
  const { apiKey, accessToken } = /** @type {import('./api.js').Client} */ (await ask('GET', '/sandbox'));
  Object.assign(reference, { apiKey, accessToken });
}

/** @param {Entry} entry @returns {Record<string, string>} */
const headersOf = ({ auth }) =>
  auth === 'token'
    ? { authorization: `Bearer ${reference.accessToken}` }
    : auth === 'key'
      ? { 'x-api-key': reference.apiKey }
      : {};

/** @param {string} text */
const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The fields of webhooks' ids, which a webhook that is registered here fills in. @type {HTMLInputElement[]} */
const webhookIds = [];

/** @param {Entry} entry @param {string} answer */
function fillIn({ method, path }, answer) {
  if (method !== 'POST' || !path.endsWith('/webhooks')) return;
  for (const field of webhookIds) {
    field.value = JSON.parse(answer).id;
    field.dispatchEvent(new Event('input'));
  }
}

/** One endpoint: what it does, with what, as a line of the shell, and a button that sends it. @param {Entry} entry */
function endpoint(entry) {
  const fields = (/** @type {Record<string, string>} */ values) =>
    Object.entries(values).map(([name, value]) => ({
      name,
      field: h('input', { value, input: show, spellcheck: 'false' }),
    }));
  const parameters = fields(entry.parameters);
  for (const { name, field } of parameters) {
    field.required = true;
    if (name !== 'id') continue;
    field.placeholder = t('Register a webhook first');
    webhookIds.push(field);
  }
  const query = fields(entry.query);
  const body = h('textarea', { rows: 8, spellcheck: 'false', input: show });
  body.value = entry.body === null ? '' : JSON.stringify(entry.body, null, 2);
  body.rows = body.value.split('\n').length;
  const curl = h('pre', { tabindex: 0, class: 'curl' });
  const answer = h('div', { class: 'answer', 'aria-live': 'polite' });

  const path = () => {
    const filled = parameters.reduce(
      (text, { name, field }) => text.replace(`{${name}}`, encodeURIComponent(field.value)),
      entry.path,
    );
    const asked = query
      .filter(({ field }) => field.value !== '')
      .map(({ name, field }) => [name, field.value]);
    return asked.length === 0 ? filled : `${filled}?${new URLSearchParams(asked)}`;
  };
  const headers = () => ({
    ...headersOf(entry),
    ...(entry.body === null ? {} : { 'content-type': 'application/json' }),
  });
  function show() {
    curl.textContent = [
      `curl -s${entry.method === 'GET' ? '' : `X ${entry.method}`} ${inShell(location.origin + path())}`,
      ...Object.entries(headers()).map(([name, value]) => `-H ${inShell(`${name}: ${value}`)}`),
      ...(entry.body === null ? [] : [`-d ${inShell(body.value.replaceAll(/\n\s*/g, ' '))}`]),
    ].join(' \\\n  ');
  }
  show();
  const send = async () => {
    try {
      await renewCredentials();
      show();
      const start = performance.now();
      const response = await fetch(path(), {
        method: entry.method,
        headers: headers(),
        ...(entry.body === null ? {} : { body: body.value }),
      });
      const text = await response.text();
      if (response.ok) fillIn(entry, text);
      const took = `${Math.round(performance.now() - start)} ms`;
      const status = h('span', { class: response.ok ? 'badge good' : 'badge bad' }, String(response.status));
      answer.replaceChildren(h('p', {}, status, ' ', took), h('pre', { tabindex: 0 }, pretty(text)));
    } catch {
      answer.replaceChildren(h('p', { class: 'bad' }, t('No answer came.')));
    }
  };
  const id = `${entry.method} ${entry.path}`;
  return h(
    'details',
    { class: 'endpoint', id: id.replaceAll(/[^\w]+/g, '-') },
    h(
      'summary',
      {},
      h('code', { class: 'method' }, entry.method),
      ' ',
      pathText(entry.path),
      h('span', {}, entry.summary[language]),
    ),
    h(
      'form',
      {
        submit: (event) => {
          event.preventDefault();
          void send();
        },
      },
      ...[...parameters, ...query].map(({ name, field }) => labelled(name, field)),
      entry.body !== null && labelled(t('Body'), body),
      h('div', { class: 'actions' }, h('button', { class: 'primary' }, t('Try it')), copy(curl)),
      curl,
      answer,
    ),
  );
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text === '' ? t('(no body)') : text;
  }
}

const SHOWN_MS = 1_500;

/** @param {HTMLElement} of */
function copy(of) {
  const label = t('Copy as curl');
  const said = h('span', { 'aria-live': 'polite' }, label);
  return h(
    'button',
    {
      type: 'button',
      click: async () => {
        try {
          await navigator.clipboard.writeText(of.textContent ?? '');
          said.textContent = t('Copied');
        } catch {
          // Pages that are opened under another name than this machine's have no clipboard.
          said.textContent = t('The browser does not allow it');
        }
        setTimeout(() => {
          said.textContent = label;
        }, SHOWN_MS);
      },
    },
    said,
  );
}

const [service, control] = [
  reference.entries.filter(({ number }) => number !== null),
  reference.entries.filter(({ number }) => number === null),
];

document.body.append(
  header('/docs'),
  h(
    'main',
    {},
    h(
      'p',
      {},
      t('Each request below can be sent as it stands, with ids and a token of the demo client.'),
      ' ',
      h(
        'a',
        { href: '/docs/guide', hreflang: 'en' },
        t('The guide says how everything behaves (plain text).'),
      ),
    ),
    h('h2', {}, t('The REST service')),
    ...service.map(endpoint),
    h('h2', {}, t('The control of this sandbox')),
    ...control.map(endpoint),
  ),
);

// An address with a # opens what it names.
const named = document.getElementById(location.hash.slice(1));
if (named instanceof HTMLDetailsElement) named.open = true;
