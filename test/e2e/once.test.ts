import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { snippets } from '../docs/client-pages.ts';
import { startClientSite } from '../helpers/client-site.ts';

let site: Awaited<ReturnType<typeof startClientSite>>;
let context: BrowserContext;
/** What all tabs have shown, in order. */
let shown: string[];
beforeAll(async () => {
  site = await startClientSite();
});
afterAll(() => site?.[Symbol.asyncDispose]());
beforeEach(async () => {
  shown = [];
  context = await site.browser.newContext();
  await context.exposeFunction('tell', (id: string) => void shown.push(id));
});
afterEach(() => context.close());

/** Opens a tab with the program of the page, and its store as `store`. */
async function openTab(): Promise<Page> {
  const tab = await context.newPage();
  await tab.goto(site.origin);
  const code = (snippets.get('once') ?? '').replace("'@pasarela/client'", `'${site.origin}/index.js'`);
  await tab.evaluate(`(async (code) => {
    const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
    Object.assign(window, await import(url));
    window.store = bannerStore('feed');
    await store.load();
  })(${JSON.stringify(code)})`);
  return tab;
}

const save = (tab: Page, id: string, cursor = id, decision = 'ACCEPTED') =>
  tab.evaluate(
    `store.save(${JSON.stringify({ transactionId: id, cursor, decision })}, ${JSON.stringify(cursor)})`,
  );
const show = (tab: Page, how = 'async ({ transactionId }) => void (await tell(transactionId))') =>
  tab.evaluate(`void showBanners(${how})`);

it('two tabs show each credit once between them, though both save it, and it comes again', async () => {
  const [one, other] = [await openTab(), await openTab()];
  for (const tab of [one, other]) await show(tab);
  for (const id of ['a', 'b']) for (const tab of [one, other]) await save(tab, id);
  await save(one, 'a', 'again');
  await save(one, 'refused', 'refused', 'REJECTED');
  await save(one, 'c');
  await expect.poll(() => shown).toEqual(['a', 'b', 'c']);
  expect(await one.evaluate('store.load()')).toMatchObject({ cursor: 'c' });
});

it('a credit that was saved as its page ended is shown by the next, and by a tab that goes on for one that has gone', async () => {
  const first = await openTab();
  await save(first, 'a');
  await first.close();
  const [one, other] = [await openTab(), await openTab()];
  await show(one);
  await expect.poll(() => shown).toEqual(['a']);
  await show(other);
  await one.close();
  await save(other, 'b');
  await expect.poll(() => shown).toEqual(['a', 'b']);
});

it('a credit whose page ended between its banner and its mark is shown once more', async () => {
  const first = await openTab();
  await show(
    first,
    'async ({ transactionId }) => { await tell(transactionId); await new Promise(() => {}); }',
  );
  await save(first, 'a');
  await expect.poll(() => shown).toEqual(['a']);
  await first.close();
  await show(await openTab());
  await expect.poll(() => shown).toEqual(['a', 'a']);
});

it('a tab that cannot show a banner leaves it to another', async () => {
  const [one, other] = [await openTab(), await openTab()];
  await save(one, 'a');
  const failed = one.evaluate(
    "showBanners(() => { throw new Error('no'); }).catch(({ message }) => message)",
  );
  expect(await failed).toBe('no');
  await show(other);
  await expect.poll(() => shown).toEqual(['a']);
});

it('a list that was removed meanwhile ends the feed, and leaves no banner', async () => {
  const tab = await openTab();
  await save(tab, 'a');
  await tab.evaluate(
    "new Promise((resolve) => { indexedDB.deleteDatabase('banners').onsuccess = resolve; }).then(() => {})",
  );
  const code = tab.evaluate(
    `store.save({ transactionId: 'b', cursor: 'b', decision: 'ACCEPTED' }, 'b').then(() => 'kept', ({ code }) => code)`,
  );
  expect(await code).toBe('STORE_REMOVED');
  await show(tab);
  await save(await openTab(), 'c');
  await expect.poll(() => shown).toEqual(['c']);
});
