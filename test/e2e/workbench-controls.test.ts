import type { Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result, rows, stop, tells, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

const CALL = {
  method: 'GET',
  route: '/v1/banks',
  path: '/v1/banks',
  status: 200,
  began: 0,
  milliseconds: 10,
  batched: 1,
  coalesced: false,
  cached: false,
};

describe('beneath a result', () => {
  it('each REST call says what became of it, as bars and as JSON', async () => {
    await using one = await demo.open();
    const { page } = one;
    const upstream = [
      { ...CALL, began: 10, status: null },
      { ...CALL, cached: true, status: null, milliseconds: 0 },
      { ...CALL, batched: 3, coalesced: true },
      { ...CALL, identifies: true, status: 404, milliseconds: 40 },
    ];
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) =>
        route.request().postData()?.includes('query Instruments') === true
          ? route.fulfill({
              status: 400,
              json: { data: { client: null }, extensions: { upstream, more: 1 } },
            })
          : route.fallback(),
    );
    await play(page);
    const below = page.locator('.wb-waterfall');
    await below.locator('li').first().waitFor();
    const rowsBelow = await below.locator('li .wb-badges').allInnerTexts();
    expect(rowsBelow.map((text) => text.split(/\s+/).join(' '))).toEqual([
      'cached',
      '200 batched ×3 shared',
      '404 token',
      'no answer',
    ]);
    expect(await below.locator('li .wb-bad.wb-badge').allInnerTexts()).toEqual(['404', 'no answer']);
    expect(await below.locator('.wb-bar').count()).toBe(3);
    expect(await below.locator('strong').innerText()).toBe(
      '1 request, 3 REST calls (1 from memory), 2 round trips + 1 to check the token',
    );
    expect(await below.locator('header').innerText()).toContain('HTTP 400');
    // What is told below is left out above, and the rest of the extensions is not.
    const shown = await result(page, /"more": 1/);
    expect(shown).not.toContain('upstream');
    await below.getByRole('button', { name: 'Show JSON' }).click();
    expect(await below.locator('pre').innerText()).toContain('"path": "/v1/banks"');
    await below.getByRole('button', { name: 'Show bars' }).click();
    expect(await below.locator('li').count()).toBe(4);
  });

  it('an operation ends with the change of its tab, and shows its answer in no other', async () => {
    await using one = await demo.open();
    const { page } = one;
    const isSent = Promise.withResolvers<void>();
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        if (route.request().postData()?.includes('query Instruments') !== true) return route.fallback();
        isSent.resolve();
        // It is never answered.
        return Promise.resolve();
      },
    );
    await play(page);
    await isSent.promise;
    // The page may give up a question about its gateway meanwhile.
    const ended = page.waitForEvent(
      'requestfailed',
      (request) => request.postData()?.includes('query Instruments') === true,
    );
    await openTab(page, 'StartPennyValidation');
    await ended;
    await page.getByText('Press play or Ctrl-Enter to see the result here').waitFor();
    await play(page);
    await page.getByRole('button', { name: 'Watch this' }).waitFor();
  });

  it.each([
    ['a new tab', 'New tab'],
    ['a step of the story whose tab was closed', /^Next: Who owns/],
  ])(
    'an operation ends with %s, where it shows no answer, and which plays at once',
    async (_what, opener) => {
      await using one = await demo.open();
      const { page } = one;
      await openTab(page, 'StartPennyValidation');
      await page.getByRole('tab', { name: 'StartPennyValidation' }).press('Delete');
      await openTab(page, 'Instruments');
      const sent: Route[] = [];
      await page.route(
        (url) => url.pathname === '/graphql',
        (route) => {
          if (route.request().postData()?.includes('query Instruments') !== true) return route.fallback();
          sent.push(route);
          return Promise.resolve();
        },
      );
      await play(page);
      await until(() => sent.length === 1);
      await page.getByRole('button', { name: opener }).click();
      await page.getByText('Press play or Ctrl-Enter to see the result here').waitFor();
      // The answer comes now, where somebody still waits for it.
      await sent[0]?.fulfill({ json: { data: { late: true } } }).catch(() => {});
      await page.locator('.wb-operation .view-lines').click();
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.insertText('query Next { client { id } }');
      await page.keyboard.press('Control+Enter');
      await result(page, /"client"/);
      await openTab(page, 'Instruments');
      await page.getByText('Press play or Ctrl-Enter to see the result here').waitFor();
    },
  );
});

