import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { demoAddresses, type Program, startProgram } from '../helpers/program.ts';
import { freePort } from '../helpers/restartable.ts';
import { until } from '../helpers/until.ts';
import { deed, openTab, play, result, textOf, type Visit, visit } from './workbench-page.ts';

let ports: { readonly PORT: string; readonly SANDBOX_PORT: string };
let program: Program;
let addresses: Awaited<ReturnType<typeof demoAddresses>>;
let browser: Browser;

beforeAll(async () => {
  ports = { PORT: String(await freePort()), SANDBOX_PORT: String(await freePort()) };
  program = startProgram('src/start.js', ports);
  addresses = await demoAddresses(program);
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await program?.end('SIGKILL');
});

const open = (options: Parameters<typeof visit>[2] = {}, query = ''): Promise<Visit> =>
  visit(browser, `${addresses.gateway}/graphql${query}`, options);

/** Lets a credit arrive as somebody else would, from outside the page. */
async function creditFromOutside(payerName: string): Promise<void> {
  const { accounts } = (await (await fetch(`${addresses.sandbox}/sandbox`)).json()) as {
    accounts: [{ clabe: string }];
  };
  const answer = await fetch(`${addresses.sandbox}/sandbox/spei-credits`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ clabe: accounts[0].clabe, amount: '10.00', payerName }),
  });
  expect(answer.status).toBe(201);
}

async function watchMoneyIn(page: Page): Promise<void> {
  await openTab(page, 'WatchMoneyIn');
  await play(page);
  await page.locator('.wb-status.wb-live').waitFor();
}

/** After so long without a byte, in milliseconds, the page has what it wants. */
const QUIET_MS = 1_000;

const rows = (page: Page) => page.locator('.wb-event summary');

describe('the first load', () => {
  it('takes at most 3 MB over the wire, compressed, and asks nobody but the gateway', async () => {
    await using context = await browser.newContext();
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    await session.send('Network.enable');
    let bytes = 0;
    const addressesAsked: string[] = [];
    const encodings = new Map<string, string | undefined>();
    let heardAt = 0;
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
      heardAt = performance.now();
    });
    page.on('response', (response) => {
      addressesAsked.push(response.url());
      if (/\.(js|css)$/.test(response.url())) {
        encodings.set(response.url(), response.headers()['content-encoding']);
      }
    });
    await page.goto(`${addresses.gateway}/graphql`);
    await page.locator('.wb-operation .view-line').first().waitFor();
    // Not the browser's own idleness: it may wait without end for a worker's request, of whose end it is not told.
    await until(() => performance.now() - heardAt > QUIET_MS);
    expect(bytes).toBeLessThanOrEqual(3_000_000);
    expect(new Set(encodings.values())).toEqual(new Set(['br']));
    const foreign = addressesAsked.filter(
      (address) => /^https?:/.test(address) && !address.startsWith(`${addresses.gateway}/graphql`),
    );
    expect(foreign).toEqual([]);
  });

  it('has a policy that lets no script of the page’s own text run', async () => {
    const page = await fetch(`${addresses.gateway}/graphql`, { headers: { accept: 'text/html' } });
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(/script-src ([^;]*)/.exec(policy)?.[1]).toBe("'self'");
    expect(await page.text()).not.toMatch(/<script(?![^>]*\bsrc=)/);
  });
});

