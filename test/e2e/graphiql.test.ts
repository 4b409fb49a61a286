import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { sendQuery } from '../helpers/gateway.ts';
import { demoAddresses, type Program, startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';

let program: Program;
let browser: Browser;
let page: Page;
let addresses: Awaited<ReturnType<typeof demoAddresses>>;
const foreign: string[] = [];
const failures: string[] = [];

beforeAll(async () => {
  program = startProgram('src/start.js', { PORT: '0', SANDBOX_PORT: '0' });
  addresses = await demoAddresses(program);
  browser = await startBrowser();
  await visit('/graphql');
});
afterAll(async () => {
  await browser?.close();
  await program?.end('SIGKILL');
});

/** Opens the page as somebody who has never been there: with nothing in the browser's storage. */
async function visit(path: string): Promise<void> {
  page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  page.on('request', (request) => {
    if (/^(https?|wss?):/.test(request.url()) && !request.url().startsWith(addresses.gateway))
      foreign.push(request.url());
  });
  page.on('pageerror', (error) => failures.push(error.message));
  await page.goto(`${addresses.gateway}${path}`);
  await page.locator('.graphiql-tab-button').first().waitFor();
}

/** Opens a tab of the story by its operation's name. */
async function open(operation: string): Promise<void> {
  await page.locator('.graphiql-tab-button', { hasText: operation }).click();
  await page.locator('.graphiql-query-editor .view-lines', { hasText: operation }).waitFor();
}

/**
 * Presses the play button until the operation is sent: shortly after a change of tabs GraphiQL still looks for the
 * operation of the tab before.
 */
async function play(operation: string): Promise<void> {
  await until(async () => {
    const sent = page
      .waitForRequest((request) => `${request.url()}${request.postData()}`.includes(operation), {
        timeout: 1_000,
      })
      .then(
        () => true,
        () => false,
      );
    await page.locator('.graphiql-execute-button[aria-label^="Execute"]').click();
    return sent;
  });
}

/** The result pane's text, once it matches. Monaco writes non-breaking spaces. */
async function result(pattern: RegExp): Promise<string> {
  const handle = await page.waitForFunction(
    ({ source }) => {
      const text = (document.querySelector('.result-window .view-lines')?.textContent ?? '').replaceAll(
        '\u00a0',
        ' ',
      );
      return new RegExp(source).test(text) ? text : undefined;
    },
    { source: pattern.source },
  );
  return String(await handle.jsonValue());
}

async function writeVariables(variables: object): Promise<void> {
  await page.locator('.graphiql-editor-tool .monaco-editor').first().click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(JSON.stringify(variables));
  // The editor has closed the brackets and quotes by itself.
  await page.keyboard.press('Control+Shift+End');
  await page.keyboard.press('Delete');
}

/** Lets 1250.00 MXN arrive at the sandbox. */
async function credit(payerName: string): Promise<void> {
  const { accounts } = (await (await fetch(`${addresses.sandbox}/sandbox`)).json()) as {
    accounts: [{ clabe: string }];
  };
  const credited = await fetch(`${addresses.sandbox}/sandbox/spei-credits`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ clabe: accounts[0].clabe, amount: '1250.00', payerName }),
  });
  expect(credited.ok).toBe(true);
}

it('opens with four tabs that tell the story', async () => {
  expect(await page.locator('.graphiql-tab-button').allTextContents()).toEqual([
    'Instruments',
    'StartPennyValidation',
    'WatchCep',
    'WatchMoneyIn',
  ]);
});

it('shows the graph of instruments at the press of a button', async () => {
  await play('Instruments');
  expect(await result(/"totalCount": \d+/)).toContain('"alias"');
});

it('starts a penny validation, and watches its receipt from PENDING to COMPLETED with the holder’s name', async () => {
  await open('StartPennyValidation');
  await play('StartPennyValidation');
  const started = await result(/"transaction": \{ *"id": "[0-9a-f-]{36}"/);
  expect(started).toContain('"INITIALIZED"');
  const transactionId = /"transaction": \{ *"id": "([0-9a-f-]{36})"/.exec(started)?.[1];

  await open('WatchCep');
  await writeVariables({ transactionId });
  await play('WatchCep');
  await result(/"status": "PENDING"/);
  const completed = await result(/"status": "COMPLETED"/);
  expect(completed).toMatch(/"beneficiaryName": "[^"]+"/);
});

it('shows a credit as it arrives', async () => {
  await open('WatchMoneyIn');
  const subscribed = page.waitForResponse((response) => response.url().includes('WatchMoneyIn'));
  await play('WatchMoneyIn');
  await subscribed;
  await credit('Ana Torres');
  expect(await result(/"name": "Ana Torres"/)).toContain('"amount": "1250.00"');
});

it('streams over a WebSocket as well, where the address says so', async () => {
  const headers = { authorization: `Bearer ${addresses.token}` };
  const { data } = await sendQuery(`${addresses.gateway}/graphql`, '{ eventCursor }', {}, headers);
  await visit('/graphql?subscriptions=WS');
  const opened = page.waitForEvent('websocket');
  await open('WatchMoneyIn');
  await writeVariables({ after: data.eventCursor });
  await page.locator('.graphiql-execute-button[aria-label^="Execute"]').click();
  await opened;
  await credit('Bruno Salas');
  await result(/"name": "Bruno Salas"/);
});

it('has asked nobody but the gateway, and nothing on the page has failed', () => {
  expect(foreign).toEqual([]);
  expect(failures).toEqual([]);
});
