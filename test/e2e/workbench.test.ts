import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../helpers/until.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result, rows, tells, textOf, visit, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  // A receipt is on its way for a minute and a half: a page that is slow sees it so as well.
  demo = await startDemo({ SANDBOX_SPEED: '1' });
});
afterAll(() => demo?.[Symbol.asyncDispose]());

/** After so long without a byte, in milliseconds, the page has what it wants. */
const QUIET_MS = 1_000;

describe('the first load', () => {
  it('takes at most 3 MB over the wire, compressed, and asks nobody but the gateway', async () => {
    await using context = await demo.browser.newContext();
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
    await page.goto(`${demo.addresses.gateway}/graphql`);
    await page.locator('.wb-operation .view-line').first().waitFor();
    // Not the browser's own idleness: it may wait without end for a worker's request, of whose end it is not told.
    await until(() => performance.now() - heardAt > QUIET_MS);
    expect(bytes).toBeLessThanOrEqual(3_000_000);
    expect(new Set(encodings.values())).toEqual(new Set(['br']));
    const foreign = addressesAsked.filter(
      (address) => /^https?:/.test(address) && !address.startsWith(`${demo.addresses.gateway}/graphql`),
    );
    expect(foreign).toEqual([]);
  });

  it('has a policy that lets no script of the page’s own text run', async () => {
    const page = await fetch(`${demo.addresses.gateway}/graphql`, { headers: { accept: 'text/html' } });
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(/script-src ([^;]*)/.exec(policy)?.[1]).toBe("'self'");
    expect(await page.text()).not.toMatch(/<script(?![^>]*\bsrc=)/);
  });
});

describe('the story', () => {
  it('is told by play alone: the join, the validation, its receipt, and money in', async () => {
    await using one = await demo.open();
    const { page, context } = one;
    expect(await page.locator('.wb-tab').allInnerTexts()).toEqual([
      'Instruments',
      'StartPennyValidation',
      'WatchCep',
      'WatchMoneyIn',
    ]);
    const answered = page.waitForResponse((response) =>
      (response.request().postData() ?? '').includes('query Instruments'),
    );
    await play(page);
    await result(page, /"totalCount": \d+/);
    const { data } = await (await answered).json();
    const banks = data.client.instruments.nodes.map(
      (node: { bank: { name: unknown } | null }) => node.bank?.name,
    );
    expect(banks).toContainEqual(expect.stringMatching(/\w/));
    await page
      .locator('.wb-waterfall')
      .getByText(/^1 request, 4 REST calls/)
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
    await fetch(`${demo.addresses.sandbox}/sandbox/clock`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"advanceSeconds":90}',
    });
    await completed.waitFor();
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
    await using one = await demo.open();
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
    await using first = await demo.open();
    await using second = await demo.open();
    const ids = [await started(first.page), await started(second.page)];
    // As a page leaves it that is reloaded between two writes of GraphiQL's.
    await first.page.evaluate(() => localStorage.setItem('pasarela:sandbox:graphiql:variables', '{}'));
    await first.page.reload();
    await first.page.locator('.wb-operation .view-line').first().waitFor();
    expect(await first.page.locator('.wb-tab').count()).toBe(4);
    ids.push(await started(first.page));
    expect(new Set(ids).size).toBe(3);
  });

  it('fits a telephone, and is told there too', async () => {
    await using one = await demo.open({
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
    });
    const { page } = one;
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(await overflow()).toBe(0);
    await play(page);
    await result(page, /"totalCount": \d+/);
    expect(await overflow()).toBe(0);
    // No path of a REST call is cut.
    const calls = page.locator('.wb-waterfall .wb-call');
    await calls.first().waitFor();
    expect(
      await calls.evaluateAll((all) => all.filter((one) => one.scrollWidth > one.clientWidth).length),
    ).toBe(0);
    await watchMoneyIn(page);
    await deed(page, 'Simulate a credit');
    await rows(page).first().waitFor();
    expect(await overflow()).toBe(0);
  });
});

describe('beneath a result', () => {
  it('stand the REST calls of extensions.upstream, with when they began and how long they took', async () => {
    await using one = await demo.open();
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
    await using one = await demo.open();
    const { page } = one;
    await page.getByRole('button', { name: 'Code', exact: true }).click();
    const code = page.locator('.wb-code-text pre');
    const shell = await code.innerText();
    const { stdout } = await promisify(execFile)('sh', ['-c', shell], {
      env: { PATH: process.env['PATH'], TOKEN: demo.addresses.token },
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
    // Also of variables with a comment, and of some that are none.
    await page.locator('.wb-variables .graphiql-editor:not(.hidden)').click();
    for (const [variables, sign] of [
      ['{"a": 1, // one\n}', 'InstrumentsQuery(a = 1)'],
      ['null', 'InstrumentsQuery()'],
    ] as const) {
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.insertText(variables);
      await code.getByText(sign).waitFor();
    }
  });

  it('a link brings the document and its variables to somebody else', async () => {
    await using one = await demo.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    await openTab(one.page, 'StartPennyValidation');
    await one.page.locator('.wb-variables .view-lines', { hasText: 'idempotencyKey' }).waitFor();
    await tells(one.page.locator('.wb-toolbar'), 'Link copied', () =>
      one.page.getByRole('button', { name: 'Copy a link to this operation' }).click(),
    );
    const link = await one.page.evaluate(() => navigator.clipboard.readText());
    await using other = await visit(demo.browser, link);
    await other.page.locator('.wb-tab[data-active="true"]', { hasText: 'StartPennyValidation' }).waitFor();
    await other.page.locator('.wb-variables .view-lines', { hasText: 'idempotencyKey' }).waitFor();
    expect(await other.page.locator('.wb-tab').count()).toBe(5);
    // Where it was copied nothing has changed, also after a reload; opened there, it has a tab of its own too.
    await one.page.reload();
    await one.page.locator('.wb-operation .view-line').first().waitFor();
    expect(await one.page.locator('.wb-tab').count()).toBe(4);
    await one.page.goto(link);
    await until(async () => (await one.page.locator('.wb-tab').count()) === 5);
  });

  it('says so where the browser gives the page no clipboard, as under http from another machine', async () => {
    await using context = await demo.browser.newContext();
    await context.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
    const page = await context.newPage();
    await page.goto(`${demo.addresses.gateway}/graphql`);
    await page.locator('.wb-operation .view-line').first().waitFor();
    await page.getByText('Session', { exact: true }).click();
    await tells(page.locator('.wb-menu').getByRole('status'), 'The browser does not allow it', () =>
      page.getByRole('button', { name: 'Copy a link to it' }).click(),
    );
    await page.keyboard.press('Escape');
    await tells(page.locator('.wb-toolbar'), 'The link is in the address bar', () =>
      page.getByRole('button', { name: 'Copy a link to this operation' }).click(),
    );
    expect(new URL(page.url()).hash).toContain('Instruments');
    await page.goto(`${demo.addresses.sandbox}/docs`);
    const first = page.locator('.endpoint').first();
    await first.locator('summary').click();
    await tells(first, 'The browser does not allow it', () =>
      first.getByRole('button', { name: 'Copy as curl' }).click(),
    );
  });

  it('what was played is in the history', async () => {
    await using one = await demo.open();
    await play(one.page);
    await result(one.page, /"totalCount": \d+/);
    await one.page.getByRole('button', { name: 'History', exact: true }).click();
    await one.page.locator('.graphiql-history-item', { hasText: 'Instruments' }).waitFor();
  });
});