describe('the story', () => {
  it('is told by play alone: the join, the validation, its receipt, and money in', async () => {
    await using one = await open();
    const { page, context } = one;
    expect(await page.locator('.wb-tab').allInnerTexts()).toEqual([
      'Instruments',
      'StartPennyValidation',
      'WatchCep',
      'WatchMoneyIn',
    ]);
    await play(page);
    await result(page, /"totalCount": \d+/);
    await page
      .locator('.wb-waterfall')
      .getByText(/^1 request, \d REST calls/)
      .waitFor();

    await openTab(page, 'StartPennyValidation');
    await play(page);
    const started = await result(page, /"transaction": \{ *"id": "[0-9a-f-]{36}"/);
    const id = /"id": "([0-9a-f-]{36})"/.exec(started)?.[1];

    await openTab(page, 'WatchCep');
    await page.locator('.wb-variables .view-lines', { hasText: String(id) }).waitFor();
    await play(page);
    const pending = page.locator('.wb-event .wb-badge', { hasText: 'PENDING' });
    const completed = page.locator('.wb-event .wb-badge', { hasText: 'COMPLETED' });
    await pending.waitFor();
    const seen = Date.now();
    await completed.waitFor();
    // At the default speed the receipt takes 18 s.
    expect(Date.now() - seen).toBeGreaterThan(10_000);
    const holder = await page.locator('.wb-says').first().innerText();
    expect(holder).not.toBe('');

    const [receipt] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'Open the receipt' }).click(),
    ]);
    await receipt.getByRole('heading', { name: 'Comprobante Electrónico de Pago' }).waitFor();
    expect(await receipt.locator('main').innerText()).toContain(holder);
    await receipt.close();

    await watchMoneyIn(page);
    await deed(page, 'Simulate a credit');
    await rows(page).first().waitFor();
    expect(await page.locator('.wb-says').first().innerText()).toContain('1250.00 MXN');
    expect(one.foreign).toEqual([]);
    expect(one.failures).toEqual([]);
  });

  it('shows a credit after three clicks, and offers to watch a validation', async () => {
    await using one = await open();
    const { page } = one;
    await openTab(page, 'WatchMoneyIn');
    await play(page);
    await page.locator('.wb-empty').getByRole('button', { name: 'Simulate a credit' }).click();
    await rows(page).first().waitFor();

    await openTab(page, 'StartPennyValidation');
    await play(page);
    await page.getByRole('button', { name: 'Watch this' }).click();
    await page.locator('.wb-event .wb-badge', { hasText: 'PENDING' }).waitFor();
    expect(await page.locator('.wb-tab[data-active="true"]').innerText()).toContain('WatchCep');
  });

  it('gives each visitor, and each visit, a payment of its own', async () => {
    const started = async (page: Page) => {
      await openTab(page, 'StartPennyValidation');
      await play(page);
      const text = await result(page, /"transaction": \{ *"id": "[0-9a-f-]{36}"/);
      expect(text).toContain('"replayed": false');
      return /"id": "([0-9a-f-]{36})"/.exec(text)?.[1];
    };
    await using first = await open();
    await using second = await open();
    const ids = [await started(first.page), await started(second.page)];
    // As a page leaves it that is reloaded between two writes of GraphiQL's.
    await first.page.evaluate(() => localStorage.setItem('pasarela:graphiql:variables', '{}'));
    await first.page.reload();
    await first.page.locator('.wb-operation .view-line').first().waitFor();
    expect(await first.page.locator('.wb-tab').count()).toBe(4);
    ids.push(await started(first.page));
    expect(new Set(ids).size).toBe(3);
  });

  it('fits a telephone, and is told there too', async () => {
    await using one = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const { page } = one;
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(await overflow()).toBe(0);
    await play(page);
    await result(page, /"totalCount": \d+/);
    expect(await overflow()).toBe(0);
    await watchMoneyIn(page);
    await deed(page, 'Simulate a credit');
    await rows(page).first().waitFor();
    expect(await overflow()).toBe(0);
  });
});

