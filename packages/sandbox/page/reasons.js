import { t } from './words.js';

/** What stands for itself in an error body, as a sentence. @type {Readonly<Record<string, string>>} */
const SENTENCES = {
  transaction_not_found: 'There is no such transaction.',
  nothing_pending: 'Nothing of it is on its way any more.',
  delivery_not_found: 'This message is no longer kept.',
};

/**
 * A reason of the sandbox, in the visitor's language where the page knows it.
 *
 * @param {string} reason
 */
export function reasonText(reason) {
  const [, where] = /^connect ECONNREFUSED(.*)$/.exec(reason) ?? [];
  return where === undefined ? t(SENTENCES[reason] ?? reason) : t('connect ECONNREFUSED') + where;
}
