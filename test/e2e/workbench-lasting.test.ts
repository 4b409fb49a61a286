import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriousFindings } from '../helpers/axe.ts';
import { until } from '../helpers/until.ts';
import { openReceiver } from '../sandbox/harness.ts';
import { type Demo, startDemo } from './workbench-demo.ts';
import { deed, openTab, play, result, stop, tells, textOf, watchMoneyIn } from './workbench-page.ts';

let demo: Demo;

beforeAll(async () => {
  demo = await startDemo({ SANDBOX_SPEED: '100' });
});
afterAll(() => demo?.[Symbol.asyncDispose]());

const says = (page: Page) => page.locator('.wb-says').allInnerTexts();
const from = (...names: string[]) => names.map((name) => `10.00 MXN from ${name}`);

/** What the page finds of its streams as it is loaded again: this cursor, also where the operation itself begins. */
async function keepCursor(page: Page, cursor: string): Promise<void> {
  await page.waitForFunction(() => sessionStorage.getItem('pasarela:streams')?.includes('"status":"live"'));
  await page.evaluate((value) => {
    const streams = JSON.parse(sessionStorage.getItem('pasarela:streams') ?? '{}');
    for (const stream of Object.values<Record<string, unknown>>(streams)) {
      const { variables = {}, ...operation } = stream['operation'] as Record<string, object>;
      const began = Object.fromEntries(Object.keys(variables).map((name) => [name, value]));
      Object.assign(stream, { cursor: value, entries: [], operation: { ...operation, variables: began } });
    }
    // Written again as the page is left: this is what the next one finds.
    window.addEventListener('pagehide', () =>
      sessionStorage.setItem('pasarela:streams', JSON.stringify(streams)),
    );
  }, cursor);
}

/** The cursor at which the log ends now. */
async function endOfLog(): Promise<string> {
  const { gateway, token } = demo.addresses;
  const answer = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: '{"query":"{ eventCursor }"}',
  });
  return ((await answer.json()) as { data: { eventCursor: string } }).data.eventCursor;
}