describe('a stream', () => {
  it('goes on while another tab is used, and its tab says so', async () => {
    await using one = await open();
    const { page } = one;
    await watchMoneyIn(page);
    await openTab(page, 'Instruments');
    await creditFromOutside('Fuera Uno');
    const tab = page.locator('.wb-tab', { hasText: 'WatchMoneyIn' });
    await tab.locator('.wb-dot').waitFor();
    await tab.locator('.wb-count', { hasText: /^1$/ }).waitFor();
    await play(page);
    await result(page, /"totalCount": \d+/);
    await creditFromOutside('Fuera Dos');
    await tab.locator('.wb-count', { hasText: /^2$/ }).waitFor();
    await openTab(page, 'WatchMoneyIn');
    expect(await page.locator('.wb-says').allInnerTexts()).toEqual([
      '10.00 MXN from Fuera Dos',
      '10.00 MXN from Fuera Uno',
    ]);
  });

  it('lists the last 200 events, newest first, which can be opened, paused, and cleared', async () => {
    await using one = await open();
    const { page } = one;
    await watchMoneyIn(page);
    for (let count = 1; count <= 205; count += 1) await creditFromOutside(`Pagador ${count}`);
    await page.getByText('205 events', { exact: true }).waitFor();
    expect(await rows(page).count()).toBe(200);
    expect(await page.locator('.wb-says').first().innerText()).toContain('Pagador 205');
    await rows(page).nth(3).click();
    expect(await page.locator('.wb-event').nth(3).locator('pre').innerText()).toContain('"Pagador 202"');

    await page.getByRole('button', { name: 'Pause' }).click();
    await creditFromOutside('Pagador 206');
    await page.getByText('1 waiting').waitFor();
    expect(await page.locator('.wb-says').first().innerText()).toContain('Pagador 205');
    await page.getByRole('button', { name: 'Go on' }).click();
    expect(await page.locator('.wb-says').first().innerText()).toContain('Pagador 206');

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('Listening. Nothing has happened yet.').waitFor();
  });

  it.each(['SSE', 'WS'])(
    'that is cut over %s resumes where it was, and says how many it caught up',
    async (transport) => {
      await using one = await open({}, transport === 'WS' ? '?subscriptions=WS' : '');
      const { page } = one;
      await watchMoneyIn(page);
      await creditFromOutside('Antes');
      await rows(page).first().waitFor();
      expect(await deed(page, 'Cut')).toContain('One stream is cut');
      await page.locator('.wb-status.wb-cut').waitFor();
      for (const name of ['Uno', 'Dos', 'Tres']) await creditFromOutside(name);
      await page.getByText(/Reconnected, resumed from cursor/).waitFor();
      await page.getByText('3 caught up: the gap is closed.').waitFor();
      expect(await page.locator('.wb-says').allInnerTexts()).toEqual(
        ['Tres', 'Dos', 'Uno', 'Antes'].map((name) => `10.00 MXN from ${name}`),
      );
    },
  );

  it('and the page go on after the gateway was started again, without a reload', async () => {
    await using one = await open();
    const { page } = one;
    await watchMoneyIn(page);
    await creditFromOutside('Antes');
    await rows(page).first().waitFor();
    await program.end('SIGKILL');
    await page.getByText('The gateway does not answer.').waitFor();
    program = startProgram('src/start.js', ports);
    addresses = await demoAddresses(program);
    await page.getByText('The gateway was started again.').waitFor();
    await page.locator('.wb-status.wb-live').waitFor();
    await creditFromOutside('Después');
    await page.locator('.wb-says', { hasText: 'Después' }).waitFor();
    await openTab(page, 'Instruments');
    await play(page);
    await result(page, /"totalCount": \d+/);
  });
});

describe('the page', () => {
  it('says that the device is offline, and that it is connected again', async () => {
    await using one = await open();
    const { page, context } = one;
    await context.setOffline(true);
    await page.getByText('This device is offline.').waitFor();
    await page.locator('.wb-chip', { hasText: 'No gateway' }).waitFor();
    await play(page);
    await result(page, /This device is offline/);
    await context.setOffline(false);
    await page.locator('.wb-chip', { hasText: 'Connected' }).waitFor();
    await play(page);
    await result(page, /"totalCount": \d+/);
  });

  it('gets another token from the sandbox when its own is no longer good', async () => {
    await using one = await open();
    const { page } = one;
    await watchMoneyIn(page);
    await program.end('SIGKILL');
    // Another seed: another key, and other clients.
    program = startProgram('src/start.js', { ...ports, SANDBOX_SEED: '2' });
    addresses = await demoAddresses(program);
    await page.locator('.wb-status.wb-live').waitFor();
    await openTab(page, 'Instruments');
    await play(page);
    await result(page, /"totalCount": \d+/);
  });
});

