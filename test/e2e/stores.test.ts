import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeAnswers } from '../helpers/browser.ts';
import { startClientSite } from '../helpers/client-site.ts';

let site: Awaited<ReturnType<typeof startClientSite>>;
beforeAll(async () => {
  site = await startClientSite();
});
afterAll(() => site?.[Symbol.asyncDispose]());

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
    const context = await site.browser.newContext();
    const [page, other] = [await context.newPage(), await context.newPage()];
    for (const tab of [page, other]) await tab.goto(site.origin);
    await inPage(page, store, "await store.save(undefined, 'start');");
    const save = (cursor: string) => `await store.save({ cursor: '${cursor}' }, '${cursor}');`;
    await inPage(page, store, save('a') + save('b'));
    // Both tabs follow: each saves what the other has saved already.
    await inPage(other, store, save('b') + save('c') + save('d'));
    await page.reload();
    expect(await inPage(page, store, 'return store.load();')).toMatchObject({
      cursor: 'd',
      events: [{ cursor: 'b' }, { cursor: 'c' }, { cursor: 'd' }],
    });
    await context.close();
  },
);

/** How an app takes out what each of them keeps. */
const REMOVED: Readonly<Record<keyof typeof STORES, string>> = {
  // The database goes once the transaction that another tab has begun is over.
  IndexedDB: `const request = indexedDB.deleteDatabase('pasarela');
    await new Promise((resolve, reject) => { request.onsuccess = resolve; request.onerror = () => reject(request.error); });`,
  localStorage: 'localStorage.clear();',
};

it.each(Object.entries(STORES))(
  '%s that one tab takes out while another saves has nothing of it, or all; the other begins none anew',
  async (kind, store) => {
    const context = await site.browser.newContext();
    const [page, other] = [await context.newPage(), await context.newPage()];
    for (const tab of [page, other]) {
      await tab.goto(site.origin);
      await inPage(
        tab,
        store,
        `window.store = store; await store.load();
        window.told = (cursor) => store.save({ cursor }, cursor).then(() => 'kept', ({ code }) => code);
        return told('a');`,
      );
    }
    const remove = REMOVED[kind as keyof typeof REMOVED];
    const saving = other.evaluate<string>(
      `(async () => { let last; for (let number = 0; (last = await told('b' + number)) === 'kept'; number += 1); return last; })()`,
    );
    // A write that had read the list before that may bring it back whole: then once more.
    let isOver = false;
    const ended = saving.finally(() => {
      isOver = true;
    });
    while (!isOver) await inPage(page, store, remove);
    expect(await ended).toBe('STORE_REMOVED');
    expect(await inPage(page, store, 'return store.load();')).toBeFalsy();
    expect(await page.evaluate("told('c')")).toBe('STORE_REMOVED');
    // Who signs in next begins, and nothing of the tab before gets in.
    await inPage(page, store, "await store.load(); await store.save(undefined, 'next');");
    expect(await other.evaluate("told('d')")).toBe('STORE_REMOVED');
    expect(await inPage(page, store, 'return store.load();')).toMatchObject({ cursor: 'next', events: [] });
    await context.close();
  },
);

