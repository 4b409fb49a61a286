import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { snippets } from '../docs/client-pages.ts';
import { startClientSite } from '../helpers/client-site.ts';
import { control } from '../helpers/gateway.ts';
import { startRestartable } from '../helpers/restartable.ts';

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

it('a credit that was refused before its banner was shown gets none, unless it is accepted after that', async () => {
  const tab = await openTab();
  await save(tab, 'a');
  await save(tab, 'a', 'a refused', 'REJECTED');
  await save(tab, 'b');
  await show(tab);
  await expect.poll(() => shown).toContain('b');
  expect(shown).toEqual(['b']);
  await save(tab, 'a', 'a accepted');
  await expect.poll(() => shown).toEqual(['b', 'a']);
  // One that was shown stays the only one.
  await save(tab, 'a', 'a refused again', 'REJECTED');
  await save(tab, 'a', 'a accepted again');
  await save(tab, 'c');
  await expect.poll(() => shown).toEqual(['b', 'a', 'c']);
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

it('after a gap a credit from before the first start gets no banner, and each later one does', async () => {
  const tab = await openTab();
  await show(tab);
  const [before, after] = ['2000-01-01T00:00:00Z', '2100-01-01T00:00:00Z'];
  const arrives = (id: string, receivedAt: string) =>
    tab.evaluate(
      `store.save(${JSON.stringify({ transactionId: id, cursor: id, decision: 'ACCEPTED', receivedAt })}, '${id}')`,
    );
  await tab.evaluate("store.save(undefined, 'start')");
  // Without a gap nothing is older than the first start, whatever the clocks say.
  await arrives('live', before);
  await tab.evaluate("store.save({ gap: true, reason: 'EVENTS_GAP', cursor: 'gap' }, 'gap')");
  await arrives('old', before);
  await arrives('missed', after);
  await expect.poll(() => shown).toEqual(['live', 'missed']);
});

it('the whole program shows a banner for each credit of its account, also for one that came while notifications were not allowed', async () => {
  await using gateway = await startRestartable({ CORS_ORIGINS: site.origin });
  const { accounts, accessToken } = await control(gateway.sandbox, 'GET', '/sandbox');
  const [clabe, other] = [accounts[0].clabe, accounts.at(-1).clabe];
  const arrives = (to: string, amount: string) =>
    control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe: to, amount });
  const [note = ''] = /export const note = .*?;\n/s.exec(snippets.get('app') ?? '') ?? [];
  const app = `export const url = '${gateway.graphql}'; export const token = async () => '${accessToken}'; ${note}`;
  for (const name of ['app', 'once', 'banners']) {
    const code = name === 'app' ? app : (snippets.get(name) ?? '');
    const body = code.replace(/'@pasarela\/client(\/\w+)?'/g, (_, path = '/index') => `'${path}.js'`);
    await context.route(`${site.origin}/${name}.js`, (route) =>
      route.fulfill({ contentType: 'text/javascript', body }),
    );
  }
  await context.addInitScript(`
    const permission = () => localStorage.allowed ?? 'denied';
    window.Notification = function (title) { if (permission() === 'granted') tell(title); };
    Notification.requestPermission = async () => permission();
    Object.defineProperty(Notification, 'permission', { get: permission });`);
  const tab = await context.newPage();
  const said: string[] = [];
  tab.on('console', (message) => said.push(message.text()));
  const begin = async () => {
    await tab.goto(site.origin);
    await tab.evaluate(`import('/banners.js').then(({ banners }) => void banners('${clabe}'))`);
  };
  const kept = () =>
    tab.evaluate(
      `import('/once.js').then(async (once) => (await once.bannerStore('credits ${clabe}').load())?.events.length)`,
    );
  await begin();
  await expect.poll(kept).toBe(0);
  await arrives(clabe, '1.00');
  await expect.poll(() => said.join()).toContain('Notifications are not allowed.');
  await tab.evaluate("void (localStorage.allowed = 'granted')");
  await begin();
  for (const [to, amount] of [
    [other, '2.00'],
    [clabe, '3.00'],
  ])
    await arrives(to, amount);
  await expect.poll(() => shown).toEqual(['+ $1.00', '+ $3.00']);
});
