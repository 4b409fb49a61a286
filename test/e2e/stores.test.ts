import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { folder, run } from '../helpers/packages.ts';
import { serveFolder } from '../helpers/static-server.ts';

let built: string;
let site: Awaited<ReturnType<typeof serveFolder>>;
let browser: Browser;
beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), 'pasarela-stores-'));
  await run('npx', ['tsc', '-p', 'packages/client/tsconfig.build.json', '--outDir', built], folder('.'));
  await writeFile(join(built, 'index.html'), '<!doctype html><title>Stores</title>');
  site = await serveFolder(built);
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await site?.[Symbol.asyncDispose]();
  await rm(built, { recursive: true, force: true });
});

/** The stores of the package in a page: each kept by its own kind of storage. */
const STORES = {
  IndexedDB: "(await import('/indexed-db.js')).indexedDbStore('feed', 3)",
  localStorage: "(await import('/index.js')).keyValueStore(localStorage, 'feed', 3)",
};

/** Runs a function body in the page, with `store` at hand. */
const inPage = (page: Page, store: string, body: string): Promise<unknown> =>
  page.evaluate(`(async () => { const store = ${store}; ${body} })()`);

it.each(Object.entries(STORES))(
  '%s keeps events with their place, over a reload and between tabs',
  async (_, store) => {
    const context = await browser.newContext();
    const [page, other] = [await context.newPage(), await context.newPage()];
    for (const tab of [page, other]) await tab.goto(site.origin);
    await inPage(page, store, "await store.save(undefined, 'start');");
    const save = (cursor: string) => `await store.save({ cursor: '${cursor}' }, '${cursor}');`;
    await inPage(page, store, save('a') + save('b'));
    // Both tabs follow: each saves what the other has saved already.
    await inPage(other, store, save('b') + save('c') + save('d'));
    await page.reload();
    expect(await inPage(page, store, 'return store.load();')).toEqual({
      cursor: 'd',
      events: [{ cursor: 'b' }, { cursor: 'c' }, { cursor: 'd' }],
    });
    await context.close();
  },
);
