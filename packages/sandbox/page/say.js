import { h } from './dom.js';

/** How long a sentence is shown: long enough to be read, and no longer. */
const SHOWN_MS = 8_000;

export const said = h('p', { class: 'said', role: 'status' });

/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * Says what has been done, for a while; what went wrong stays until something else is said.
 *
 * @param {string} text
 * @param {boolean} [isBad]
 */
export function say(text, isBad = false) {
  clearTimeout(timer);
  said.textContent = text;
  said.classList.toggle('bad', isBad);
  if (!isBad) timer = setTimeout(() => said.replaceChildren(), SHOWN_MS);
}
