import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeAnswers } from '../helpers/browser.ts';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result, rows, stop, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

/** Lets the sandbox give another token from then on. Resolves with what resolves once the page has taken that. */
async function renewToken(page: Page, isDue: () => boolean): Promise<{ readonly isTaken: Promise<void> }> {
  const isTaken = Promise.withResolvers<void>();
  let looks = 0;
  await changeAnswers(
    page,
    (url) => url.pathname.endsWith('/workbench/sandbox'),
    async (answer) => {
      const sandbox = await answer.json();
      if (!isDue()) return { json: sandbox };
      looks += 1;
      // By its second look the page has taken what it was told at the first.
      if (looks === 2) isTaken.resolve();
      return { json: { ...sandbox, accessToken: 'the next' } };
    },
  );
  return { isTaken: isTaken.promise };
}

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo?.[Symbol.asyncDispose]());

describe('the page', () => {
  it('says that the device is offline, and that it is connected again', async () => {
    await using one = await demo.open();
    const { page, context } = one;
    // A gateway on this device needs no network.
    await context.setOffline(true);
    await page.getByRole('alert').getByText('The gateway does not answer.').waitFor();
    await page.locator('.wb-chip', { hasText: 'No gateway' }).waitFor();
    await play(page);
    await result(page, /The\s+gateway\s+does\s+not\s+answer/);
    await context.setOffline(false);
    await page.locator('.wb-chip', { hasText: 'Connected' }).waitFor();
    await play(page);
    await result(page, /"totalCount": \d+/);
  });

  it('says that the device is offline where the gateway is elsewhere', async () => {
    await using context = await demo.browser.newContext();
    const elsewhere = 'http://gateway.test';
    await changeAnswers(
      context,
      `${elsewhere}/**`,
      async (response) => ({ response }),
      (address) => address.replace(elsewhere, demo.addresses.gateway),
    );
    const page = await context.newPage();
    await page.goto(`${elsewhere}/graphql`);
    await page.locator('.wb-operation .view-line').first().waitFor();
    await context.route(`${elsewhere}/**`, (route) => route.abort());
    await context.setOffline(true);
    await page.getByRole('alert').getByText('This device is offline.').waitFor();
    await play(page);
    await result(page, /This\s+device\s+is\s+offline,\s+and\s+the\s+gateway\s+is\s+not\s+on\s+it/);
  });

  it('refuses a translation, and says that it has ended where another program moves what it draws', async () => {
    await using one = await demo.open({ locale: 'es-MX' });
    const { page, context } = one;
    expect(await page.locator('html').getAttribute('translate')).toBe('no');
    expect(await page.locator('meta[name=google]').getAttribute('content')).toBe('notranslate');
    await context.setOffline(true);
    // What an extension has put in the place of a message cannot be taken away by the page.
    await page.locator('.wb-notice').evaluate((notice) => notice.replaceWith(notice.cloneNode(true)));
    await context.setOffline(false);
    await page.getByRole('alert').filter({ hasText: 'Ya no se puede mostrar' }).waitFor();
    await page.getByRole('button', { name: 'Volver a cargar la página' }).click();
    await page.getByRole('tab', { name: /^Instruments/ }).waitFor();
  });

  it('gets another token from the sandbox when its own is no longer good', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await demo.kill();
    // Another seed: another key, and other clients.
    await demo.start({ SANDBOX_SEED: '2' });
    await page.locator('.wb-status.wb-live').waitFor();
    await openTab(page, 'Instruments');
    await play(page);
    await result(page, /"totalCount": \d+/);
    // Its accounts are others as well.
    expect(await deed(page, 'Simulate a credit')).toContain('LIQUIDATED');
  });
});

describe('an operation', () => {
  it('that was refused is sent again with the token that another one has brought meanwhile', async () => {
    await using one = await demo.open();
    const { page } = one;
    const sent: (string | undefined)[] = [];
    const { isTaken } = await renewToken(page, () => sent.length > 0);
    await page.route(
      (url) => url.pathname === '/graphql',
      async (route) => {
        if (route.request().method() !== 'POST') return route.fallback();
        sent.push(route.request().headers()['authorization']);
        if (sent.length > 1) return route.fulfill({ json: { data: { totalCount: 1 } } });
        await isTaken;
        const refusal = { message: 'No.', extensions: { code: 'UNAUTHENTICATED' } };
        return route.fulfill({ status: 401, json: { errors: [refusal] } });
      },
    );
    await play(page);
    await result(page, /"totalCount": 1/);
    expect(sent).toEqual([`Bearer ${demo.addresses.token}`, 'Bearer the next']);
  });

  it('that is refused asks the sandbox for another token, and is sent again with that', async () => {
    await using one = await demo.open();
    const { page } = one;
    const sent: (string | undefined)[] = [];
    let isRefused = false;
    await renewToken(page, () => isRefused);
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) => {
        if (route.request().method() !== 'POST') return route.fallback();
        sent.push(route.request().headers()['authorization']);
        if (sent.length > 1) return route.fulfill({ json: { data: { totalCount: 1 } } });
        isRefused = true;
        const refusal = { message: 'No.', extensions: { code: 'UNAUTHENTICATED' } };
        return route.fulfill({ status: 401, json: { errors: [refusal] } });
      },
    );
    await play(page);
    expect(await result(page, /"totalCount": 1|"UNAUTHENTICATED"/)).toContain('"totalCount": 1');
    expect(sent).toEqual([`Bearer ${demo.addresses.token}`, 'Bearer the next']);
  });

  it('of two mutations, of which the first was made, is not sent again with another token', async () => {
    await using one = await demo.open();
    const { page } = one;
    let sent = 0;
    const { isTaken } = await renewToken(page, () => sent > 0);
    await page.route(
      (url) => url.pathname === '/graphql',
      async (route) => {
        if (route.request().postData()?.includes('StartPennyValidation') !== true) return route.fallback();
        sent += 1;
        await isTaken;
        const refusal = { message: 'No.', path: ['second'], extensions: { code: 'UNAUTHENTICATED' } };
        return route.fulfill({ json: { data: { first: { id: '1' }, second: null }, errors: [refusal] } });
      },
    );
    await openTab(page, 'StartPennyValidation');
    await play(page);
    await result(page, /"UNAUTHENTICATED"/);
    expect(sent).toBe(1);
  });
});

