import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';

/** The page at /graphql, as somebody sees it who has never been there. */
export interface Visit extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Addresses beyond this machine that the page has asked for. None of them was reached. */
  readonly foreign: readonly string[];
  /** What went wrong on the page: exceptions, and what its content security policy refused. */
  readonly failures: readonly string[];
}

const isHere = (address: string): boolean =>
  !/^(https?|wss?):/.test(address) || ['127.0.0.1', 'localhost'].includes(new URL(address).hostname);

/** Opens it in a browser of its own, with nothing in its storage and with no network but this machine. */
export async function visit(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const foreign: string[] = [];
  const failures: string[] = [];
  await context.route(
    (url) => !isHere(url.href),
    (route) => {
      foreign.push(route.request().url());
      return route.abort();
    },
  );
  const page = await context.newPage();
  page.on('pageerror', (error) => failures.push(error.message));
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) failures.push(message.text());
  });
  await page.goto(address);
  await page.locator('.wb-operation .view-line').first().waitFor();
  return { page, context, foreign, failures, [Symbol.asyncDispose]: () => context.close() };
}

export const openTab = (page: Page, title: string): Promise<void> =>
  page.getByRole('tab', { name: new RegExp(`^${title}`) }).click();

export const play = (page: Page): Promise<void> =>
  page.getByRole('button', { name: /^Execute query/ }).click();

export async function watchMoneyIn(page: Page): Promise<void> {
  await openTab(page, 'WatchMoneyIn');
  await play(page);
  await page.locator('.wb-status.wb-live').waitFor();
}

/** The events of the stream that is shown. */
export const rows = (page: Page) => page.locator('.wb-event summary');

/** The text of an editor. Monaco draws spaces as non-breaking ones, and only the lines that are seen. */
export const textOf = async (page: Page, editor: string): Promise<string> =>
  (await page.locator(`${editor} .view-lines`).innerText()).replaceAll('\u00a0', ' ');

/** The result, once it matches. */
export async function result(page: Page, pattern: RegExp): Promise<string> {
  await page.waitForFunction(
    ({ source }) => {
      const text = document.querySelector('.result-window .view-lines')?.textContent ?? '';
      return new RegExp(source).test(text.replaceAll('\u00a0', ' '));
    },
    { source: pattern.source },
  );
  return textOf(page, '.result-window');
}

/** Presses a button of the bar. @returns what it says that it did. */
export async function deed(page: Page, button: string): Promise<string> {
  const said = page.locator('.wb-said');
  const before = await said.innerText();
  await page.locator('.wb-sandbox').getByRole('button', { name: button, exact: true }).click();
  await page.waitForFunction(
    (text) => ![text, ''].includes(document.querySelector('.wb-said')?.textContent ?? ''),
    before,
  );
  return said.innerText();
}