describe('a stream', () => {
  it.each(['SSE', 'WS'])(
    'over %s comes back after a reload with its events, and resumes without gap or repeat, each time',
    async (transport) => {
      await using one = await demo.open({}, transport === 'WS' ? '?subscriptions=WS' : '');
      const { page } = one;
      await watchMoneyIn(page);
      await demo.credit('Uno');
      await page.getByText('1 event', { exact: true }).waitFor();
      const heard = ['Uno'];
      for (const [missed, live] of [
        ['Dos', 'Tres'],
        ['Cuatro', 'Cinco'],
      ] as const) {
        // Away from the page while something happens.
        await page.goto('about:blank');
        await demo.credit(missed);
        await page.goBack();
        await page.locator('.wb-status.wb-live').waitFor();
        await page.getByText('1 caught up: the gap is closed.').first().waitFor();
        await demo.credit(live);
        heard.unshift(missed);
        heard.unshift(live);
        await until(async () => (await says(page)).length === heard.length);
        expect(await says(page)).toEqual(from(...heard));
      }
      const cursors = await page.locator('.wb-cursor').allInnerTexts();
      expect(new Set(cursors).size).toBe(heard.length);
    },
  );

  it('comes back after a reload at once, in its tab, with what was typed last', async () => {
    await using one = await demo.open();
    const { page } = one;
    for (const round of [1, 2]) {
      await openTab(page, round === 1 ? 'WatchMoneyIn' : 'Instruments');
      await openTab(page, 'WatchMoneyIn');
      if (round === 1) await play(page);
      await page.locator('.wb-status.wb-live').waitFor();
      await page.reload();
      await page.locator('.wb-status.wb-live').waitFor();
      expect(await page.locator('.wb-tab[data-active="true"]').innerText()).toContain('WatchMoneyIn');
      await page.getByText('The page was reloaded.').first().waitFor();
      expect(await page.locator('.wb-tab').count()).toBe(4);
    }
    await openTab(page, 'Instruments');
    await page.locator('.wb-operation .view-lines').click();
    await page.keyboard.press('ControlOrMeta+Home');
    await page.keyboard.type('# typed last');
    await page.reload();
    await page.locator('.wb-operation .view-line', { hasText: '# typed last' }).waitFor();
  });

  it('comes back after a reload with all of its events where it was paused, and where it was where it was cleared', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await demo.credit('Uno');
    await page.getByText('1 event', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await demo.credit('Dos');
    await page.getByText('1 waiting').waitFor();
    await page.reload();
    await page.getByText('Caught up: nothing was missed.').waitFor();
    expect(await says(page)).toEqual(from('Dos', 'Uno'));

    await page.getByRole('button', { name: 'Clear' }).click();
    await page.goto('about:blank');
    await demo.credit('Tres');
    await page.goBack();
    await page.getByText('1 caught up: the gap is closed.').waitFor();
    expect(await says(page)).toEqual(from('Tres'));
    expect(one.failures).toEqual([]);
  });

  it('is not taken up where another page of the browser has closed its tab meanwhile', async () => {
    await using one = await demo.open();
    const { page, context } = one;
    await watchMoneyIn(page);
    await page.waitForFunction(() => sessionStorage.getItem('pasarela:streams')?.includes('"live"'));
    // As one that the browser discards, which writes nothing down: neither as it goes, nor what the tabs were a moment before.
    await page.evaluate(() => {
      window.addEventListener('pagehide', (event) => event.stopImmediatePropagation(), { capture: true });
      Storage.prototype.setItem = () => {};
    });
    const other = await context.newPage();
    await other.goto(page.url());
    await other.locator('.wb-operation .view-line').first().waitFor();
    await openTab(other, 'WatchMoneyIn');
    await other.getByRole('tab', { name: /^WatchMoneyIn/ }).press('Delete');
    await other.waitForFunction(
      () => !localStorage.getItem('pasarela:sandbox:graphiql:tabState')?.includes('"WatchMoneyIn"'),
    );
    const followed: string[] = [];
    page.on('request', (request) => {
      if (request.headers()['accept'] === 'text/event-stream') followed.push(request.url());
    });
    await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    expect(await page.getByRole('tab', { name: /^WatchMoneyIn/ }).count()).toBe(0);
    expect(followed).toEqual([]);
  });

  it('is written down after each event, for a page that ends without a word', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    for (const name of ['Uno', 'Dos']) {
      await demo.credit(name);
      await page.waitForFunction((of) => sessionStorage.getItem('pasarela:streams')?.includes(of), name);
    }
  });

  it('comes back after a reload with its newest events where the browser has no room for all', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await page.evaluate(() => {
      const { setItem } = Storage.prototype;
      Storage.prototype.setItem = function (key, value) {
        const streams = Object.values<{ entries?: object[] }>(JSON.parse(value));
        if (streams.some(({ entries = [] }) => entries.length > 5)) throw new DOMException('It is full.');
        setItem.call(this, key, value);
      };
    });
    for (const name of ['Uno', 'Dos', 'Tres', 'Cuatro', 'Cinco', 'Seis']) await demo.credit(name);
    await page.getByText('6 events', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('Caught up: nothing was missed.').waitFor();
    expect(await says(page)).toEqual(from('Seis', 'Cinco', 'Cuatro', 'Tres'));
  });

  it('says that nothing was missed where it is known, and never under a gap', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    await deed(page, 'Cut');
    await page.getByText('Caught up: nothing was missed.').waitFor();

    await keepCursor(page, 'MXwwbm90aGluZw');
    await page.reload();
    await page.getByText(/There is a gap/).waitFor();
    await page.locator('.wb-status.wb-live').waitFor();
    await demo.credit('Después');
    await page.locator('.wb-says', { hasText: 'Después' }).waitFor();
    expect(await page.getByText('Caught up').count()).toBe(0);
  });

  it.each([
    ['SSE', 'Cursor'],
    ['WS', 'Cursor'],
    ['SSE', 'Cursor!'],
    ['WS', 'Cursor!'],
  ])(
    'over %s goes on from now after a gap, whatever its variable is called, and where that is a %s',
    async (transport, type) => {
      const query = `subscription Watch($since: ${type}) {
  moneyIn(after: $since) { cursor amount { amount currency } payer { name } }
}`;
      const since = type === 'Cursor!' ? await endOfLog() : null;
      const variables = JSON.stringify({ since });
      const link = new URLSearchParams({ query, variables });
      await using one = await demo.open({}, `?subscriptions=${transport}&${link}`);
      const { page } = one;
      expect(new URL(page.url()).search).toBe(`?subscriptions=${transport}`);
      await play(page);
      await page.locator('.wb-status.wb-live').waitFor();
      await keepCursor(page, 'MXwwbm90aGluZw');
      await page.reload();
      await page.getByText(/There is a gap/).waitFor();
      await page.locator('.wb-status.wb-live').waitFor();
      await demo.credit('Después');
      await page.locator('.wb-says', { hasText: 'Después' }).waitFor();
    },
  );

  it('is narrowed by type, text and payment', async () => {
    await using one = await demo.open();
    const { page } = one;
    await watchMoneyIn(page);
    for (const name of ['Berta', 'Carla', 'Dora']) await demo.credit(name);
    await page.getByText('3 events', { exact: true }).waitFor();
    await page.getByLabel('Text or payment id').fill('carla');
    expect(await says(page)).toEqual(from('Carla'));
    await page.getByText('1 of 3 shown').waitFor();
    await page.locator('.wb-event summary').click();
    const json = await page.locator('.wb-event pre').innerText();
    const [, payment = ''] = /"transactionId": "([^"]+)"/.exec(json) ?? [];
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByLabel('Text or payment id').fill(payment);
    expect(await says(page)).toEqual(from('Carla'));
    await page.getByLabel('Type of event').selectOption({ index: 1 });
    expect(await says(page)).toEqual(from('Carla'));
  });
});