describe('IndexedDB', () => {
  let context: BrowserContext;
  let page: Page;
  let other: Page;
  /** What has gone wrong in either tab that nobody has caught. */
  let uncaught: string[];
  beforeEach(async () => {
    uncaught = [];
    context = await site.browser.newContext();
    [page, other] = [await context.newPage(), await context.newPage()];
    for (const tab of [page, other]) {
      tab.on('pageerror', ({ message }) => uncaught.push(message));
      await tab.goto(site.origin);
      await inTab(
        tab,
        `const { indexedDbStore } = await import('/indexed-db.js');
        window.store = indexedDbStore('feed');
        window.save = (...cursors) => Promise.all(cursors.map((cursor) => store.save({ cursor }, cursor)));
        window.kept = async () => ((await store.load())?.events ?? []).map(({ cursor }) => cursor).join(' ');
        window.told = (promise) => promise.then(() => 'kept', ({ name }) => name);`,
      );
    }
  });
  afterEach(async () => {
    await context.close();
    expect(uncaught).toEqual([]);
  });

  /** Runs a function body in a tab. */
  const inTab = (tab: Page, body: string): Promise<unknown> => tab.evaluate(`(async () => { ${body} })()`);
  const keeps = async (tab: Page, cursors: string) =>
    expect(await inTab(tab, 'return kept();')).toBe(cursors);

  it('keeps each event once and in order that two tabs save at the same time', async () => {
    for (const tab of [page, other]) await inTab(tab, 'await store.load();');
    const cursors = Array.from({ length: 40 }, (_, place) => `e${place}`);
    const all = `await save(${cursors.map((cursor) => `'${cursor}'`).join()});`;
    await Promise.all([inTab(page, all), inTab(other, all)]);
    for (const tab of [page, other]) await keeps(tab, cursors.join(' '));
  });

  it('makes way for a tab of another version, and for one that deletes it, and goes on after that', async () => {
    for (const tab of [page, other]) await inTab(tab, "await save('a');");
    const change = (request: string) =>
      inTab(
        other,
        `const request = ${request};
        request.onsuccess = () => request.result?.close();
        await new Promise((resolve, reject) => {
          request.addEventListener('success', resolve);
          request.onerror = () => reject(request.error);
          request.onblocked = () => reject(new Error('Another tab is in the way.'));
        });`,
      );
    for (const version of [2, 3]) {
      await change(`indexedDB.open('pasarela', ${version})`);
      await inTab(page, `await save('of ${version}');`);
    }
    await keeps(page, 'a of 2 of 3');
    for (let time = 0; time < 2; time += 1) {
      await change("indexedDB.deleteDatabase('pasarela')");
      await keeps(page, '');
      await inTab(page, "await save('anew');");
      await keeps(other, 'anew');
    }
  });

  it('says that a write was aborted, keeps what was there, and writes the next one', async () => {
    await inTab(page, "await save('a');");
    for (const cursor of ['b', 'c']) {
      // As a browser does whose disk has failed: at the read, and at the write.
      const aborted = await inTab(
        page,
        `const method = '${cursor === 'b' ? 'get' : 'put'}';
        const own = IDBObjectStore.prototype[method];
        IDBObjectStore.prototype[method] = function (...given) {
          IDBObjectStore.prototype[method] = own;
          const request = own.apply(this, given);
          this.transaction.abort();
          return request;
        };
        return told(save('${cursor}'));`,
      );
      expect(aborted).toBe('AbortError');
      await keeps(other, cursor === 'b' ? 'a' : 'a b');
      await inTab(page, `await save('${cursor}');`);
    }
    await keeps(other, 'a b c');
  });

  it('that is full keeps what it has; the feed says so, and hands an event out once there is room', async () => {
    // Told before Chromium first asks, since it remembers for a while how much room there is.
    const session = await context.newCDPSession(page);
    const { origin } = site;
    await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1_000_000 });
    await inTab(
      page,
      `const { follow, typed } = await import('/index.js');
      const { createFakeGateway } = await import('/testing.js');
      const gateway = createFakeGateway();
      window.deliver = (name, filling) => gateway.deliver({ name, filling });
      window.shown = [];
      window.failures = 0;
      const document = 'subscription ($after: Cursor) { events(after: $after) { cursor } }';
      window.feed = follow(gateway.connect(), typed(document), { store });
      feed.onChange(() => { failures += feed.problem?.name === 'QuotaExceededError'; });
      void (async () => { for await (const { name } of feed) shown.push(name); })();`,
    );
    await page.waitForFunction("feed.status === 'live'");
    await inTab(page, "deliver('one');");
    await page.waitForFunction("shown.join() === 'one'");
    // By chance, as some versions of Chromium compress what they keep.
    await inTab(
      page,
      `const bytes = () => crypto.getRandomValues(new Uint8Array(50_000)).toHex();
      deliver('two', Array.from({ length: 50 }, bytes).join('')); deliver('three');`,
    );
    await page.waitForFunction('failures >= 2');
    expect(await inTab(page, 'return shown.join();')).toBe('one');
    await keeps(other, 'place-1');
    await session.send('Storage.overrideQuotaForOrigin', { origin });
    await page.waitForFunction("shown.join() === 'one,two,three'");
    await keeps(other, 'place-1 place-2 place-3');
  });

  it('that the browser refuses is an error of its own name, each time', async () => {
    await changeAnswers(context, '**/*.js', async (response) => {
      const headers = { ...response.headers(), 'access-control-allow-origin': '*' };
      return { response, headers };
    });
    // Such a frame has no storage of its own, as a page has none in a browser that blocks it.
    await page.setContent(`<iframe sandbox="allow-scripts" src="${site.origin}/"></iframe>`);
    const frame = page.frames().at(-1) ?? expect.unreachable();
    await frame.waitForLoadState();
    const told = await frame.evaluate(`(async () => {
      const { indexedDbStore } = await import('/indexed-db.js');
      const store = indexedDbStore('feed');
      const tries = [store.load(), store.load(), store.save({ cursor: 'a' }, 'a')];
      return Promise.all(tries.map((one) => one.then(() => 'kept', ({ name }) => name)));
    })()`);
    expect(told).toEqual(['SecurityError', 'SecurityError', 'SecurityError']);
  });
});
