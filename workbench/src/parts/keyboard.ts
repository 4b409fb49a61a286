import { type RefObject, useEffect } from 'react';

/** Where the focus goes on when what had it is gone, by the part of the page that it was in; the part itself where nothing is named. */
const HOMES: readonly (readonly [part: string, place: string | undefined])[] = [
  ['.wb-toolbar', '.graphiql-execute-button'],
  ['.wb-tabs', '[role="tab"][aria-selected="true"]'],
  ['.wb-results', undefined],
  ['.wb-pane', 'button, input, a[href], [tabindex="0"]'],
  ['.wb-page', '.graphiql-execute-button'],
];

/** Keeps the place of who uses the keyboard: a button may be gone once it is pressed, and the browser would begin at the top. */
export function useKeptFocus(page: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = page.current;
    if (element === null) return;
    let around: readonly EventTarget[] = [];
    const remember = (event: FocusEvent) => {
      around = event.composedPath();
    };
    const restore = () => {
      const [had] = around;
      if (document.activeElement !== document.body || !(had instanceof Element) || had.isConnected) return;
      const home = homeOf(around);
      // Before the home takes the focus: it is remembered then, and may be gone next.
      around = [];
      // What was played for may just have been brought into view.
      home?.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(restore);
    observer.observe(element, { childList: true, subtree: true });
    element.addEventListener('focusin', remember);
    return () => {
      observer.disconnect();
      element.removeEventListener('focusin', remember);
    };
  }, [page]);
}

function homeOf(around: readonly EventTarget[]): HTMLElement | undefined {
  for (const [part, place] of HOMES) {
    const element = around.find((one) => one instanceof HTMLElement && one.isConnected && one.matches(part));
    if (!(element instanceof HTMLElement)) continue;
    const home = place === undefined ? element : element.querySelector<HTMLElement>(place);
    if (home !== null) return home;
  }
  return undefined;
}

/** What an editor may have open above its text. */
const OPEN =
  '.suggest-widget.visible, .parameter-hints-widget.visible, .find-widget.visible, .quick-input-widget, .monaco-menu';

/** Leaves an editor by Escape, since it keeps Tab for itself. Where it has something open, Escape closes that. */
export function useWayOutOfEditors(): void {
  useEffect(() => {
    const press = ({ target, key }: KeyboardEvent) => {
      if (key !== 'Escape' || !(target instanceof Element)) return;
      const editor = target.closest('.monaco-editor');
      if (editor === null || [...document.querySelectorAll(OPEN)].some((one) => one.checkVisibility()))
        return;
      editor.closest<HTMLElement>('[tabindex="0"]')?.focus();
    };
    // The editor lets no Escape through.
    window.addEventListener('keydown', press, { capture: true });
    return () => window.removeEventListener('keydown', press, { capture: true });
  }, []);
}
