import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { openTab, play, result, rows, stop, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

/** Plays a subscription in a tab of its own. */
async function follow(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'New tab' }).click();
  await page.locator('.wb-operation .view-lines').click();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText(
    `subscription ${name}($after: Cursor) { moneyIn(after: $after) { cursor } }`,
  );
  await page.getByRole('tab', { name }).waitFor();
  await play(page);
  await page.locator('.wb-status.wb-live').waitFor();
}

describe('a stream', () => {
  it('that has ended takes no connection from those that are played later', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await page.getByRole('button', { name: 'Stop the stream' }).click();
    await page.locator('.wb-status.wb-ended').waitFor();
    for (const [name, transport] of [
      ['Second', 'SSE'],
      ['Third', 'SSE'],
      ['Fourth', 'WS'],
    ] as const) {
      await follow(page, name);
      expect([name, await page.getByLabel('Transport').inputValue()]).toEqual([name, transport]);
    }
  });

  it('over SSE is not taken for silent while it brings events, however long it lasts', async () => {
    await using one = await demo.open();
    const { page } = one;
    await stop(page);
    await watchMoneyIn(page);
    for (const name of ['Uno', 'Dos', 'Tres']) {
      await demo.credit(name);
      // A stream that was cut comes back no sooner than the clock of the page goes on.
      const told = page.locator('.wb-note').or(rows(page).filter({ hasText: name }));
      await told.first().waitFor();
      expect(await page.locator('.wb-note').allInnerTexts()).toEqual([]);
      await page.clock.fastForward(20_000);
    }
  });
});

describe('the story', () => {
  it('fills the next validation into step 3, also where a button has filled in the one before', async () => {
    await using one = await demo.open();
    const { page } = one;
    const start = async () => {
      await openTab(page, 'StartPennyValidation');
      await page.getByRole('button', { name: 'New key' }).click();
      await play(page);
    };
    const idOf = (text: string) => /"id": "([0-9a-f-]{36})"/.exec(text)?.[1];
    await start();
    const before = idOf(await result(page, /"replayed"/));
    await page.getByRole('button', { name: 'Watch this' }).click();
    await page.locator('.wb-event .wb-badge').first().waitFor();
    await start();
    let next: string | undefined;
    await until(async () => {
      next = idOf(await result(page, /"replayed"/));
      return next !== undefined && next !== before;
    });
    await openTab(page, 'WatchCep');
    await page.locator('.wb-variables .view-lines', { hasText: String(next) }).waitFor();
  });
});
