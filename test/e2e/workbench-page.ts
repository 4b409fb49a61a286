import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';

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

/**
 * Runs in the page: has it wait five times as long for an answer. It gives its gateway three seconds, and takes one that is slower for
 * one that is gone, or that does not know whether a token is good.
 */
export function waitLonger(): void {
  const { timeout } = AbortSignal;
  AbortSignal.timeout = (ms) => timeout.call(AbortSignal, 5 * ms);
}

/** Opens it in a browser of its own, with nothing in its storage and with no network but this machine. */
export async function visit(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.addInitScript(waitLonger);
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
  const told = await page.waitForFunction((last) => {
    const text = document.querySelector('.wb-said')?.textContent ?? '';
    return text === last ? '' : text;
  }, before);
  // The bar may say nothing any more.
  return told.jsonValue();
}

/** Does something that a place tells of in a text, which may be gone by the time that the test looks: the page itself looks for it meanwhile. */
export async function tells(place: Locator, text: string, act: () => Promise<unknown>): Promise<void> {
  const element = await place.elementHandle();
  await Promise.all([
    place
      .page()
      .waitForFunction(({ at, wanted }) => at instanceof HTMLElement && at.innerText.includes(wanted), {
        at: element,
        wanted: text,
      }),
    act(),
  ]);
}

/** How far the clock of a page is put forward as it is stopped: a test may stand still for ten seconds between two steps, and the clock goes on until then. */
const AHEAD_MS = 12_000;

/** The clock of the page stands from now on, and goes by leaps alone until it is resumed: on a busy machine seconds pass between two steps. */
export async function stop(page: Page): Promise<void> {
  await page.clock.install();
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + AHEAD_MS);
}
