import { t } from './words.js';

/** What stands for itself in an error body, as a sentence. @type {Readonly<Record<string, string>>} */
const SENTENCES = {
  transaction_not_found: 'There is no such transaction.',
  nothing_pending: 'Nothing of it is on its way any more.',
  delivery_not_found: 'This message is no longer kept.',
  fault_not_found: 'This fault is disarmed already.',
  clabe_not_found: 'There is no such account.',
};

/**
 * A reason of the sandbox, in the visitor's language where the page knows it.
 *
 * @param {string} reason
 */
export function reasonText(reason) {
  const [, where] = /^connect ECONNREFUSED(.*)$/.exec(reason) ?? [];
  if (where !== undefined) return t('connect ECONNREFUSED') + where;
  const [, host] = /^Webhooks go to this machine, .* and not to (.+)\.$/.exec(reason) ?? [];
  if (host !== undefined)
    return t('Webhooks go to this machine, to PUBLIC_URL and to SANDBOX_WEBHOOK_HOSTS, and not to {host}.', {
      host,
    });
  if (/^other side closed$|ECONNRESET/.test(reason)) return t('the connection was closed without an answer');
  if (/aborted due to timeout/.test(reason)) return t('no answer in time');
  return t(SENTENCES[reason] ?? reason);
}