describe('a payment', () => {
  it('opens to its REST calls, webhooks and receipt on one axis, and its webhook goes to a handler of one’s own', async () => {
    await using handler = await openReceiver({ status: 202 });
    await using one = await demo.open();
    const { page, context } = one;
    await openTab(page, 'StartPennyValidation');
    await play(page);
    let looks = 0;
    await page.route(
      (url) => url.pathname.includes('/sandbox/transactions/'),
      (route) => {
        looks += 1;
        return looks === 1 ? route.fulfill({ status: 500, json: {} }) : route.fallback();
      },
    );
    await page.getByRole('button', { name: 'What happened to this payment' }).click();
    await page.getByRole('alert').getByText('The sandbox refused with status 500.').waitFor();
    const axis = page.locator('.wb-axis');
    await axis.getByText(/POST \/transactions\/penny_validation/).waitFor();
    await axis.getByText('Receipt COMPLETED').waitFor();
    const webhook = axis.locator('details', { hasText: 'Webhook CEP' }).first();
    await webhook.locator('summary').click();
    await webhook.getByLabel('Address of your handler').fill(handler.url);
    await webhook.getByRole('button', { name: 'Send to my handler' }).click();
    await webhook.getByText('Your handler answered with 202.').waitFor();
    expect(handler.received[0]?.json).toMatchObject({ webhook_type: 'CEP' });
    const [receipt] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('link', { name: 'Open the receipt' }).click(),
    ]);
    await receipt.getByRole('heading', { name: 'Comprobante Electrónico de Pago' }).waitFor();
    await receipt.close();
    await page.locator('dialog').getByRole('button', { name: 'Close' }).click();
    expect(await page.locator('dialog[open]').count()).toBe(0);
  });

  it('is read no more once its dialog was closed, also where a reading was under way', async () => {
    await using one = await demo.open();
    const { page } = one;
    await openTab(page, 'StartPennyValidation');
    await play(page);
    const reading = Promise.withResolvers<Route>();
    let looks = 0;
    await page.route(
      (url) => url.pathname.includes('/sandbox/transactions/'),
      (route) => {
        looks += 1;
        if (looks > 1) return route.fallback();
        reading.resolve(route);
        return Promise.resolve();
      },
    );
    await page.getByRole('button', { name: 'What happened to this payment' }).click();
    const held = await reading.promise;
    await page.locator('dialog').getByRole('button', { name: 'Close' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    await page.clock.install();
    const answered = page.waitForResponse((response) => response.request() === held.request());
    await held.continue();
    await (await answered).finished();
    // It has taken the answer by the time at which it asks its gateway again, and would read once more before the next time.
    for (const _look of [1, 2]) {
      const looked = page.waitForResponse((response) => response.url().endsWith('/workbench/session'));
      await page.clock.fastForward(2_000);
      await page.evaluate(() => window.dispatchEvent(new Event('online')));
      await looked;
    }
    expect(looks).toBe(1);
  });
});

