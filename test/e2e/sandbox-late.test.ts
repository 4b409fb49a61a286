import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { visitSandbox } from './sandbox-visit.ts';
import { stop } from './workbench-page.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const movement = (page: Page, payer: string) => page.locator('.transactions > li', { hasText: payer });
const open = (page: Page, payer: string) => movement(page, payer).getByRole('button').first().click();

describe('the console of the sandbox', () => {
  it('shows in a movement what came of it, also where the answer of one that was opened before comes later', async () => {
    await using one = await visitSandbox(browser);
    const { page, sandbox } = one;
    const clabe = sandbox.accounts[0].clabe;
    for (const payerName of ['Fuera Uno', 'Fuera Dos'])
      await sandbox.credit({ clabe, amount: '12.34', payerName });
    await movement(page, 'Fuera Dos').waitFor();
    const [first, second] = await Promise.all(
      ['Fuera Uno', 'Fuera Dos'].map((payer) => movement(page, payer).getAttribute('data-key')),
    );
    const held: Route[] = [];
    let isShown = false;
    await page.route(/\/sandbox\/transactions\//, (route) => {
      // The page reads an open movement again and again: what it shows now stays.
      if (!isShown && route.request().url().endsWith(`/${second}`)) return route.continue();
      held.push(route);
      return Promise.resolve();
    });
    const asked = page.waitForRequest(`**/sandbox/transactions/${first}`);
    await open(page, 'Fuera Uno');
    await asked;
    await open(page, 'Fuera Dos');
    await page.locator('.opened dd', { hasText: second ?? '' }).waitFor();
    isShown = true;
    const late = held.filter((route) => route.request().url().endsWith(`/${first}`));
    const answered = page.waitForResponse(`**/sandbox/transactions/${first}`);
    for (const route of late) await route.continue();
    await (await answered).finished();
    // What the page is answered next comes after that.
    await page.evaluate(async () => (await fetch('/sandbox/clock')).text());
    expect(await page.locator('.opened dd').first().innerText()).toBe(second);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  it('says each thing for its whole time, and what went wrong until it says another', async () => {
    await using one = await visitSandbox(browser);
    const { page } = one;
    await stop(page);
    const said = page.locator('.said');
    await press(page, '+90 s');
    await said.getByText(/everything that fell due has happened/).waitFor();
    await page.clock.fastForward(7_000);
    await page.getByRole('switch').click();
    await said.getByText(/Every webhook fails/).waitFor();
    // The time of the first is over.
    await page.clock.fastForward(2_000);
    expect(await said.innerText()).toMatch(/Every webhook fails/);
    await page.clock.fastForward(7_000);
    expect(await said.innerText()).toBe('');

    await press(page, '+90 s');
    await said.getByText(/everything that fell due has happened/).waitFor();
    await page.route('**/sandbox/clock', (route) => route.abort());
    await press(page, '+5 min');
    await said.getByText('No answer came.').waitFor();
    await page.clock.fastForward(60_000);
    expect(await said.innerText()).toBe('No answer came.');
  });
});
