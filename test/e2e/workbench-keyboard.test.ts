import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SPANISH } from '../../workbench/src/spanish.ts';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { openTab, play, result } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  // A receipt is on its way for a minute and a half: a page that is slow sees it so as well.
  demo = await startDemo({ SANDBOX_SPEED: '1' });
});
afterAll(() => demo?.[Symbol.asyncDispose]());

/** As many presses reach everything on the page. */
const MOST = 120;

/** What has the focus, and what marks it. */
const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    const name = element?.getAttribute('aria-label') ?? element?.textContent ?? '';
    const isMarked = element !== null && getComputedStyle(element).outlineStyle !== 'none';
    return { name, isMarked, isNowhere: element === document.body };
  });

/** Goes on by Tab to what has this name, by way of what is marked each time. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let count = 0; count < MOST; count += 1) {
    await page.keyboard.press('Tab');
    const now = await focused(page);
    // Between the last and the first is the browser's own part of the window.
    if (!now.isNowhere) expect(now.isMarked, now.name).toBe(true);
    if (now.name.startsWith(name)) return;
  }
  throw new Error(`Tab does not lead to "${name}".`);
}

/** Presses what has this name. The focus is somewhere on the page afterwards, once this is there. */
async function press(page: Page, name: string, then?: string): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press('Enter');
  if (then !== undefined) await page.locator(then).first().waitFor();
  await until(async () => !(await focused(page)).isNowhere);
}

describe('by keyboard alone', () => {
  it.each(['en-US', 'es-MX'])('the story is told, and the focus is never lost, in %s', async (locale) => {
    await using one = await demo.open({ locale });
    const { page } = one;
    const say = (english: string) => (locale === 'es-MX' ? (SPANISH[english] ?? english) : english);
    const next = (title: string) => say('Next: {title}').replace('{title}', say(title).replace(/\.$/, ''));
    const playing = say('Execute query (Ctrl-Enter)');
    await page.keyboard.press('Control+Enter');
    await result(page, /"totalCount": \d+/);
    // Twice on, to the receipt: its validation has not been started.
    await press(page, next('Who owns this CLABE?'));
    await page.keyboard.press('Enter');
    await page.keyboard.press('Control+Enter');
    await press(page, say('Go to step 2'), '.wb-tab[data-active="true"]:has-text("StartPennyValidation")');
    await press(page, playing, '.wb-offer');
    await press(page, say('Watch this'), '.wb-event .wb-badge:has-text("PENDING")');
    const payment = say('What happened to this payment');
    await press(page, payment, '.wb-axis li');
    await page.keyboard.press('Escape');
    expect((await focused(page)).name).toBe(payment);
    await page.keyboard.press('Enter');
    await page.locator('.wb-axis li').first().waitFor();
    await page.keyboard.press('Escape');
    await press(page, next('Watch money arrive.'));
    await press(page, playing, '.wb-status.wb-live');
    expect((await focused(page)).name).toBe(say('Stop the stream'));
    await press(page, say('Simulate a credit'), '.wb-event');
    await press(page, say('Stop the stream'), '.wb-status.wb-ended');
    expect((await focused(page)).name).toBe(playing);
    // The place to which the focus came by itself may be gone next.
    await page.keyboard.press('Enter');
    await page.locator('.wb-status.wb-live').waitFor();
    await until(async () => (await focused(page)).name === say('Stop the stream'));
    await page.keyboard.press('Enter');
    await page.locator('.wb-status.wb-ended').waitFor();
    await press(page, say('Close'), '.wb-empty');
    expect((await focused(page)).name).toBe(say('Result'));
  });

  it('a payment that is opened again before its dialog has told that it is closed stays open', async () => {
    await using one = await demo.open();
    const { page } = one;
    await openTab(page, 'StartPennyValidation');
    await play(page);
    await page.getByRole('button', { name: 'Watch this' }).click();
    const payment = page.getByRole('button', { name: 'What happened to this payment' });
    await payment.click();
    const dialog = page.locator('dialog[open]');
    await dialog.waitFor();
    await dialog.evaluate(
      (element: HTMLDialogElement, button) => {
        element.close();
        (button as HTMLElement).click();
        return new Promise((resolve) => element.addEventListener('close', resolve));
      },
      await payment.elementHandle(),
    );
    expect(await dialog.count()).toBe(1);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  });

  it('an editor is left by Escape, which first closes what the editor has open', async () => {
    await using one = await demo.open();
    const { page } = one;
    const isWriting = () => page.evaluate(() => document.activeElement?.closest('.monaco-editor') !== null);
    const leave = async () => {
      await page.keyboard.press('Escape');
      await until(async () => !(await isWriting()));
    };
    await tabTo(page, 'Next: Who owns this CLABE?');
    for (const _editor of ['the operation', 'the variables']) {
      while (!(await page.evaluate(() => document.activeElement?.matches('.graphiql-editor')))) {
        await page.keyboard.press('Tab');
      }
      const said = await page.evaluate(() => {
        const section = document.activeElement?.parentElement;
        return section ? getComputedStyle(section, '::after').content : '';
      });
      expect(said).toContain('Enter to write, Escape to leave');
      await page.keyboard.press('Enter');
      await until(isWriting);
      await page.keyboard.press('Tab');
      expect(await isWriting()).toBe(true);
      await leave();
      await page.keyboard.press('Tab');
    }

    await page.locator('.wb-operation .graphiql-editor').focus();
    await page.keyboard.press('Enter');
    await until(isWriting);
    await page.keyboard.press('F1');
    const palette = page.locator('.quick-input-widget');
    await palette.waitFor();
    await page.keyboard.press('Escape');
    await palette.waitFor({ state: 'hidden' });
    expect(await isWriting()).toBe(true);
    await leave();
  });

  it('what is closed, read again or opened keeps the focus', async () => {
    await using one = await demo.open();
    const { page } = one;
    await press(page, 'Read the schema again', 'button[aria-disabled="false"]');
    expect((await focused(page)).name).toBe('Read the schema again');
    for (const title of ['Instruments', 'StartPennyValidation', 'WatchCep'])
      await press(page, `Close ${title}`);
    expect((await focused(page)).name).toContain('WatchMoneyIn');
    await press(page, 'Explorer', '.graphiql-explorer-root');
    expect((await focused(page)).name).toBe('Explorer');
    // Whoever leaves it by the mouse is not brought back by what happens next.
    await page.getByRole('heading', { name: 'Pasarela' }).click();
    await page.evaluate(async () => {
      document.querySelector('.wb-page')?.append(document.createElement('i'));
      await new Promise(requestAnimationFrame);
    });
    expect((await focused(page)).isNowhere).toBe(true);
  });
});
