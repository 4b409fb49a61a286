import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { changeAnswers, startBrowser } from '../helpers/browser.ts';
import { folder } from '../helpers/packages.ts';
import { type Program, startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';
import { startDemo } from './workbench-demo.ts';
import { openTab, play, result, textOf, visit, waitLonger } from './workbench-page.ts';

/** In front of a service that it does not know to be a sandbox, as an operator starts it. */
let service: Sandbox;
let browser: Browser;
beforeAll(async () => {
  service = await startSandbox({ port: 0, speed: 1, seed: 5 });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const VARIABLES = '.wb-variables .graphiql-editor:not(.hidden)';

async function startInFront(variables: Readonly<Record<string, string>>) {
  const program: Program = startProgram('src/start.js', {
    PORT: '0',
    UPSTREAM_URL: service.url,
    WEBHOOK_SECRET: 'a secret for tests that is long enough',
    DATA_DIR: await mkdtemp(join(tmpdir(), 'pasarela-test-')),
    ...variables,
  });
  const [, url = ''] = await program.says(/"url":"(http:[^"]+)"/);
  return { url, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

it('the page asks for a token, keeps it for the session alone, and says that introspection is off and what to do', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true' });
  await using one = await visit(browser, `${gateway.url}/graphql`);
  const { page } = one;
  await page.getByText('This gateway stands in front of a real service.').waitFor();
  expect(await page.locator('.wb-sandbox, .wb-story').count()).toBe(0);
  await page.getByText('Introspection is off here').waitFor();
  expect(await page.locator('.wb-notice').innerText()).toContain('INTROSPECTION=true');

  await page.getByLabel('Access token').fill('no.such.token');
  for (const _twice of [1, 2]) {
    // Said before anything is tried with it.
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('The gateway does not accept this token.').waitFor();
  }
  expect(await page.evaluate(() => ({ ...sessionStorage }))).not.toHaveProperty('pasarela:token');

  // A service that is gone, or that knows nobody for a moment, is no reason not to try the same token again.
  const refusal = { message: 'No.', extensions: { code: 'UNAUTHENTICATED' } };
  const away = { message: 'No.', extensions: { code: 'UPSTREAM_UNAVAILABLE' } };
  const answers = [
    (route: Route) => route.abort(),
    (route: Route) => route.fulfill({ json: { data: { client: null }, errors: [away] } }),
    (route: Route) => route.fulfill({ status: 401, json: { errors: [refusal] } }),
  ];
  await page.route(
    (url) => url.pathname === '/graphql',
    (route) => (answers.shift() ?? ((next) => next.fallback()))(route),
  );
  await page.getByLabel('Access token').fill(service.accessToken);
  const unsaid = 'The gateway does not say whether it accepts this token. Try again.';
  for (const said of [unsaid, unsaid, 'The gateway does not accept this token.']) {
    const left = answers.length;
    await page.getByRole('button', { name: 'Sign in' }).click();
    await until(() => answers.length < left);
    await page.getByRole('alert').getByText(said).waitFor();
  }
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Access token').waitFor({ state: 'detached' });
  await play(page);
  await result(page, /"totalCount": \d+/);
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain(service.accessToken);
  await page.reload();
  await page.locator('.wb-operation .view-line').first().waitFor();
  await play(page);
  await result(page, /"totalCount": \d+/);

  // Without introspection the schema may come from a file.
  const file = page.locator('.wb-notice input[type="file"]');
  await file.setInputFiles({ name: 'schema.graphql', mimeType: 'text/plain', buffer: Buffer.from('type {') });
  await page.locator('.wb-notice', { hasText: 'Syntax Error' }).waitFor();
  // Or the same file, once it is mended, would be no change.
  expect(await file.inputValue()).toBe('');
  await file.setInputFiles(folder('schema.graphql'));
  await page.getByText('Introspection is off here').waitFor({ state: 'detached' });
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  expect(one.failures).toEqual([]);
  expect(one.foreign).toEqual([]);
});

it('the page says nothing where another process behind a balancer answers each time', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true' });
  await using one = await visit(browser, `${gateway.url}/graphql`);
  const { page } = one;
  let looks = 0;
  await changeAnswers(
    page,
    (url) => url.pathname.endsWith('/workbench/session'),
    async (answer) => {
      looks += 1;
      return { json: { ...(await answer.json()), instance: `process ${looks}` } };
    },
  );
  // A look begins once what the one before it was told is shown.
  await until(async () => {
    await page.evaluate(() => window.dispatchEvent(new Event('online')));
    return looks >= 3;
  });
  expect(await page.getByText('The gateway was restarted.').count()).toBe(0);
});

it('a token that is no longer accepted, or has expired, leads to the form, and the next one to the result', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  await using one = await visit(browser, `${gateway.url}/graphql`);
  const { page } = one;
  const signIn = async () => {
    await page.getByLabel('Access token').fill(service.accessToken);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('Access token').waitFor({ state: 'detached' });
  };
  // The page asks its gateway every few seconds what it is, and is answered while somebody signs in.
  const [isAsked, isSignedIn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const isSession = (url: URL) => url.pathname.endsWith('/workbench/session');
  await page.route(isSession, async (route) => {
    isAsked.resolve();
    await isSignedIn.promise;
    await route.continue().catch(() => undefined);
  });
  await isAsked.promise;
  await signIn();
  await page.evaluate(() => {
    const look = () =>
      document.querySelector('.wb-sign-in') && Object.assign(globalThis, { isAskedAgain: true });
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
  });
  const isTold = () => page.waitForResponse((response) => isSession(new URL(response.url())));
  const told = isTold();
  isSignedIn.resolve();
  await told;
  // By then the page has taken what it was told before.
  await isTold();
  expect(await page.evaluate(() => Reflect.has(globalThis, 'isAskedAgain'))).toBe(false);
  await play(page);
  await result(page, /"totalCount": \d+/);
  // As one that was good and has ended: the page holds what the gateway refuses.
  await page.evaluate(() => sessionStorage.setItem('pasarela:token', 'a.b.c'));
  await page.reload();
  await page.locator('.wb-operation .view-line').first().waitFor();
  await play(page);
  await page.getByRole('alert').getByText('The gateway no longer accepts this token.').waitFor();
  // A slip leaves the form where it is, and says so.
  await page.getByLabel('Access token').fill('no.such.token');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('The gateway does not accept this token.').waitFor();
  await signIn();
  await play(page);
  await result(page, /"totalCount": \d+/);
  const tokenTo = (end: number) =>
    `e30.${Buffer.from(JSON.stringify({ exp: end })).toString('base64url')}.e30`;
  await page.evaluate((token) => sessionStorage.setItem('pasarela:token', token), tokenTo(1_000_000_000));
  await page.reload();
  await page.getByRole('alert').getByText('The token has expired.').waitFor();

  // Also while the page is looked at, as soon as it has.
  await page.evaluate(
    (token) => sessionStorage.setItem('pasarela:token', token),
    tokenTo(Math.ceil(Date.now() / 1000) + 3_600),
  );
  await page.clock.install();
  await page.reload();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
  expect(await page.getByLabel('Access token').count()).toBe(0);
  await page.clock.fastForward(3_602_000);
  await page.getByRole('alert').getByText('The token has expired.').waitFor();
});

it('a refusal of the token in an operation’s own headers asks for no other than the one that is signed in', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  await using one = await visit(browser, `${gateway.url}/graphql`);
  const { page } = one;
  await page.getByLabel('Access token').fill(service.accessToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Access token').waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Headers' }).click();
  await page.locator('.wb-variables .graphiql-editor:not(.hidden)').click();
  await page.keyboard.insertText(JSON.stringify({ authorization: 'Bearer a.b.c' }));
  await play(page);
  await result(page, /"UNAUTHENTICATED"/);
  expect(await page.getByLabel('Access token').count()).toBe(0);
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
});

