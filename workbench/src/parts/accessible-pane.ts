import { type RefObject, useEffect } from 'react';
import { t } from '../words.ts';

/**
 * Makes the panes of GraphiQL's plugins usable by keyboard and for screen readers: the explorer's fields are spans that only a
 * mouse can press, its fields for text have no names, and the history's buttons have names that are not what they show.
 */
export function useAccessiblePane(pane: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = pane.current;
    if (element === null) return;
    const repair = () => {
      for (const field of element.querySelectorAll<HTMLElement>('[data-field-name]')) repairField(field);
      for (const argument of element.querySelectorAll<HTMLElement>('[data-arg-name] > span:first-child'))
        repairArgument(argument);
      for (const input of element.querySelectorAll<HTMLElement>('.graphiql-explorer-root :is(input, select)'))
        set(
          input,
          'aria-label',
          input.getAttribute('placeholder') ??
            input.closest('[data-arg-name]')?.getAttribute('data-arg-name') ??
            t('Kind'),
        );
      for (const button of element.querySelectorAll('.graphiql-history-item-label'))
        button.removeAttribute('aria-label');
      for (const heading of element.querySelectorAll('.doc-explorer-title')) {
        if (heading.textContent !== t('Explorer')) heading.textContent = t('Explorer');
      }
      for (const close of element.querySelectorAll('.docExplorerHide')) set(close, 'aria-hidden', 'true');
    };
    const press = (event: KeyboardEvent) => {
      const { target } = event;
      if (!(target instanceof HTMLElement) || !target.matches('[data-pressed-by-key]')) return;
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      target.click();
    };
    const observer = new MutationObserver(repair);
    observer.observe(element, {
      childList: true,
      subtree: true,
      attributes: true,
      attributeFilter: ['aria-label'],
    });
    element.addEventListener('keydown', press);
    repair();
    return () => {
      observer.disconnect();
      element.removeEventListener('keydown', press);
    };
  });
}

/** A field that has fields of its own opens; any other is chosen. */
function repairField(field: HTMLElement): void {
  const isLeaf = field.querySelector(':scope > svg') !== null;
  const isOpen = (field.closest('.graphiql-explorer-node')?.nextElementSibling ?? null) !== null;
  makePressable(field, isLeaf ? 'checkbox' : 'button', field.getAttribute('data-field-name') ?? '');
  if (isLeaf) set(field, 'aria-checked', String(isChosen(field)));
  else
    set(
      field,
      'aria-expanded',
      String(
        isOpen &&
          field
            .closest('.graphiql-explorer-node')
            ?.parentElement?.className.includes('graphiql-explorer-') === true,
      ),
    );
}

function repairArgument(argument: HTMLElement): void {
  makePressable(argument, 'checkbox', argument.parentElement?.getAttribute('data-arg-name') ?? '');
  set(argument, 'aria-checked', String(isChosen(argument)));
}

/** The mark of what is chosen has a tick in it. */
const isChosen = (element: Element): boolean => element.querySelector(':scope > svg > path') !== null;

function makePressable(element: HTMLElement, role: string, name: string): void {
  set(element, 'role', role);
  set(element, 'aria-label', name);
  set(element, 'tabindex', '0');
  set(element, 'data-pressed-by-key', '');
}

/** An attribute that is written again as it is would be a change to observe. */
function set(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