describe('the sandbox bar', () => {
  it('tells what each of its buttons did, and they do it', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    expect(await deed(page, 'Simulate a credit')).toMatch(
      /^1250\.00 MXN from .+ arrived at .+: LIQUIDATED\.$/,
    );
    await rows(page).first().waitFor();
    expect(await deed(page, 'Refund it')).toContain('1250.00 MXN');
    expect(await deed(page, '+5 minutes')).toContain('Five minutes have passed');

    expect(await deed(page, 'Delay')).toContain('1.5 s');
    await openTab(page, 'Instruments');
    await play(page);
    await page
      .locator('.wb-waterfall li .wb-time', { hasText: /^1[5-9]\d\d ms|^[2-9]\d{3} ms/ })
      .first()
      .waitFor();

    expect(await deed(page, 'Fail')).toContain('503');
    const failed = page.waitForResponse((response) => response.request().method() === 'POST');
    await play(page);
    await failed;
    await page.locator('.wb-waterfall .wb-bad', { hasText: '503' }).waitFor();
    expect(await deed(page, 'Heal')).toContain('healthy');

    expect(await deed(page, 'Lose answer')).toContain('its answer lost');
    await openTab(page, 'StartPennyValidation');
    await play(page);
    await result(page, /"message"/);
    expect(await deed(page, 'Heal')).toContain('healthy');
  });
});

describe('a message that is over goes away:', () => {
  it('what a button did after a while, and what went wrong with the next deed', async () => {
    await using one = await demo.open();
    const { page } = one;
    await stop(page);
    const said = page.locator('.wb-said');
    expect(await deed(page, 'Simulate a credit')).toContain('1250.00 MXN');
    await page.clock.fastForward(9_000);
    expect(await said.innerText()).toContain('1250.00 MXN');
    await page.clock.fastForward(2_000);
    await page.waitForFunction(() => document.querySelector('.wb-said')?.textContent === '');

    await page.route(
      (url) => url.pathname.endsWith('/spei-credits'),
      (route) => route.abort(),
    );
    await deed(page, 'Simulate a credit');
    await page.clock.fastForward(60_000);
    expect(await said.getAttribute('class')).toContain('wb-is-bad');
    expect(await said.innerText()).not.toBe('');
    await deed(page, '+5 minutes');
    expect(await said.getAttribute('class')).not.toContain('wb-is-bad');
  });

  it('what was copied or saved, each time after as long', async () => {
    await using one = await demo.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = one;
    await page.getByRole('button', { name: 'Code', exact: true }).click();
    await stop(page);
    for (const [button, said, ms] of [
      ['.wb-copy', 'Copied', 1_500],
      ['[aria-label="Copy a link to this operation"]', 'Link copied', 1_500],
      ['.wb-menu button:text("Copy a link to it")', 'Link copied', 5_000],
    ] as const) {
      if (button.startsWith('.wb-menu')) await page.getByText('Session', { exact: true }).click();
      const shown = page.getByText(said, { exact: true });
      await page.locator(button).click();
      await shown.waitFor();
      await page.clock.fastForward(ms - 300);
      await page.locator(button).click();
      await page.evaluate(() => navigator.clipboard.readText());
      // The time of the first is over.
      await page.clock.fastForward(400);
      await shown.waitFor();
      await page.clock.fastForward(ms);
      await shown.waitFor({ state: 'detached' });
    }
  });

  it('that the gateway was started again, once it could be read, or by a button', async () => {
    await using one = await demo.open();
    const { page } = one;
    const notice = page.getByText('The gateway was restarted.');
    const complaint = page.getByText('The gateway does not answer.');
    const again = async () => {
      await demo.kill();
      await complaint.waitFor();
      // The page tells of the gateway for as long as its clock stands.
      await stop(page);
      await demo.start();
      // The page waits a second between two looks.
      await page.clock.fastForward(2_000);
      await complaint.waitFor({ state: 'detached' });
      await notice.waitFor();
    };
    await again();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await notice.waitFor({ state: 'detached' });
    await again();
    // The page looks for its gateway meanwhile. By its second look it has taken what it was told at the first.
    for (const _look of [1, 2]) {
      const looked = page.waitForResponse((response) => response.url().endsWith('/workbench/session'));
      let isOver = false;
      const over = looked.then(() => {
        isOver = true;
      });
      // One that comes while the look before is still being read begins none.
      await until(async () => {
        if (!isOver) await page.evaluate(() => window.dispatchEvent(new Event('online')));
        return isOver;
      });
      await over;
    }
    expect(await notice.isVisible()).toBe(true);
    await page.clock.fastForward(16_000);
    await notice.waitFor({ state: 'detached' });
  });
});