it('a payment keeps its key over a reload: its answer may have been lost', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  const link = { query: 'query Pay { client { id } }', variables: '{"idempotencyKey": "mine"}' };
  await using one = await visit(browser, `${gateway.url}/graphql#${new URLSearchParams(link)}`);
  const { page } = one;
  const key = async () => /workbench-[0-9a-f-]{36}/.exec(await textOf(page, VARIABLES))?.[0];
  await page.getByRole('button', { name: 'New key' }).click();
  await until(async () => (await key()) !== undefined);
  const made = await key();
  await page.reload();
  await until(async () => (await key()) !== undefined);
  expect(await key()).toBe(made);
});

it('is there over plain http, with a payment that may get another key, where the browser makes no UUID', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  await using context = await browser.newContext();
  // A browser takes this machine's own address for as safe as https.
  const plain = 'http://gateway.test';
  await changeAnswers(
    context,
    `${plain}/**`,
    async (response) => ({ response }),
    (address) => address.replace(plain, gateway.url),
  );
  const page = await context.newPage();
  const failures: string[] = [];
  page.on('pageerror', (error) => failures.push(error.message));
  const link = { query: 'query Pay { client { id } }', variables: '{"idempotencyKey": "mine"}' };
  await page.goto(`${plain}/graphql#${new URLSearchParams(link)}`);
  expect(await page.evaluate('[isSecureContext, crypto.randomUUID]')).toEqual([false, undefined]);
  await page.locator('.wb-operation .view-line').first().waitFor();
  await until(async () => failures.length > 0 || (await textOf(page, VARIABLES)).includes('mine'));
  expect(failures).toEqual([]);
  await page.getByRole('button', { name: 'New key' }).click();
  await until(async () => /workbench-[0-9a-f-]{36}/.test(await textOf(page, VARIABLES)));
  expect(failures).toEqual([]);
});

