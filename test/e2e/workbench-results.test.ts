import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../helpers/until.ts';
import { oddBreaks } from './breaks.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result, rows, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

const TELEPHONE = { viewport: { width: 390, height: 844 } };

/** Writes something that is no JSON where the variables stand. */
async function spoilVariables(page: Page): Promise<void> {
  await page.locator('.wb-variables .view-lines').first().click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText('x');
  await page.locator('.wb-variables .view-lines', { hasText: /^x$/ }).waitFor();
}

/** Elements that reach beyond the window at its right edge. */
const beyondWindow = (page: Page, selector: string): Promise<string[]> =>
  page
    .locator(selector)
    .evaluateAll((all) =>
      all
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth)
        .map((one) => one.textContent ?? ''),
    );

describe('a play that brings no answer', () => {
  it('leaves no REST calls of an earlier play, nor its offer', async () => {
    await using one = await demo.open();
    const { page } = one;
    await openTab(page, 'StartPennyValidation');
    await play(page);
    await page.locator('.wb-waterfall li').first().waitFor();
    await page.getByRole('button', { name: 'Watch this' }).waitFor();
    await spoilVariables(page);
    await play(page);
    await result(page, /Request\s+not\s+sent\.\s+Variables\s+are\s+invalid\s+JSON/);
    await until(async () => (await page.locator('.wb-waterfall, .wb-offer').count()) === 0);
  });

  it('leaves none of them where the gateway cannot be reached', async () => {
    await using one = await demo.open();
    const { page } = one;
    await play(page);
    await page.locator('.wb-waterfall li').first().waitFor();
    await page.route(/\/graphql$/, (route) => route.abort());
    await play(page);
    await result(page, /The\s+gateway\s+does\s+not\s+answer/);
    await until(async () => (await page.locator('.wb-waterfall').count()) === 0);
  });

  it('says so where the answer is cut off in its midst, and where a header cannot be sent', async () => {
    await using one = await demo.open();
    const { page } = one;
    await page.evaluate(() => {
      const send = window.fetch;
      window.fetch = (input, init) => {
        if (init?.method !== 'POST') return send(input, init);
        const cut = new ReadableStream({ start: (body) => body.error(new TypeError('network error')) });
        return Promise.resolve(new Response(cut));
      };
    });
    await play(page);
    await result(page, /The\s+gateway\s+does\s+not\s+answer/);
    await page.getByRole('tab', { name: 'Headers' }).click();
    for (const tab of ['Instruments', 'WatchMoneyIn']) {
      await openTab(page, tab);
      await page.locator('.wb-variables .graphiql-editor:not(.hidden)').click();
      await page.keyboard.insertText('{"x-price": "5 €"}');
      await play(page);
      await result(page, /ISO-8859-1/);
    }
  });

  it('is seen in place of a stream that has ended', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.getByRole('button', { name: 'Stop the stream' }).click();
    await page.locator('.wb-status', { hasText: 'Ended' }).waitFor();
    // There is nothing to pause any more.
    expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(0);
    await spoilVariables(page);
    await play(page);
    await result(page, /Request\s+not\s+sent/);
    await page.locator('.wb-response').waitFor();
    expect(await page.locator('.wb-stream').count()).toBe(0);
  });

  it('is in view on a telephone', async () => {
    await using one = await demo.open(TELEPHONE);
    const { page } = one;
    await spoilVariables(page);
    await page.evaluate(() => window.scrollTo(0, 0));
    await play(page);
    await result(page, /Request\s+not\s+sent/);
    await until(async () => {
      const box = await page.locator('.wb-response').boundingBox();
      return box !== null && box.y > -1 && box.y < TELEPHONE.viewport.height / 2;
    });
  });
});

