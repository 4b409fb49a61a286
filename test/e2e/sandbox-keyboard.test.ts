import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { until } from '../helpers/until.ts';
import { visitSandbox } from './sandbox-visit.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());

const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const element = document.activeElement;
    return element === document.body ? 'nothing' : (element?.textContent ?? '');
  });

const row = (page: Page, text: string) => page.locator('.transactions > li', { hasText: text });

async function pressEnterOn(page: Page, name: string): Promise<void> {
  await page.locator('main').getByRole('button', { name, exact: true }).first().focus();
  await page.keyboard.press('Enter');
}

describe('the console, by keyboard alone', () => {
  it('keeps the focus and what is typed in an open movement, whatever changes meanwhile', async () => {
    await using one = await visitSandbox(browser);
    const { page, sandbox } = one;
    const [{ clabe }] = sandbox.accounts;
    const credit = (payerName: string) => sandbox.credit({ clabe, amount: '5.00', payerName });
    await credit('Primera');
    await row(page, 'Primera').getByRole('button').first().focus();
    await page.keyboard.press('Enter');
    const detail = row(page, 'Primera').locator('.detail');
    await detail.locator('.axis summary').first().focus();
    await page.keyboard.press('Enter');

    // The list grows above it.
    const address = detail.locator('input[type="url"]');
    await address.fill('http://127.0.0.1:1/mine');
    await credit('Segunda');
    await row(page, 'Segunda').waitFor();
    expect(await address.evaluate((field) => field === document.activeElement)).toBe(true);

    // What is open has another step.
    const steps = await detail.locator('.axis > li').count();
    await detail.locator('details[open]').getByRole('button', { name: 'Send again' }).focus();
    await page.keyboard.press('Enter');
    await until(async () => (await detail.locator('.axis > li').count()) > steps);
    expect(await focused(page)).toBe('Send again');
    expect(await address.first().inputValue()).toBe('http://127.0.0.1:1/mine');

    // The row itself is another, and what was pressed is gone.
    await pressEnterOn(page, 'Refund');
    await row(page, 'Primera').locator('.line .badge', { hasText: 'REFUNDED' }).waitFor();
    await detail.getByRole('button', { name: 'Refund', exact: true }).waitFor({ state: 'detached' });
    expect(await focused(page)).toContain('Primera');
    await page.keyboard.press('Enter');
    await detail.waitFor({ state: 'detached' });
    expect(await focused(page)).toContain('Primera');
    expect(one.failures).toEqual([]);
  });

  it('has the focus near a fault that is disarmed, and never nowhere', async () => {
    await using one = await visitSandbox(browser);
    const { page } = one;
    for (const count of [1, 2, 3]) {
      await pressEnterOn(page, 'Arm');
      await until(async () => (await page.locator('.entry .badge', { hasText: 'armed' }).count()) === count);
    }
    await pressEnterOn(page, 'Disarm');
    await until(async () => (await page.locator('.entry .badge', { hasText: 'armed' }).count()) === 2);
    expect(await focused(page)).toBe('Disarm');
    await pressEnterOn(page, 'Disarm all');
    await page.getByText('Every request is answered as it should be.').waitFor();
    expect(await focused(page)).toBe('Make a request fail');
    await pressEnterOn(page, 'Arm');
    await page.locator('.entry .badge', { hasText: 'armed' }).waitFor();
    await pressEnterOn(page, 'Disarm');
    await page.getByText('Every request is answered as it should be.').waitFor();
    expect(await focused(page)).toBe('Make a request fail');
  });
});

describe('in Spanish', () => {
  it.each([1440, 1024, 390])('cuts no label of a form and no address, at %i pixels', async (width) => {
    await using one = await visitSandbox(browser, '/', {
      locale: 'es-MX',
      viewport: { width, height: 844 },
    });
    const { page } = one;
    for (const title of ['Sale una transferencia', 'Validación de un centavo']) {
      await page.locator('.panel summary', { hasText: title }).click();
      const labels = page.locator('.panel label:visible > span');
      const cut = labels.evaluateAll((all) =>
        all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent),
      );
      expect(await labels.count()).toBeGreaterThan(3);
      expect(await cut).toEqual([]);
    }
    await page.getByText('Llega un abono por SPEI').click();
    const movements = page.locator('.transactions > li');
    const before = await movements.count();
    await pressEnterOn(page, 'Simular el abono');
    await page.locator('.said').getByText('Llegaron').waitFor();
    // The list hears of the credit by itself. An older movement may have no webhook.
    await movements.nth(before).waitFor();
    await movements.first().getByRole('button').first().click();
    await page.locator('.axis summary').last().click();
    const handler = page.locator('.axis').getByLabel('o a tu propio receptor').last();
    expect(await handler.evaluate((input) => input.scrollWidth - input.clientWidth)).toBe(0);
  });

  it('says what the sandbox refuses in Spanish, and that nobody answered a webhook', async () => {
    await using one = await visitSandbox(browser, '/', { locale: 'es-MX' });
    const { page } = one;
    await page.getByText('Sale una transferencia').click();
    const form = page.locator('form:visible').first();
    for (const [amount, reason] of [
      ['99999999', 'La cuenta no tiene fondos suficientes.'],
      ['0', 'El monto debe ser mayor que 0.'],
    ] as const) {
      await form.getByLabel('Monto').fill(amount);
      await pressEnterOn(page, 'Transferir');
      await page.locator('.said.bad').getByText(reason).waitFor();
    }
    await page.getByRole('switch').click();
    await page.getByText('Llega un abono por SPEI').click();
    await pressEnterOn(page, 'Simular el abono');
    await page.locator('.said').getByText('quedan retenidos').waitFor();
    await page.locator('.transactions > li').first().getByRole('button').first().click();
    const axis = page.locator('.axis');
    await axis.getByText('conexión rechazada (ECONNREFUSED)').first().waitFor();
    await page.getByRole('switch').click();
    await page.locator('.said').getByText('Los webhooks vuelven a llegar.').waitFor();
    await axis.locator('summary').first().click();
    await axis.getByLabel('o a tu propio receptor').first().fill('http://example.com/hook');
    await pressEnterOn(page, 'Enviar ahí');
    await page.locator('.said.bad').getByText('Los webhooks solo van a esta máquina').waitFor();
  });
});