/** Copies a link to the session, whose menu is open. */
const copyLink = (page: Page): Promise<void> =>
  tells(page.locator('.wb-menu'), 'Link copied', () =>
    page.getByRole('button', { name: 'Copy a link to it' }).click(),
  );

describe('a session', () => {
  it('is handed over as a link, and as a file that the page opens without any gateway', async () => {
    await using one = await demo.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = one;
    await play(page);
    await result(page, /"totalCount": \d+/);
    await watchMoneyIn(page);
    await demo.credit('Guardada');
    await page.getByText('1 event', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Session', { exact: true }).click();
    await copyLink(page);
    const link = await page.evaluate(() => navigator.clipboard.readText());
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as a file' }).click(),
    ]);
    const file = await download.path();
    const written = await readFile(file, 'utf8');
    expect(written).not.toContain(demo.addresses.token);

    const looksRight = async (other: Page) => {
      await other.getByText('1 request, 4 REST calls').waitFor();
      expect(await other.locator('.wb-kept-result').innerText()).toContain('"totalCount"');
      await other.getByRole('tab', { name: 'WatchMoneyIn' }).click();
      await other.locator('.wb-says', { hasText: 'Guardada' }).waitFor();
      await other.locator('.wb-status.wb-ended').waitFor();
      expect(await seriousFindings(other)).toEqual([]);
      await other.getByRole('tab', { name: 'Instruments' }).click();
      expect(await seriousFindings(other)).toEqual([]);
    };
    const context = await demo.browser.newContext();
    const other = await context.newPage();
    // The page's own files alone: no session, no sandbox, no graph.
    await context.route(
      (url) => /\/(session|sandbox.*)$/.test(url.pathname),
      (route) => route.abort(),
    );
    await context.route('**/graphql', (route) =>
      route.request().method() === 'POST' ? route.abort() : route.continue(),
    );
    await other.goto(link);
    await looksRight(other);
    await other.getByRole('button', { name: 'Leave this session' }).click();
    const sentence = await other.getByText('The page tries again every second.').boundingBox();
    const button = await other.getByText('Open a session').boundingBox();
    expect((button?.y ?? 0) - (sentence?.y ?? 0)).toBeLessThan(80);
    await other.locator('input[type="file"]').setInputFiles({
      name: 'broken.json',
      mimeType: 'application/json',
      buffer: Buffer.from('{}'),
    });
    await other.getByText('This file is not a session of this page.').waitFor();
    expect(await other.locator('input[type="file"]').inputValue()).toBe('');
    await other.locator('input[type="file"]').setInputFiles(file);
    await looksRight(other);
    await context.close();
    // Also in a tab that shows the page already, which the browser does not load again.
    await page.goto(link);
    await looksRight(page);
  });

  it('is handed over without a secret or a token that was sent or answered, and says so', async () => {
    const { clientId, clientSecret } = await (await fetch(`${demo.addresses.sandbox}/sandbox`)).json();
    const query = `mutation Exchange($id: String!, $word: String!) {
  issueCredentialToken(input: { clientId: $id, clientSecret: $word }) { ... on CredentialToken { t: token } ... on UserError { message } } }`;
    const variables = JSON.stringify({ id: clientId, word: clientSecret });
    const link = new URLSearchParams({ query, variables });
    await using one = await demo.open({ permissions: ['clipboard-read', 'clipboard-write'] }, `#${link}`);
    const { page } = one;
    // As the service answers, to who has the key of the API.
    await page.route(
      (url) => url.pathname === '/graphql',
      (route) =>
        route.request().postData()?.includes('Exchange') === true
          ? route.fulfill({ json: { data: { issueCredentialToken: { t: 'the-token' } } } })
          : route.fallback(),
    );
    await play(page);
    await result(page, /the-token/);
    await page.getByText('Session', { exact: true }).click();
    await page.getByText('Of an operation with a secret or a token it holds the text alone.').waitFor();
    const saved = async () => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Save as a file' }).click(),
      ]);
      const written = await readFile(await download.path(), 'utf8');
      expect(written).not.toContain('the-token');
      expect(written).not.toContain(clientSecret);
      return written;
    };
    expect(await saved()).toContain('issueCredentialToken');
    await copyLink(page);
    // Another text in its place, which is not played: the answer that is shown is of the one before.
    await page.locator('.wb-operation .view-line').first().click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText('{ client { id } }');
    await result(page, /the-token/);
    await page.getByText('Session', { exact: true }).click();
    expect(await saved()).not.toContain('issueCredentialToken');
    await page.goto(await page.evaluate(() => navigator.clipboard.readText()));
    await page.getByRole('tab', { name: 'Exchange' }).click();
    await page.getByText('What was sent and what came of it are left out').waitFor();
    expect(await page.locator('.wb-kept .wb-left').innerText()).toContain('issueCredentialToken');
  });

  it('takes the place of one’s own results for as long as it is looked at, and sends nothing', async () => {
    await using one = await demo.open();
    const { page } = one;
    await play(page);
    await result(page, /"totalCount": \d+/);
    await page.getByText('Session', { exact: true }).click();
    const session = {
      format: 'pasarela-session-1',
      at: new Date(),
      tabs: [{ title: 'Theirs', query: '{ a }', variables: '' }],
    };
    await page.locator('input[type="file"]').setInputFiles({
      name: 'theirs.json',
      mimeType: 'application/json',
      buffer: Buffer.from(JSON.stringify(session)),
    });
    await page.getByText('This operation was not played.').waitFor();
    expect(await page.locator('.wb-sandbox').isVisible()).toBe(false);
    const sent: string[] = [];
    page.on('request', (request) => request.method() === 'POST' && sent.push(request.url()));
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.getByRole('button', { name: 'Leave this session' }).click();
    await page.getByText('1 request, 4 REST calls').waitFor();
    await result(page, /"totalCount": \d+/);
    expect(sent).toEqual([]);
  });
});