describe('what has little room', () => {
  it('makes no page longer than the window: a long result is scrolled where it is', async () => {
    await using one = await demo.open();
    const { page } = one;
    const beyond = () => page.evaluate(() => document.documentElement.scrollHeight - innerHeight);
    expect(await beyond()).toBe(0);
    await play(page);
    await result(page, /"totalCount": \d+/);
    expect(await beyond()).toBe(0);
    await page.setViewportSize({ width: 1024, height: 600 });
    expect(await beyond()).toBe(0);
  });

  it.each([
    [1280, 800],
    [390, 844],
  ])('breaks the path of a REST call at a slash, at %i pixels', async (width, height) => {
    await using one = await demo.open({ viewport: { width, height } });
    const { page } = one;
    if (width > 720)
      await page.locator('.wb-rail').getByRole('button', { name: 'Code', exact: true }).click();
    await play(page);
    const calls = page.locator('.wb-waterfall .wb-call');
    await calls.filter({ hasText: 'per_page' }).first().waitFor();
    expect(await oddBreaks(calls)).toEqual([]);
    expect(await calls.first().locator('[title^="/v1/"]').count()).toBe(1);
  });

  it('cuts no control of the bar on a telephone', async () => {
    await using one = await demo.open(TELEPHONE);
    const { page } = one;
    await page.getByRole('button', { name: 'More', exact: true }).click();
    await page.getByRole('button', { name: 'Less', exact: true }).waitFor();
    expect(await beyondWindow(page, '.wb-sandbox :is(button, select, input, span)')).toEqual([]);
    // The account can be read, also beside what the bar says.
    await page.getByLabel('Amount in pesos').fill('0');
    expect(await deed(page, 'Simulate a credit')).toMatch(/above zero/);
    const boxes = await page
      .locator('.wb-sandbox :is(form input, form select, form button, .wb-said)')
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON() as DOMRect));
    const overlaps = boxes.flatMap((a, at) =>
      boxes
        .slice(at + 1)
        .filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom),
    );
    expect(overlaps).toEqual([]);
    expect((await page.getByLabel('Account').boundingBox())?.width).toBeGreaterThan(300);
  });

  it.each([
    ['a telephone', TELEPHONE.viewport],
    ['a window at 200 %', { width: 720, height: 450 }],
  ])('hides nothing for good beneath the opened bar, on %s', async (_name, viewport) => {
    await using one = await demo.open({ viewport });
    const { page } = one;
    await page.getByRole('button', { name: 'More', exact: true }).click();
    await deed(page, 'Lose answer');
    await page.locator('.wb-sandbox .wb-badge').waitFor();
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    const [main, bar] = [page.locator('.wb-main'), page.locator('.wb-sandbox')];
    await until(async () => {
      const [above, below] = [await main.boundingBox(), await bar.boundingBox()];
      return above !== null && below !== null && above.y + above.height <= below.y;
    });
    expect(await deed(page, 'Heal')).toContain('healthy');
  });

  it('cuts no line of an operation, no CLABE and no address on a telephone', async () => {
    await using one = await demo.open(TELEPHONE);
    const { page } = one;
    await openTab(page, 'StartPennyValidation');
    await page.locator('.wb-variables .view-line', { hasText: 'idempotencyKey' }).waitFor();
    const beyond = page.locator('.wb-editors .monaco-editor').evaluateAll((editors) =>
      editors.flatMap((editor) => {
        const edge = editor.getBoundingClientRect().right;
        return [...editor.querySelectorAll('.view-line > span')]
          .filter((line) => line.getBoundingClientRect().right > edge)
          .map((line) => line.textContent);
      }),
    );
    expect(await beyond).toEqual([]);
    await page.getByRole('button', { name: 'More' }).click();
    const room = page.getByLabel('Account').evaluate((select) => {
      const { font, paddingLeft, paddingRight } = getComputedStyle(select);
      const pen = document.createElement('canvas').getContext('2d');
      if (!(select instanceof HTMLSelectElement) || pen === null) return Number.NaN;
      pen.font = font;
      const text = pen.measureText(select.selectedOptions[0]?.textContent ?? '').width;
      return select.clientWidth - text - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
    });
    // So much takes the arrow.
    expect(await room).toBeGreaterThan(16);
    await play(page);
    await page.getByRole('button', { name: 'What happened to this payment' }).click();
    await page.locator('.wb-axis summary').first().click();
    const field = page.getByLabel('Address of your handler').first();
    expect(await field.evaluate((input) => input.scrollWidth - input.clientWidth)).toBe(0);
  });

  it('shows the open tab whole, also as its count comes', async () => {
    await using one = await demo.open(TELEPHONE);
    const { page } = one;
    await watchMoneyIn(page);
    await deed(page, 'Simulate a credit');
    await rows(page).first().waitFor();
    const edges = () =>
      page.evaluate(() => {
        const edge = (selector: string) =>
          document.querySelector(selector)?.getBoundingClientRect().right ?? 0;
        return edge('.wb-tab[data-active="true"]') - edge('.wb-tablist');
      });
    await until(async () => (await edges()) <= 1);
    // The page stays where it was.
    expect((await page.locator('.wb-stream').boundingBox())?.y).toBeLessThan(TELEPHONE.viewport.height / 2);
  });
});

describe('the explorer', () => {
  it('draws the signs of its buttons, which fonts may lack, and copies an operation', async () => {
    await using one = await demo.open();
    const { page } = one;
    await page.locator('.wb-rail').getByRole('button', { name: 'Explorer', exact: true }).click();
    const pane = page.locator('.wb-pane');
    for (const name of ['Remove this operation', 'Copy this operation']) {
      const button = pane.getByRole('button', { name });
      await button.locator('svg').waitFor();
      expect(await button.innerText()).toBe('');
    }
    await pane.getByRole('button', { name: 'Copy this operation' }).click();
    await pane.locator('input[value="InstrumentsCopy"]').waitFor();
  });
});
