import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriousFindings } from '../helpers/axe.ts';
import { folder } from '../helpers/packages.ts';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

const focused = (page: Page) =>
  page.evaluate(() => document.activeElement?.textContent ?? document.activeElement?.tagName ?? '');

describe.each(['light', 'dark'] as const)('axe, in %s', (colorScheme) => {
  it('has no serious finding: the result, the stream, each pane, a payment', {
    timeout: 300_000,
  }, async () => {
    await using one = await demo.open({ colorScheme });
    const { page } = one;
    const clean = async (where: string) => expect(await seriousFindings(page), where).toEqual([]);
    await clean('the start');
    await play(page);
    await result(page, /"totalCount": \d+/);
    await clean('the result');
    await openTab(page, 'WatchCep');
    await page.locator('.wb-operation .dimmed-line-number').waitFor();
    await clean('an operation that ends with an empty line');
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await page.locator('.wb-status.wb-live').waitFor();
    for (const _twice of [1, 2]) await deed(page, 'Simulate a credit');
    await page.locator('.wb-filter').waitFor();
    await clean('the stream');
    for (const pane of ['Documentation Explorer', 'Explorer', 'History', 'Code']) {
      await page.locator('.wb-rail').getByRole('button', { name: pane, exact: true }).click();
      await page.locator('.wb-pane').waitFor();
      await clean(pane);
    }
    await page.getByRole('button', { name: 'What happened to this payment' }).first().click();
    await page.locator('.wb-axis li').first().waitFor();
    await clean('a payment');
  });
});

describe('the keyboard', () => {
  it('plays from anywhere, goes through the tabs, and closes one', async () => {
    await using one = await demo.open();
    const { page } = one;
    await page.getByLabel('Amount in pesos').focus();
    await page.keyboard.press('Control+Enter');
    await result(page, /"totalCount": \d+/);

    await page.getByRole('tab', { name: /^Instruments/ }).focus();
    await page.keyboard.press('ArrowRight');
    await page.locator('.wb-tab[data-active="true"]', { hasText: 'StartPennyValidation' }).waitFor();
    expect(await focused(page)).toContain('StartPennyValidation');
    await page.keyboard.press('End');
    await page.locator('.wb-tab[data-active="true"]', { hasText: 'WatchMoneyIn' }).waitFor();
    await page.keyboard.press('Delete');
    await until(
      async () => (await page.getByRole('tablist', { name: 'Operations' }).getByRole('tab').count()) === 3,
    );
    await page.getByRole('tab', { name: 'Variables' }).focus();
    await page.keyboard.press('ArrowRight');
    await page.getByRole('tab', { name: 'Headers', selected: true }).waitFor();
  });

  it('moves the borders between the parts of the page, which stay so', async () => {
    await using one = await demo.open();
    const { page } = one;
    const width = async () => (await page.locator('.wb-left').boundingBox())?.width ?? 0;
    const height = async () => (await page.locator('.wb-operation').boundingBox())?.height ?? 0;
    const [before, high] = [await width(), await height()];
    await page.getByRole('separator', { name: 'Width of the operation' }).focus();
    for (let count = 0; count < 3; count += 1) await page.keyboard.press('ArrowRight');
    expect(await width()).toBeGreaterThan(before + 60);
    await page.getByRole('separator', { name: 'Height of the operation' }).focus();
    await page.keyboard.press('ArrowUp');
    expect(await height()).toBeLessThan(high);
    const after = await width();
    await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    expect(Math.abs((await width()) - after)).toBeLessThan(8);
  });

  it('chooses fields in the explorer', async () => {
    await using one = await demo.open();
    const { page } = one;
    await page.locator('.wb-rail').getByRole('button', { name: 'Explorer', exact: true }).click();
    const pane = page.locator('.wb-pane');
    await pane.getByRole('button', { name: 'client', exact: true, expanded: true }).first().waitFor();
    const cursor = pane.getByRole('checkbox', { name: 'eventCursor', exact: true });
    for (const isChosen of [true, false]) {
      await cursor.focus();
      await page.keyboard.press('Enter');
      await pane.getByRole('checkbox', { name: 'eventCursor', exact: true, checked: isChosen }).waitFor();
      await until(async () => {
        const text = await page.evaluate(() => localStorage.getItem('pasarela:sandbox:graphiql:query') ?? '');
        return text.includes('eventCursor') === isChosen;
      });
    }
  });
});

describe('what came of play', () => {
  it.each([
    ['a telephone', { width: 390, height: 844 }],
    ['a window at 200 %', { width: 640, height: 400 }],
  ])('is in view on %s', async (_name, viewport) => {
    await using one = await demo.open({ viewport });
    const { page } = one;
    for (const title of ['Instruments', 'WatchMoneyIn']) {
      await page.evaluate(() => window.scrollTo(0, 0));
      await openTab(page, title);
      await play(page);
      const shown = page.locator(title === 'Instruments' ? '.wb-response' : '.wb-stream > header');
      await shown.waitFor();
      await until(async () => {
        const box = await shown.boundingBox();
        return box !== null && box.y > -1 && box.y < viewport.height / 2;
      });
    }
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  });

  it('takes the four REST calls that the README names, and a round trip is explained', async () => {
    const readme = await readFile(folder('README.md'), 'utf8');
    expect(readme).toContain('25 instruments with bank, owner, customer and account take four REST calls');
    // A gateway that has not seen the token yet asks whose it is: that call stands apart.
    await demo.kill();
    await demo.start();
    await using one = await demo.open();
    const { page } = one;
    for (const checks of [1, 0]) {
      const answered = page.waitForResponse((response) =>
        (response.request().postData() ?? '').includes('query Instruments'),
      );
      await play(page);
      await answered;
      await until(async () => (await page.locator('.wb-waterfall li').count()) === 4 + checks);
      const summary = await page.locator('.wb-waterfall strong').innerText();
      expect(summary).toMatch(/^1 request, 4 REST calls/);
      expect(summary.includes('+ 1 to check the token')).toBe(checks === 1);
      expect(await page.locator('.wb-waterfall .wb-badge', { hasText: /^token$/ }).count()).toBe(checks);
    }
    const term = page.locator('.wb-term');
    expect(await term.getAttribute('title')).toContain('one after another');
    await term.click();
    await page.locator('.wb-explained').waitFor();
  });
});
