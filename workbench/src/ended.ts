import { t } from './words.ts';

/**
 * Says that the page has ended, in the place where React has just taken everything away. It does so where its drawing
 * fails: an extension or a translation of the browser that moves nodes suffices.
 */
export function showEnd(root: HTMLElement): void {
  const main = document.createElement('main');
  main.className = 'graphiql-container wb-page wb-alone';
  const title = document.createElement('h1');
  title.textContent = t('The page has ended');
  const reason = document.createElement('p');
  reason.setAttribute('role', 'alert');
  reason.textContent = t(
    'It can no longer be drawn. A translation or an extension of the browser may have changed it.',
  );
  const again = document.createElement('button');
  again.type = 'button';
  again.className = 'wb-button wb-primary';
  again.textContent = t('Load the page again');
  again.onclick = () => location.reload();
  main.append(title, reason, again);
  root.replaceChildren(main);
}
