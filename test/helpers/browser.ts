import { existsSync } from 'node:fs';
import {
  type APIResponse,
  type Browser,
  type BrowserContext,
  chromium,
  type Page,
  type Route,
} from 'playwright-core';

/** The first has no window to draw, and takes half the CPU of the others to open the page at `/graphql`. */
const PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
];

/** How long until what a page does not show counts as missing, as does a browser that does not start, in milliseconds: beside busy neighbours it takes ten times as long as alone. */
const PATIENCE_MS = 200_000;

/** Starts the system's Chromium without a window, and with nothing that calls home. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) {
    throw new Error('The browser tests need Chromium. Install it first: npm run setup:chromium');
  }
  const browser = await chromium.launch({
    executablePath,
    timeout: PATIENCE_MS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  browser.on('context', (context) => context.setDefaultTimeout(PATIENCE_MS));
  return browser;
}

/** What Playwright says of an answer whose page, context or browser ends meanwhile. Whether they have, it says later. */
const ENDED = /\b(closed|disposed)\b/;

/** Changes what a page is answered. The page may be closed amid an answer, which then reaches nobody. */
export const changeAnswers = (
  target: Page | BrowserContext,
  asked: Parameters<Page['route']>[0],
  change: (answer: APIResponse) => Promise<Parameters<Route['fulfill']>[0]>,
  /** Of what is asked instead, for an address. */
  instead: (address: string) => string = (address) => address,
): Promise<unknown> =>
  target.route(asked, async (route) => {
    try {
      const answer = await route.fetch({ url: instead(route.request().url()) });
      await route.fulfill(await change(answer));
    } catch (error) {
      if (!ENDED.test(String(error))) throw error;
    }
  });
