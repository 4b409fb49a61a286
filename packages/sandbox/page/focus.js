/** What keeps its place where a part of the page is made again. */
const KEPT = 'a, button, input, summary, pre[tabindex]';

/**
 * Where an element is: the entry of a list, the step of an axis, and what it is called there.
 *
 * @param {Element} element
 */
function placeOf(element) {
  const entry = element.closest('[data-key]')?.getAttribute('data-key');
  const step = element.closest('[data-step]')?.getAttribute('data-step');
  const name =
    element.closest('label')?.textContent ?? (element.matches('summary') ? '' : element.textContent);
  return JSON.stringify([entry, step, element.tagName, name]);
}

/**
 * What was typed, by its place.
 *
 * @param {Element} container
 */
const typedIn = (container) =>
  new Map(
    [...container.querySelectorAll('input')]
      .filter((input) => input.value !== input.defaultValue)
      .map((input) => [placeOf(input), input.value]),
  );

/**
 * Changes a part of the page. What has the focus keeps it, and so does what is typed. Where that is no longer there, the
 * entry that it belonged to has the focus, else the first of the list, else the heading above.
 *
 * @param {Element} container
 * @param {() => void} change
 */
export function keepFocus(container, change) {
  const focused = document.activeElement;
  const isHere = focused !== null && container.contains(focused);
  const place = isHere ? placeOf(focused) : '';
  const entry = isHere ? focused.closest('[data-key]')?.getAttribute('data-key') : undefined;
  const typed = typedIn(container);
  change();
  for (const input of container.querySelectorAll('input')) {
    const value = typed.get(placeOf(input));
    if (value !== undefined && input.value !== value) input.value = value;
  }
  if (!isHere || document.activeElement === focused) return;
  const kept = /** @type {HTMLElement[]} */ ([...container.querySelectorAll(KEPT)]);
  const same = focused.isConnected ? focused : kept.find((one) => placeOf(one) === place);
  const near = kept.find((one) => one.closest('[data-key]')?.getAttribute('data-key') === entry);
  const next = same ?? near ?? kept[0] ?? headingOf(container);
  if (next instanceof HTMLElement) next.focus({ preventScroll: true });
}

/** @param {Element} container */
export function headingOf(container) {
  const heading = container.closest('section')?.querySelector('h2');
  heading?.setAttribute('tabindex', '-1');
  return heading;
}
