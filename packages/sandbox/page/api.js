import { reasonText } from './reasons.js';
import { say } from './say.js';
import { t } from './words.js';

/**
 * @typedef {import('../src/overview.ts').OverviewView} Overview
 * @typedef {import('../src/overview.ts').TransactionView} Line
 * @typedef {import('../src/overview.ts').TransactionDetailView} Detail
 * @typedef {import('../src/control-views.ts').ClientView} Client
 */

/**
 * Asks the sandbox.
 *
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>} the answer's body; the types of the views say what it holds
 * @throws {Error} with the sandbox's own reason
 */
export async function ask(method, path, body, headers = {}) {
  const response = await fetch(path, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new Error(t('No answer came.'));
  });
  const text = await response.text();
  const answer = parsed(text);
  if (!response.ok)
    throw new Error(reasonOf(answer) ?? t('Refused with status {status}.', { status: response.status }));
  return answer;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The service's error body: docs/upstream-api.md, "Errors".
 *
 * @param {any} answer
 * @returns {string | undefined}
 */
function reasonOf(answer) {
  const reason = answer?.details?.[0]?.metadata?.error_detail ?? answer?.message;
  return typeof reason === 'string' ? reasonText(reason) : undefined;
}

/**
 * Does a thing and says what came of it.
 *
 * @param {() => Promise<string>} deed resolves with a sentence
 */
export async function act(deed) {
  try {
    say(await deed());
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true);
  }
  wake();
}

/** @type {() => void} */
let wake = () => {};

const EVERY_MS = 1_000;

/**
 * Reads what the page shows, again and again while somebody looks at it, and at once after each deed.
 *
 * @param {() => Promise<void>} read
 */
export async function keepReading(read) {
  for (;;) {
    if (document.visibilityState === 'visible') await read();
    await new Promise((resolve) => {
      wake = () => resolve(undefined);
      setTimeout(resolve, EVERY_MS);
    });
  }
}