it('is there, and follows, where the browser blocks storage', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  await using context = await browser.newContext();
  await context.addInitScript(waitLonger);
  await context.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage'])
      Object.defineProperty(globalThis, name, {
        get() {
          throw new DOMException('Access is denied for this document.', 'SecurityError');
        },
      });
  });
  const page = await context.newPage();
  const failures: string[] = [];
  page.on('pageerror', (error) => failures.push(error.message));
  const query = 'subscription Watch { moneyIn { cursor } }';
  await page.goto(`${gateway.url}/graphql#${new URLSearchParams({ query })}`);
  await page.getByLabel('Access token').fill(service.accessToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Access token').waitFor({ state: 'detached' });
  await play(page);
  await page.locator('.wb-status.wb-live').waitFor();
  // The page asks its gateway every few seconds who asks.
  await page.waitForResponse((response) => response.url().endsWith('/workbench/session'));
  await page.getByRole('button', { name: 'Stop the stream' }).click();
  await page.getByRole('button', { name: 'Close', exact: true }).click();
  await play(page);
  await page.locator('.wb-status.wb-live').waitFor();
  // Its language is in the address then, until it is another.
  const language = page.locator('html');
  for (const [button, chosen] of [
    ['Español', 'es-MX'],
    ['English', 'en'],
  ] as const) {
    await page.getByRole('button', { name: button }).click();
    await until(async () => (await language.getAttribute('lang').catch(() => undefined)) === chosen);
  }
  expect(failures).toEqual([]);
});

it('a page of the demo whose place a real service takes shows what was kept before that', async () => {
  await using demo = await startDemo();
  await using one = await demo.open();
  const { page } = one;
  await demo.kill();
  await using _gateway = await startInFront({
    GRAPHIQL: 'true',
    INTROSPECTION: 'true',
    PORT: new URL(demo.addresses.gateway).port,
  });
  await page.getByRole('tab', { name: 'Accounts' }).waitFor();
  expect(await page.getByRole('tab', { name: 'StartPennyValidation' }).count()).toBe(0);
});

/** Signs out, and waits for the page that is loaded then: the one before stays, with its results and its form, until the gateway has answered. */
const signOut = (page: Page): Promise<unknown> =>
  Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Sign out' }).click()]);

it('whoever signs out leaves no result behind, in no tab', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  const query = 'query Who { client { id } }';
  await using one = await visit(browser, `${gateway.url}/graphql#${new URLSearchParams({ query })}`);
  const { page } = one;
  await page.getByLabel('Access token').fill(service.accessToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Access token').waitFor({ state: 'detached' });
  await play(page);
  await result(page, new RegExp(service.clientId));
  await page.getByRole('button', { name: 'New tab' }).click();
  await signOut(page);
  await page.getByLabel('Access token').waitFor();
  await openTab(page, 'Who');
  await until(async () => (await textOf(page, '.wb-operation')).includes('query Who'));
  expect(await page.locator('body').innerText()).not.toContain(service.clientId);
  const kept = () => page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]));
  expect(await kept()).not.toContain(service.clientId);
});

it('whoever signs out leaves no token and no events behind, also after a reload', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true', INTROSPECTION: 'true' });
  const query = 'subscription Watch { moneyIn { cursor } }';
  await using one = await visit(browser, `${gateway.url}/graphql#${new URLSearchParams({ query })}`);
  const { page } = one;
  await page.getByLabel('Access token').fill(service.accessToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Access token').waitFor({ state: 'detached' });
  await play(page);
  await page.locator('.wb-status.wb-live').waitFor();
  const kept = () => page.evaluate(() => JSON.stringify({ ...sessionStorage }));
  await until(async () => (await kept()).includes('moneyIn'));
  await signOut(page);
  await page.getByLabel('Access token').waitFor();
  expect(await page.locator('.wb-stream').count()).toBe(0);
  await page.reload();
  await page.getByLabel('Access token').waitFor();
  expect(await page.locator('.wb-stream').count()).toBe(0);
  expect(await kept()).not.toMatch(new RegExp(`moneyIn|${service.accessToken}`));
});

it('a browser reads one sentence where the page is off', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'false' });
  await using context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${gateway.url}/graphql`);
  expect(await page.locator('body').innerText()).toMatch(/^This is a GraphQL endpoint, .*\.\s*$/);
});

it('what is checked in is what the sources of the page build', { timeout: 300_000 }, async () => {
  const { stderr } = await promisify(execFile)(process.execPath, ['scripts/workbench.ts', '--check'], {
    cwd: folder('.'),
  });
  expect(stderr).toBe('');
});

it('the page on a telephone shows the form before all else, and says the same in Spanish', async () => {
  await using gateway = await startInFront({ GRAPHIQL: 'true' });
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, locale: 'es-MX' };
  await using one = await visit(browser, `${gateway.url}/graphql`, phone);
  const { page } = one;
  const box = await page.getByRole('button', { name: 'Entrar' }).boundingBox();
  expect((box?.y ?? Number.POSITIVE_INFINITY) + (box?.height ?? 0)).toBeLessThan(phone.viewport.height);
  expect((await page.locator('.wb-notice').innerText()).replace(/\s+/g, ' ').trim()).toMatch(
    /Inicia el gateway con INTROSPECTION=true o abre schema\.graphql de esta versión, que imprime npx pasarela schema\.$/,
  );
});
