import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { changeAnswers } from '../helpers/browser.ts';
import { startClientSite } from '../helpers/client-site.ts';

const ROUNDS = 60;
/** Until both tabs are asked to press at one time, in milliseconds. */
const AHEAD_MS = 50;

let site: Awaited<ReturnType<typeof startClientSite>>;
let context: BrowserContext | undefined;
beforeAll(async () => {
  site = await startClientSite();
});
afterEach(() => context?.close());
afterAll(() => site?.[Symbol.asyncDispose]());

/** Pays at a time of the clock, in a page. @returns how that ended */
const press = (tab: Page, store: string, round: number, at: number): Promise<unknown> =>
  tab.evaluate(`(async () => {
    const { intentStore, pay } = await import('/index.js');
    const { indexedDbIntents } = await import('/indexed-db.js');
    const source = {
      async query(_, { input }) {
        await window.sent(${round}, input.idempotencyKey);
        return { data: { pay: { __typename: 'PaySuccess' } } };
      },
    };
    const store = ${store};
    while (Date.now() < ${at});
    const mutation = 'mutation Pay($input: PayInput!) { pay(input: $input) { __typename } }';
    return (await pay(source, mutation, { round: ${round} }, { store })).status;
  })()`);

/** A site over plain http, of which a browser does not know that it is this machine. */
const PLAIN = 'http://shop.test';
const servePlainly = (inside: BrowserContext) =>
  changeAnswers(
    inside,
    `${PLAIN}/**`,
    async (response) => ({ response }),
    (address) => address.replace(PLAIN, site.origin),
  );

it.each([
  ['over https, by Web Locks', 'https', "intentStore(localStorage, 'payments')"],
  ['over https, in IndexedDB', 'https', "indexedDbIntents('payments')"],
  ['over plain http, in IndexedDB', 'http', "indexedDbIntents('payments')"],
])(
  'two tabs of a real browser in which one input is pressed at once pay once: %s',
  async (_, over, store) => {
    context = await site.browser.newContext();
    const keys = new Map<number, Set<string>>();
    await context.exposeFunction('sent', (round: number, key: string) => {
      keys.set(round, (keys.get(round) ?? new Set()).add(key));
    });
    await servePlainly(context);
    const tabs = [await context.newPage(), await context.newPage()];
    for (const tab of tabs) {
      // A browser takes this machine's own address for as safe as https.
      await tab.goto(over === 'https' ? site.origin : PLAIN);
      expect(await tab.evaluate('[isSecureContext, navigator.locks !== undefined]')).toEqual(
        Array(2).fill(over === 'https'),
      );
      await tab.evaluate("Promise.all([import('/index.js'), import('/indexed-db.js')])");
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const at = Date.now() + AHEAD_MS;
      expect(await Promise.all(tabs.map((tab) => press(tab, store, round, at)))).toEqual(['done', 'done']);
    }
    expect([...keys.values()].map(({ size }) => size)).toEqual(Array(ROUNDS).fill(1));
  },
);

it('a payment whose end is unknown outlives the feeds that an app deletes at sign-out', async () => {
  context = await site.browser.newContext();
  const tab = await context.newPage();
  await tab.goto(site.origin);
  const keys = await tab.evaluate(`(async () => {
    const { pay } = await import('/index.js');
    const { indexedDbIntents, indexedDbStore } = await import('/indexed-db.js');
    await indexedDbStore('credits').save(undefined, 'place');
    const keys = [];
    const source = {
      async query(_, { input }) {
        keys.push(input.idempotencyKey);
        throw new Error('The network is gone.');
      },
    };
    const press = () => pay(source, 'mutation ($input: In!) { pay(input: $input) { __typename } }', { amount: '1.00' }, { store: indexedDbIntents('payments'), patienceMs: 0 });
    await press();
    await new Promise((resolve, reject) => {
      const request = indexedDB.deleteDatabase('pasarela');
      request.onsuccess = resolve;
      request.onerror = request.onblocked = reject;
    });
    if ((await indexedDbStore('credits').load()) !== undefined) throw new Error('The feed is still there.');
    await press();
    return keys;
  })()`);
  expect(new Set(keys as string[]).size).toBe(1);
  expect((keys as string[]).length).toBeGreaterThan(1);
});

it('a page over plain http is told what to use instead of Web Locks, and nothing is sent', async () => {
  context = await site.browser.newContext();
  const sent: unknown[] = [];
  await context.exposeFunction('sent', (...told: unknown[]) => sent.push(told));
  await servePlainly(context);
  const tab = await context.newPage();
  await tab.goto(PLAIN);
  await expect(press(tab, "intentStore(localStorage, 'payments')", 0, 0)).rejects.toThrow(
    'No Web Locks in this page: use https, or indexedDbIntents.',
  );
  expect(sent).toEqual([]);
});
