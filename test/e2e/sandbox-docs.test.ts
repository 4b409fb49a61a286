import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SPANISH } from '../../packages/sandbox/page/spanish.js';
import { seriousFindings } from '../helpers/axe.ts';
import { startBrowser } from '../helpers/browser.ts';
import { oddBreaks } from './breaks.ts';
import { visitSandbox } from './sandbox-visit.ts';
import { tells } from './workbench-page.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

const visit = (options?: BrowserContextOptions) => visitSandbox(browser, '/docs', options);

const run = promisify(execFile);

const entry = (page: Page, id: string) => page.locator(`[id="${id}"]`);

/** Opens every request of the reference. @returns their ids */
const openAll = (page: Page): Promise<string[]> =>
  page.locator('.endpoint').evaluateAll((all) =>
    all.map((one) => {
      one.setAttribute('open', '');
      return one.id;
    }),
  );

/** Sends a request of the reference. @returns the status of its answer */
async function tryIt(page: Page, id: string): Promise<string> {
  const one = entry(page, id);
  await one.locator('button.primary').click();
  return one.locator('.answer .badge').innerText();
}

describe('the reference at /docs', () => {
  it('sends every request as it stands', async () => {
    await using one = await visit();
    const { page } = one;
    const ids = await openAll(page);
    expect(ids.length).toBeGreaterThan(30);
    for (const id of ids) expect(await tryIt(page, id), id).toMatch(/^2\d\d$/);
    expect(one.failures).toEqual([]);
  });

  it('gives every request as a line of the shell that runs', async () => {
    await using one = await visit({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = one;
    for (const id of await openAll(page)) {
      await tells(entry(page, id), 'Copied', () =>
        entry(page, id).getByRole('button', { name: 'Copy as curl' }).click(),
      );
      const shell = await page.evaluate(() => navigator.clipboard.readText());
      const { stdout } = await run('sh', ['-c', `${shell} -o /dev/null -w '%{http_code}'`]);
      expect(stdout, shell).toMatch(/^2\d\d$/);
    }
  });

  it('goes on with another token once that of its beginning has ended', async () => {
    await using one = await visitSandbox(browser, '/docs', {}, { newTokenEndsOlder: true });
    const { page } = one;
    await openAll(page);
    const read = 'GET-v1-clients-clientId-instruments';
    const curl = entry(page, read).locator('.curl');
    const before = await curl.innerText();
    expect(await tryIt(page, 'POST-v1-clients-clientId-auth-credential-tokens')).toMatch(/^2/);
    expect(await tryIt(page, read)).toBe('200');
    expect(await curl.innerText()).not.toBe(before);
  });

  it('shows what the service refuses', async () => {
    await using one = await visit();
    const { page } = one;
    const id = 'POST-v1-transactions-internal_transaction';
    await openAll(page);
    await entry(page, id).getByLabel('Body').fill('{');
    expect(await tryIt(page, id)).toBe('400');
  });

  it('names what there is to read: no webhook that was deleted, no credit that was refunded', async () => {
    await using one = await visit();
    const { page } = one;
    const [READ, DELETE] = ['GET', 'DELETE'].map((method) => `${method}-v1-clients-clientId-webhooks-id-`);
    const REFUND = 'POST-v1-clients-clientId-transactions-transactionId-refund';
    const webhookId = (id = '') => entry(page, id).getByLabel('id', { exact: true });
    for (const _one of [1, 2]) {
      await openAll(page);
      expect(await tryIt(page, DELETE ?? '')).toMatch(/^2/);
      expect(await tryIt(page, REFUND)).toMatch(/^2/);
      await tryIt(page, 'POST-sandbox-spei-credits');
      await page.reload();
      await page.locator('.endpoint').first().waitFor();
    }
    // Both that were registered are gone. The next one is filled in.
    await openAll(page);
    expect(await webhookId(READ).inputValue()).toBe('');
    expect(await webhookId(READ).getAttribute('placeholder')).toBe('Register a webhook first');
    await tryIt(page, 'POST-v1-clients-clientId-webhooks');
    expect(await webhookId(READ).inputValue()).toMatch(/^[0-9a-f-]{36}$/);
    expect(await tryIt(page, READ ?? '')).toMatch(/^2/);
  });

  it.each([
    ['light', 'en-US', 390],
    ['dark', 'es-MX', 1440],
  ] as const)(
    'has no serious finding of axe with all of it opened, in %s, %s',
    async (colorScheme, locale, width) => {
      await using one = await visit({ colorScheme, locale, viewport: { width, height: 844 } });
      const { page } = one;
      await openAll(page);
      await tryIt(page, 'GET-v1-clients-clientId-instruments');
      await tryIt(page, 'POST-sandbox-clock');
      expect(await seriousFindings(page)).toEqual([]);
    },
  );

  it('is Spanish throughout, and fits a telephone with all of it opened', async () => {
    await using one = await visit({ locale: 'es-MX', viewport: { width: 390, height: 844 } });
    const { page } = one;
    await openAll(page);
    await tryIt(page, 'DELETE-v1-clients-clientId-webhooks-id-');
    const said = await page
      .locator('header, h2, main > p, summary > span, label > span, button, .answer p')
      .allInnerTexts();
    const english = Object.entries(SPANISH).flatMap(([key, text]) => (key === text ? [] : [key]));
    expect(said.length).toBeGreaterThan(100);
    expect(said.filter((text) => english.includes(text))).toEqual([]);
    expect(said.join(' ')).not.toMatch(/\b(the|of|with|and|one|every|lists|reads|what)\b/i);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
    expect(await oddBreaks(page.locator('.endpoint summary code'))).toEqual([]);
    const cut = page
      .locator('.endpoint textarea')
      .evaluateAll((all) => all.filter((area) => area.scrollHeight > area.clientHeight + 2).length);
    expect(await cut).toBe(0);
  });
});