describe('the sandbox bar', () => {
  it('tells what each of its buttons did, and they do it', async () => {
    await using one = await open();
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

describe('beneath a result', () => {
  it('stand the REST calls of extensions.upstream, with when they began and how long they took', async () => {
    await using one = await open();
    const { page } = one;
    const [response] = await Promise.all([
      page.waitForResponse((answer) => answer.request().postData()?.includes('query Instruments') === true),
      play(page),
    ]);
    const { extensions } = (await response.json()) as {
      extensions: { upstream: { began: number; milliseconds: number; batched: number }[] };
    };
    await page.locator('.wb-waterfall li').first().waitFor();
    const shown = await page.locator('.wb-waterfall li').evaluateAll((items) =>
      items.map((item) => ({
        began: Number(item.getAttribute('data-began')),
        milliseconds: Number(item.getAttribute('data-milliseconds')),
      })),
    );
    const reported = extensions.upstream
      .map(({ began, milliseconds }) => ({ began, milliseconds }))
      .toSorted((a, b) => a.began - b.began);
    expect(shown).toEqual(reported);
    await page.locator('.wb-waterfall').getByText('batched ×25').first().waitFor();
    // What stands there is not repeated above.
    expect(await textOf(page, '.result-window')).not.toContain('extensions');
  });
});

describe('out of the page', () => {
  it('an operation goes as code for six clients, and the shell’s line runs as it stands', async () => {
    await using one = await open();
    const { page } = one;
    await page.getByRole('button', { name: 'Code', exact: true }).click();
    const code = page.locator('.wb-code-text pre');
    const shell = await code.innerText();
    const { stdout } = await promisify(execFile)('sh', ['-c', shell], {
      env: { PATH: process.env['PATH'], TOKEN: addresses.token },
    });
    expect(JSON.parse(stdout)).toMatchObject({
      data: { client: { instruments: { totalCount: expect.any(Number) } } },
    });
    const SIGNS = {
      fetch: 'await fetch(',
      Apollo: "from '@apollo/client/react'",
      urql: "from 'urql'",
      Relay: 'useLazyLoadQuery<InstrumentsQuery>',
      Kotlin: 'apollo.query(InstrumentsQuery())',
    };
    for (const [name, sign] of Object.entries(SIGNS)) {
      await page.getByRole('tab', { name, exact: true }).click();
      expect(await code.innerText()).toContain(sign);
    }
  });

  it('a link brings the document and its variables to somebody else', async () => {
    await using one = await open({ permissions: ['clipboard-read', 'clipboard-write'] });
    await openTab(one.page, 'StartPennyValidation');
    await one.page.locator('.wb-variables .view-lines', { hasText: 'idempotencyKey' }).waitFor();
    await one.page.getByRole('button', { name: 'Copy a link to this operation' }).click();
    await one.page.getByText('Link copied').waitFor();
    const link = await one.page.evaluate(() => navigator.clipboard.readText());
    await using other = await visit(browser, link);
    await other.page.locator('.wb-tab[data-active="true"]', { hasText: 'StartPennyValidation' }).waitFor();
    await other.page.locator('.wb-variables .view-lines', { hasText: 'idempotencyKey' }).waitFor();
    expect(await other.page.locator('.wb-tab').count()).toBe(5);
  });

  it('what was played is in the history', async () => {
    await using one = await open();
    await play(one.page);
    await result(one.page, /"totalCount": \d+/);
    await one.page.getByRole('button', { name: 'History', exact: true }).click();
    await one.page.locator('.graphiql-history-item', { hasText: 'Instruments' }).waitFor();
  });
});