describe('the story', () => {
  it('asks for step 2 before step 3, and gives a lost answer another try by a new key', async () => {
    await using one = await demo.open();
    const { page } = one;
    await openTab(page, 'WatchCep');
    for (const _twice of [1, 2]) {
      await play(page);
      await page.getByText('Play step 2 first').waitFor();
      expect(await page.locator('.wb-stream').count()).toBe(0);
    }
    await page.getByRole('button', { name: 'Go to step 2' }).click();
    await page.locator('.wb-variables .view-lines', { hasText: 'idempotencyKey' }).waitFor();
    const key = async () =>
      /workbench-[0-9a-f-]{36}/.exec(
        await page.locator('.wb-variables .view-lines').first().innerText(),
      )?.[0];
    const keys = [await key()];
    for (const _twice of [1, 2]) {
      expect(await deed(page, 'Lose answer')).toContain('New key');
      await page.locator('.wb-badge', { hasText: '1 fault armed' }).waitFor();
      await page.getByRole('button', { name: 'New key' }).click();
      await until(async () => (await key()) !== undefined && !keys.includes(await key()));
      keys.push(await key());
      await play(page);
      await result(page, /"message"/);
      await page.locator('.wb-badge', { hasText: '1 fault armed' }).waitFor({ state: 'detached' });
      expect(await deed(page, 'Heal')).toContain('healthy');
    }
    // What was typed last has not reached the tab yet, and stays all the same.
    await page.locator('.wb-variables .view-lines').first().click();
    await page.keyboard.press('ControlOrMeta+Home');
    await page.keyboard.press('ArrowRight');
    await stop(page);
    await page.keyboard.insertText('"typed": 1,');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.clock.resume();
    await until(async () => (await key()) !== undefined && !keys.includes(await key()));
    expect(await textOf(page, '.wb-variables .graphiql-editor:not(.hidden)')).toContain('"typed": 1,');
    await play(page);
    await result(page, /"replayed": false/);
  });

  it('fills the payment of step 2 into step 3, each time that one is started, also in another tab', async () => {
    const { centralizingInstrumentId, clabeInstrumentIds } = await (
      await fetch(`${demo.addresses.sandbox}/sandbox`)
    ).json();
    const input = `idempotencyKey: "${randomUUID()}", sourceInstrumentId: "${centralizingInstrumentId}", destinationInstrumentId: "${clabeInstrumentIds[0]}"`;
    const query = `mutation Another { createPennyValidation(input: { ${input} }) {
  ... on CreatePennyValidationSuccess { replayed transaction { id } } } }`;
    await using one = await demo.open({}, `#${new URLSearchParams({ query })}`);
    const { page } = one;
    const ids: (string | undefined)[] = [];
    for (const [round, title] of [
      'StartPennyValidation',
      'Another',
      'StartPennyValidation',
      'StartPennyValidation',
    ].entries()) {
      if (round === 3) {
        await page.reload();
        await openTab(page, 'WatchCep');
        await page.getByRole('button', { name: 'Close', exact: true }).click();
        await page.getByText('Play step 2 first').waitFor();
      }
      await openTab(page, title);
      if (title !== 'Another') await page.getByRole('button', { name: 'New key' }).click();
      await play(page);
      let id: string | undefined;
      await until(async () => {
        [, id] = /"id": "([0-9a-f-]{36})"/.exec(await result(page, /"replayed"/)) ?? [];
        return id !== undefined && !ids.includes(id);
      });
      ids.push(id);
      await openTab(page, 'WatchCep');
      await page.locator('.wb-variables .view-lines', { hasText: String(id) }).waitFor();
      await play(page);
      await page.locator('.wb-event .wb-badge').first().waitFor();
    }
  });

  it('starts over with its own tabs, whatever was written there and is followed', async () => {
    await using one = await demo.open();
    const { page } = one;
    const titles = () => page.locator('.wb-tab').allInnerTexts();
    const begun = await titles();
    await openTab(page, 'Instruments');
    await page.locator('.wb-operation .view-lines').click();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.insertText('query Mine { client { id } }');
    await page.getByRole('tab', { name: /^Mine/ }).waitFor();
    // The button stands at the last step.
    await watchMoneyIn(page);
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByRole('tab', { name: /^Mine/ }).waitFor({ state: 'detached' });
    await page.locator('.wb-operation .view-line', { hasText: 'query Instruments' }).waitFor();
    expect(await titles()).toEqual(begun);
    await openTab(page, 'WatchMoneyIn');
    expect(await page.locator('.wb-stream').count()).toBe(0);
  });

  it('tells the sandbox’s own reason for an amount that it refuses', async () => {
    await using one = await demo.open();
    await one.page.getByLabel('Amount in pesos').fill('0.00');
    expect(await deed(one.page, 'Simulate a credit')).toMatch(/body\.amount: a string above zero/);
    await one.page.getByLabel('Amount in pesos').fill('ten');
    await one.page.locator('.wb-sandbox').getByRole('button', { name: 'Simulate a credit' }).click();
    await one.page.locator('.wb-said.wb-is-bad').waitFor();
  });
});
