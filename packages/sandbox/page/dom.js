import { keepFocus } from './focus.js';

/**
 * @typedef {Node | string | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | undefined | ((event: Event) => void)>} Properties
 */

/**
 * Makes an element. A function becomes a listener of the event that it is named after; true and false set and leave out an
 * attribute. Text never becomes markup.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Shows a list in a container. An element is made again only where what it shows has changed; no other is moved.
 *
 * @template Item
 * @param {Element} container
 * @param {readonly Item[]} items
 * @param {(item: Item) => string} keyOf
 * @param {(item: Item) => string} stateOf all that the element shows, as text
 * @param {(item: Item) => HTMLElement} make
 */
export function showList(container, items, keyOf, stateOf, make) {
  const before = new Map([...container.children].map((child) => [child.getAttribute('data-key'), child]));
  const after = items.map((item) => {
    const [key, state] = [keyOf(item), stateOf(item)];
    const known = before.get(key);
    if (known?.getAttribute('data-state') === state) return known;
    const made = make(item);
    made.setAttribute('data-key', key);
    made.setAttribute('data-state', state);
    return made;
  });
  keepFocus(container, () => {
    for (const child of before.values()) if (!after.includes(child)) child.remove();
    for (const [at, child] of after.entries()) {
      const there = container.children[at] ?? null;
      if (there !== child) container.insertBefore(child, there);
    }
  });
}

/**
 * A path, which goes on in another line at a `/`, `?` or `&`. The whole is in its title.
 *
 * @param {string} path
 * @param {string} [shown]
 */
export const pathText = (path, shown = path) =>
  h(
    'code',
    { class: 'path', title: path },
    ...shown.split(/(?<!…)(?=[/?&])/).map((part) => h('span', {}, part)),
  );

/**
 * @param {string} label
 * @param {HTMLElement} field
 */
export const labelled = (label, field) => h('label', {}, h('span', {}, label), field);

/**
 * @param {string} label
 * @param {() => Promise<unknown> | void} act
 * @param {Properties} [properties]
 */
export const button = (label, act, properties = {}) =>
  h('button', { type: 'button', ...properties, click: () => void act() }, label);
