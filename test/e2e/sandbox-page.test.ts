import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox } from '../../packages/sandbox/src/index.ts';
import { seriousFindings } from '../helpers/axe.ts';
import { startBrowser } from '../helpers/browser.ts';
import { newToken } from '../helpers/new-token.ts';
import { until } from '../helpers/until.ts';
import { at } from '../sandbox/harness.ts';
import { visitSandbox } from './sandbox-visit.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

const visit = (path?: string, options?: BrowserContextOptions) => visitSandbox(browser, path, options);

const newest = (page: Page) => page.locator('.transactions > li').first();
const press = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: true }).click();
const said = (page: Page, text: string | RegExp) => page.getByRole('status').getByText(text).waitFor();
const axis = (page: Page) => page.locator('.axis > li').allInnerTexts();

describe('the console of the sandbox', () => {
  it('and the page of its requests are drawn where the browser blocks storage', async () => {
    await using one = await visit();
    const { page, context, failures } = one;
    await context.addInitScript(() => {
      const blocked = () => {
        throw new DOMException('Storage is blocked.', 'SecurityError');
      };
      Object.defineProperty(window, 'localStorage', { get: blocked });
    });
    await page.reload();
    await newest(page).getByRole('button').first().click();
    await page.locator('.axis > li').first().waitFor();
    await page.goto(`${one.sandbox.url}/docs`);
    await page.getByRole('heading', { name: 'The REST service' }).waitFor();
    // The language is in the address then, which each page passes on.
    await press(page, 'Español');
    await page.getByRole('link', { name: 'Consola' }).click();
    await page.getByRole('heading', { name: 'Mover dinero' }).waitFor();
    await press(page, 'English');
    await page.getByRole('heading', { name: 'Move money' }).waitFor();
    expect(failures).toEqual([]);
  });

  it('shows what others do by itself, and opens a movement to its webhook with its retries', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    const balance = page.locator('tbody tr').first().locator('.amount');
    const before = await balance.innerText();
    await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '12.34', payerName: 'Fuera Uno' });
    await newest(page).getByText('Fuera Uno').waitFor();
    await until(async () => (await balance.innerText()) !== before);

    await page.getByRole('switch').click();
    await said(page, /Every webhook fails/);
    await press(page, 'Simulate the credit');
    await said(page, /held until its webhook is answered/);
    await newest(page).getByText('webhook on its way').waitFor();
    await newest(page).getByRole('button').first().click();
    await page.getByRole('switch').click();
    await said(page, 'Webhooks arrive again.');
    await press(page, '+90 s');
    await page.locator('.axis').getByText('retry 1').waitFor();
    const steps = (await axis(page)).map((text) => text.replaceAll(/\s+/g, ' '));
    expect(steps[0]).toContain('Transaction INITIALIZED');
    expect(steps.join('\n')).toMatch(/Webhook MONEY_IN connect ECONNREFUSED[\s\S]*retry 1\) 201/);
    expect(steps.join('\n')).toContain('Transaction LIQUIDATED');

    await page.locator('.axis summary').last().click();
    const sent = one.receiver.received.length;
    await page.locator('.axis').getByRole('button', { name: 'Send again' }).last().click();
    await said(page, 'Sent again. The answer: 201.');
    expect(one.receiver.received.length).toBe(sent + 1);
    expect(one.failures).toEqual([]);
  });

  it('goes on with a sandbox that was started anew, which does not have the movement that is open', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    await press(page, 'Simulate the credit');
    await newest(page).getByText('Ana Torres').waitFor();
    await newest(page).getByRole('button').first().click();
    await page.locator('.opened .axis').waitFor();
    const port = Number(new URL(sandbox.url).port);
    await sandbox.close();
    await page.getByText('The sandbox does not answer.').waitFor();
    await using anew = await createSandbox({ seed: 7, port, run: 'another' });
    await anew.credit({ clabe: anew.accounts[0].clabe, amount: '12.34', payerName: 'Fuera Dos' });
    await newest(page).getByText('Fuera Dos').waitFor();
    await page.getByText('The sandbox does not answer.').waitFor({ state: 'hidden' });
    expect(await page.locator('.opened').count()).toBe(0);
  });

  it('has the accounts of a sandbox that was started anew with another seed', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    const port = Number(new URL(sandbox.url).port);
    await sandbox.close();
    await page.getByText('The sandbox does not answer.').waitFor();
    await using anew = await createSandbox({ seed: 8, port });
    await page.locator('tbody').getByText(anew.accounts[0].clabe).waitFor();
    await page.locator(`option[value="${anew.accounts[0].clabe}"]`).first().waitFor({ state: 'attached' });
    await press(page, 'Simulate the credit');
    await said(page, /Ana Torres arrived/);
    expect(one.failures).toEqual([]);
  });

  it('offers no account that a sandbox which was started anew with the same seed does not have', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    const { clientId, bankIds, clientBankAdapterId, accessToken } = sandbox;
    const before = sandbox.accounts.map((account) => account.clabe);
    const opened = await fetch(`${sandbox.url}/v1/clients/${clientId}/private_accounts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        bank_id: bankIds[0],
        owner_id: clientId,
        client_bank_adapter_id: clientBankAdapterId,
        client_id: clientId,
        account_id: clientBankAdapterId,
      }),
    });
    expect(opened.status).toBe(201);
    const { clabe } = at(sandbox.accounts, -1);
    await page.reload();
    const offered = page.locator(`option[value="${clabe}"]`);
    await offered.first().waitFor({ state: 'attached' });
    expect(before).not.toContain(clabe);
    const port = Number(new URL(sandbox.url).port);
    await sandbox.close();
    await page.getByText('The sandbox does not answer.').waitFor();
    await using anew = await createSandbox({ seed: 7, port });
    await offered.first().waitFor({ state: 'detached' });
    await page.locator(`option[value="${anew.accounts[0].clabe}"]`).first().waitFor({ state: 'attached' });
    await press(page, 'Simulate the credit');
    await said(page, /Ana Torres arrived/);
    // It is drawn once, and not over and over.
    await page.evaluate(() => Object.assign(window, { isDrawn: true }));
    for (const _read of [1, 2, 3]) await page.waitForResponse('**/sandbox/overview');
    expect(await page.evaluate(() => 'isDrawn' in window)).toBe(true);
    expect(one.failures).toEqual([]);
  });

  it('makes each kind of payment, refunds one, and says what it did', async () => {
    await using one = await visit();
    const { page } = one;
    await press(page, 'Simulate the credit');
    await said(page, '1,250.00 MXN from Ana Torres arrived.');
    await press(page, 'Refund the latest credit');
    await said(page, /was sent back to the payer/);
    await page.getByText('A transfer leaves').click();
    await press(page, 'Transfer');
    await said(page, /moved between the two accounts/);
    await newest(page).getByText('Internal transfer, in').waitFor();
    await page.locator('form:visible').first().getByLabel('To').selectOption({ label: 'Renta de bodega' });
    await press(page, 'Transfer');
    await said(page, /is on its way by SPEI/);
    await newest(page).getByText('SPEI transfer').waitFor();
    await newest(page).getByRole('button').first().click();
    await press(page, 'Settle now');
    await newest(page).locator('.line .badge', { hasText: 'LIQUIDATED' }).waitFor();

    // What the sandbox refuses, it refuses with its own reason.
    await page.locator('form:visible').first().getByLabel('Amount').fill('99999999');
    await press(page, 'Transfer');
    await page.locator('.said.bad', { hasText: /funds|balance/i }).waitFor();
    expect(one.failures).toEqual([]);
  });

  it('pays with the token of the moment once that of its beginning has ended', async () => {
    await using one = await visitSandbox(browser, '/', {}, { newTokenEndsOlder: true });
    const { page, sandbox } = one;
    await newToken(sandbox);
    await page.getByText('A transfer leaves').click();
    await press(page, 'Transfer');
    await said(page, /moved between the two accounts/);
    await page.getByText('A penny validation').click();
    await press(page, 'Validate');
    await said(page, /its receipt will name the holder/);
    expect(one.failures).toEqual([]);
  });

  it.each([
    ['Receipt now', /COMPLETED/, 'EMPAQUES DEL BAJÍO SA DE CV'],
    ['Receipt late', /COMPLETED/, 'EMPAQUES DEL BAJÍO SA DE CV'],
    ['Another holder', /COMPLETED/, 'FERNANDO LUGO ARRIAGA'],
    ['No receipt', /FAILED/, undefined],
  ])('lets a receipt come as it is told: %s', async (wish, status, holder) => {
    await using one = await visit();
    const { page, context } = one;
    await page.getByText('A penny validation').click();
    await press(page, 'Validate');
    await said(page, /its receipt will name the holder/);
    await newest(page).getByText('Penny validation').waitFor();
    await newest(page).getByRole('button').first().click();
    await newest(page).locator('.actions').getByRole('button', { name: wish, exact: true }).click();
    await said(page, `Done: ${wish}.`);
    if (wish === 'Receipt late') {
      // When it comes as usual.
      await press(page, '+90 s');
      await said(page, /everything that fell due has happened/);
      await newest(page).locator('.line .badge', { hasText: 'PENDING' }).first().waitFor();
    }
    if (/late|No receipt/.test(wish)) for (const _day of [1, 2]) await press(page, '+1 day');
    await newest(page).locator('.line .badge', { hasText: status }).waitFor();
    const [receipt] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'Open the receipt (CEP)' }).click(),
    ]);
    await receipt.getByRole('heading', { name: 'Ordenante' }).waitFor();
    const text = await receipt.locator('main').innerText();
    expect(text).toContain('Concepto del pago');
    expect(text).toContain(holder ?? 'No disponible');
  });

  it('opens a movement that changes between the press and the release of the button', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    await page.getByRole('switch').click();
    await said(page, /Every webhook fails/);
    await press(page, 'Simulate the credit');
    await newest(page).getByText('webhook on its way').waitFor();
    await newest(page).getByRole('button').first().hover();
    await page.mouse.down();
    const order = (method: string, path: string, body: object) =>
      fetch(sandbox.url + path, {
        method,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    await order('PATCH', '/sandbox/webhooks', { down: false });
    expect((await order('POST', '/sandbox/clock', { advanceSeconds: 90 })).ok).toBe(true);
    // The page reads again once it has shown what it read before.
    for (const _read of [1, 2, 3]) await page.waitForResponse('**/sandbox/overview');
    await page.mouse.up();
    await page.locator('.opened .axis').waitFor();
    await newest(page).getByText('1 webhook').waitFor();
  });

  it('goes on where a movement is pressed for its menu, whose end the page may never be told of', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    const clabe = sandbox.accounts[0].clabe;
    await sandbox.credit({ clabe, amount: '12.34', payerName: 'Fuera Uno' });
    await newest(page).getByText('Fuera Uno').hover();
    await page.mouse.down({ button: 'right' });
    await sandbox.credit({ clabe, amount: '12.34', payerName: 'Fuera Dos' });
    await newest(page).getByText('Fuera Dos').waitFor();
  });

  it('shows a fault armed, seen and disarmed', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    for (const _twice of [1, 2]) {
      await page.getByLabel('When').selectOption({ label: 'the accounts are listed' });
      await page.getByLabel('Then').selectOption({ label: 'it is answered with 503' });
      await page.getByLabel('How often').selectOption({ label: 'until disarmed' });
      await press(page, 'Arm');
      await page.locator('.entry .badge', { hasText: /^armed$/ }).waitFor();
      const ask = () =>
        fetch(`${sandbox.url}/v1/clients/${sandbox.clientId}/accounts`, {
          headers: { authorization: `Bearer ${sandbox.accessToken}` },
        });
      expect((await ask()).status).toBe(503);
      await page.locator('.entry .badge', { hasText: 'armed, seen once' }).waitFor();
      await press(page, 'Disarm');
      await page.getByText('Every request is answered as it should be.').waitFor();
      expect((await ask()).status).toBe(200);
    }
  });

  it('arms a fault for one account, where the request may name one', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    const label = page.locator('label', { has: page.getByText('Account', { exact: true }) });
    const account = label.locator('select');
    const [, second] = sandbox.accounts;
    await account.selectOption(second?.id ?? '');
    await page.getByLabel('When').selectOption({ label: 'the accounts are listed' });
    expect(await account.isDisabled()).toBe(true);
    await press(page, 'Arm');
    await page.getByLabel('When').selectOption({ label: 'a payment is sent' });
    await press(page, 'Arm');
    await page.locator('.entry', { hasText: second?.alias ?? '' }).waitFor();
    expect((await sandbox.faults()).map(({ match }) => match.account)).toEqual([undefined, second?.id]);
  });

  it('steps the clock, lets it run, and stops it', async () => {
    await using one = await visit();
    const { page, sandbox } = one;
    const before = Date.parse((await sandbox.clock()).now);
    await press(page, '+1 h');
    await said(page, /everything that fell due has happened/);
    expect(Date.parse((await sandbox.clock()).now)).toBe(before + 3_600_000);
    await page.getByLabel('Speed').selectOption('600');
    await said(page, 'The clock runs 600 times as fast as yours.');
    expect((await sandbox.clock()).speed).toBe(600);
    await page.getByLabel('Speed').selectOption('0');
    await said(page, 'The clock stands still until it is stepped.');
  });

  it('says that the sandbox is gone', async () => {
    await using one = await visit();
    await one.sandbox.close();
    await one.page.getByText('The sandbox does not answer.').waitFor();
  });
});

describe.each(['/', '/docs'])('the page %s', (path) => {
  it.each([
    ['light', 'en-US'],
    ['dark', 'es-MX'],
  ] as const)('has no serious finding of axe, in %s, %s', async (colorScheme, locale) => {
    await using one = await visit(path, { colorScheme, locale });
    const { page, sandbox } = one;
    if (path === '/') {
      await sandbox.fail('GET /v1/banks', { lose: 'answer' });
      await page.locator('.entry').first().waitFor();
      await newest(page).getByRole('button').first().click();
      await page.locator('.axis').waitFor();
    } else await page.locator('.endpoint summary').nth(10).click();
    expect(await seriousFindings(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.lang)).toBe(
      locale === 'es-MX' ? 'es-MX' : 'en',
    );
  });

  it('fits a telephone, and is Spanish for who reads Spanish', async () => {
    await using one = await visit(path, { viewport: { width: 390, height: 844 }, locale: 'es-MX' });
    const { page } = one;
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
    await page.getByRole('link', { name: 'Referencia' }).waitFor();
    await press(page, 'English');
    await page.getByRole('link', { name: 'Reference' }).waitFor();
  });
});