describe('a stream', () => {
  it('is copied as it is shown, carried over as one chooses, and there once, however often it is played', async () => {
    await using one = await demo.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = one;
    const open = page.locator('.wb-event details[open]');
    await watchMoneyIn(page);
    await demo.credit('Berta');
    await page.getByText('1 event', { exact: true }).waitFor();
    expect(await open.count()).toBe(1);
    await page.getByLabel('Transport').selectOption('WS');
    await page.getByText(/Reconnected, resumed from cursor/).waitFor();
    await page.getByText('Caught up: nothing was missed.').waitFor();
    for (const name of ['Carla', 'Dora']) await demo.credit(name);
    await page.getByText('3 events', { exact: true }).waitFor();
    expect(await rows(page).count()).toBe(3);
    // From the third on they are opened by whoever wants to.
    expect(await open.count()).toBe(0);
    await page.getByLabel('Text or payment id').fill('carla');
    expect(await page.locator('.wb-note').count()).toBe(0);
    const stream = page.locator('.wb-stream');
    await tells(stream, 'Copied', () => stream.getByRole('button', { name: 'Copy' }).click());
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    expect(copied).toMatchObject([{ data: { moneyIn: { payer: { name: 'Carla' } } } }]);

    await page.getByLabel('Amount in pesos').focus();
    await page.keyboard.press('Control+Enter');
    await page.getByText('0 events', { exact: true }).waitFor();
    await page.locator('.wb-status.wb-live').waitFor();
    // It stays with what was chosen.
    expect(await page.getByLabel('Transport').inputValue()).toBe('WS');
    await demo.credit('Elena');
    // What hides an event can be seen, also where there is one alone.
    await page.getByText('0 of 1 shown').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await demo.credit('Fátima');
    await page.locator('.wb-says', { hasText: 'Fátima' }).waitFor();
    expect(await page.getByText('2 events', { exact: true }).count()).toBe(1);
    expect(await rows(page).count()).toBe(2);
  });
});

describe('the page', () => {
  it('lets a credit arrive at the account that is chosen, with the amount that was meant', async () => {
    await using one = await demo.open();
    const { page } = one;
    const account = page.getByLabel('Account');
    const [, second = ''] = await account.locator('option').allInnerTexts();
    await account.selectOption({ index: 1 });
    await page.getByLabel('Amount in pesos').fill('12.5');
    const alias = second.split(' · ')[0] ?? '';
    expect(await deed(page, 'Simulate a credit')).toMatch(/^12\.50 MXN from /);
    expect(await page.locator('.wb-said').innerText()).toContain(`arrived at ${alias}:`);
  });

  it('is told apart from what lies above it: no key plays beneath a payment, and a menu gives the focus back', async () => {
    await using one = await demo.open();
    const { page } = one;
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await page.getByText('Session', { exact: true }).click();
    await page.getByRole('button', { name: 'Save as a file' }).focus();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Save as a file' }).waitFor({ state: 'hidden' });
    expect(await focused()).toContain('Session');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Save as a file' }).focus();
    await page.getByLabel('Amount in pesos').focus();
    await page.getByRole('button', { name: 'Save as a file' }).waitFor({ state: 'hidden' });

    await openTab(page, 'StartPennyValidation');
    await play(page);
    await page.getByRole('button', { name: 'What happened to this payment' }).click();
    await page.locator('.wb-axis li').first().waitFor();
    const sent: string[] = [];
    page.on('request', (request) => sent.push(request.postData() ?? ''));
    await page.keyboard.press('Control+Enter');
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(sent.filter((body) => body.includes('mutation'))).toEqual([]);
  });

  it('keeps its theme, closes a pane by its own button, and writes what was typed as it is hidden', async () => {
    await using one = await demo.open();
    const { page } = one;
    const theme = page.getByRole('button', { name: /^Theme/ });
    for (const next of ['light', 'dark', 'system', 'light', 'dark']) {
      expect(await theme.getAttribute('aria-label')).toContain(`Press for ${next}.`);
      await theme.click();
    }
    await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    expect(await theme.getAttribute('aria-label')).toMatch(/^Theme: dark\./);

    const history = page.getByRole('button', { name: 'History', exact: true });
    await history.click();
    await page.locator('.wb-pane').waitFor();
    expect(await history.getAttribute('aria-pressed')).toBe('true');
    await history.click();
    await page.locator('.wb-pane').waitFor({ state: 'detached' });

    await page.locator('.wb-operation .view-lines').click();
    await page.keyboard.press('ControlOrMeta+Home');
    await stop(page);
    await page.keyboard.insertText('# typed last\n');
    const kept = () => page.evaluate(() => localStorage.getItem('pasarela:sandbox:graphiql:tabState') ?? '');
    expect(await kept()).not.toContain('typed last');
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', { value: true });
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await until(async () => (await kept()).includes('typed last'));
  });
});
