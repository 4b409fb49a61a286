import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { changeAnswers, startBrowser } from '../helpers/browser.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { newToken } from '../helpers/new-token.ts';
import { until } from '../helpers/until.ts';
import { documentOf, payable } from '../scenarios/faults/payments.ts';
import { startDemo } from './workbench-demo.ts';
import { play, result, rows, visit, waitLonger, watchMoneyIn } from './workbench-page.ts';

const ACCOUNTS = 'query Accounts { client { accounts(first: 1) { nodes { id } } } }';
const MONEY_IN =
  'subscription Watch($after: Cursor) { moneyIn(after: $after) { cursor amount { amount currency } payer { name } } }';
const NO_LONGER = 'The gateway no longer accepts this token.';
const EXPIRED = 'The token has expired.';

let browser: Browser;
/** It ends a token as it gives the next. */
let service: Sandbox;
let gateway: RunningGateway;
let first: string;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser?.close());
beforeEach(async () => {
  service = await startSandbox({ port: 0, speed: 0, seed: 1, choices: { newTokenEndsOlder: true } });
  gateway = await startGateway({
    sandbox: service,
    config: { workbench: { sandbox: undefined, auth: 'passthrough' } },
  });
  first = service.accessToken;
});
afterEach(async () => {
  await gateway?.stop();
  await service?.stop();
});

const open = (query: string, transport = 'SSE') =>
  visit(
    browser,
    `${gateway.graphql}${transport === 'WS' ? '?subscriptions=WS' : ''}#${new URLSearchParams({ query })}`,
  );

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Access token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByLabel('Access token').waitFor({ state: 'detached' });
}

/** Keeps each form that comes, by what its alert says, and each text that this says later. */
const noteForms = (page: Page) =>
  page.evaluate(() => {
    const forms: string[] = [];
    let last: string | undefined;
    const look = () => {
      const form = document.querySelector('.wb-sign-in');
      const text = form === null ? undefined : (form.querySelector('[role="alert"]')?.textContent ?? '');
      if (text !== undefined && text !== last) forms.push(text);
      last = text;
    };
    Object.assign(globalThis, { forms });
    new MutationObserver(look).observe(document.body, {
      childList: true,
      subtree: true,
      characterData: true,
    });
  });

/** What was noted, once whatever the page was about to do is done: it has asked its gateway twice by then. */
async function notedForms(page: Page): Promise<unknown> {
  for (const _look of [1, 2]) {
    const looked = page.waitForResponse((response) => response.url().endsWith('/workbench/session'));
    await page.evaluate(() => window.dispatchEvent(new Event('online')));
    await looked;
  }
  return page.evaluate(() => Reflect.get(globalThis, 'forms'));
}

const REFUSED = {
  status: 401,
  json: { errors: [{ message: 'No.', extensions: { code: 'UNAUTHENTICATED' } }] },
};

/** Refuses the token of each stream until told that it is over, and answers so what is asked meanwhile in any other way. */
async function refuseStreams(page: Page, answer: { readonly status: number; readonly json?: unknown }) {
  const refusals = { isOver: false, count: 0 };
  await page.routeWebSocket(/graphql/, (socket) => {
    if (refusals.isOver) return void socket.connectToServer();
    refusals.count += 1;
    void socket.close({ code: 4403, reason: 'No.' });
  });
  await page.route(
    (url) => url.pathname === '/graphql',
    async (route) => {
      const request = route.request();
      if (refusals.isOver || request.method() !== 'POST') return route.fallback();
      if (request.headers()['accept'] !== 'text/event-stream') return route.fulfill(answer);
      refusals.count += 1;
      return route.fulfill(REFUSED);
    },
  );
  return refusals;
}

const credit = async (payerName: string) => {
  const { accounts } = await control(service, 'GET', '/sandbox');
  await control(service, 'POST', '/sandbox/spei-credits', {
    clabe: accounts[0].clabe,
    amount: '10.00',
    payerName,
  });
};

/** The gateway hears from the service that it no longer accepts the first token. */
const notice = async () => expect((await gateway.query(ACCOUNTS)).errors).toHaveLength(1);

describe.each(['SSE', 'WS'])('a stream over %s', (transport) => {
  it('whose token is refused waits beneath one form, and goes on where it was with the next', async () => {
    await using one = await open(MONEY_IN, transport);
    const { page } = one;
    await signIn(page, first);
    await play(page);
    await page.locator('.wb-status.wb-live').waitFor();
    await credit('Antes');
    await rows(page).first().waitFor();
    await noteForms(page);
    const next = await newToken(service);
    await notice();
    await page.locator('.wb-status', { hasText: 'Waiting for a token' }).waitFor();
    await page.getByRole('alert').getByText(NO_LONGER).waitFor();
    expect(await page.locator('.wb-count').getAttribute('title')).toBe('Waiting for a token. Events so far');
    await credit('Durante');
    await signIn(page, next);
    await page.getByText(/Reconnected, resumed from cursor/).waitFor();
    await page.getByText('1 caught up: the gap is closed.').waitFor();
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await page.locator('.wb-count').getAttribute('title')).toBe('Live. Events so far');
    expect(await page.locator('.wb-event .wb-badge').allInnerTexts()).toEqual([
      'moneyIn',
      'caught up',
      'UNAUTHENTICATED',
      'moneyIn',
    ]);
    expect(await notedForms(page)).toEqual([NO_LONGER]);
  });

  it('that is refused under a token that is accepted tells so once, asks for no other, and comes back', async () => {
    const { input } = await payable(service, 'createMoneyOut', 'followed');
    const { data } = await gateway.query(documentOf('createMoneyOut'), { input });
    const id = data.result.moved.id;
    const query = `subscription Status { transactionStatus(transactionId: "${id}") { kind transaction { id status } } }`;
    await using one = await open(query, transport);
    const { page } = one;
    let asked = 0;
    page.on('websocket', () => {
      asked += 1;
    });
    page.on('request', (request) => {
      if (request.headers()['accept'] === 'text/event-stream') asked += 1;
    });
    await signIn(page, first);
    await noteForms(page);
    const match = { path: '/v1/clients/*/transactions/*' };
    await control(service, 'POST', '/sandbox/faults', { match, fault: { status: 401 } });
    await play(page);
    await until(() => asked >= 4);
    expect(await page.locator('.wb-event .wb-badge').allInnerTexts()).toEqual(['UNAUTHENTICATED']);
    expect(await page.locator('.wb-note').allInnerTexts()).toEqual([
      expect.stringContaining('The gateway accepts the token, and refuses this subscription.'),
    ]);
    expect(await page.locator('.wb-status').innerText()).toBe('Cut: reconnecting');
    await control(service, 'DELETE', '/sandbox/faults');
    await page.locator('.wb-status.wb-live').waitFor();
    await page.locator('.wb-event .wb-badge', { hasText: 'SNAPSHOT' }).waitFor();
    expect(await notedForms(page)).toEqual([]);
  });

  it('that is refused while the gateway does not say what it thinks of the token comes back, and asks for no other', async () => {
    await using one = await open(MONEY_IN, transport);
    const { page } = one;
    await signIn(page, first);
    const refusals = await refuseStreams(page, { status: 503 });
    if (transport === 'WS') await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    await noteForms(page);
    await play(page);
    await until(() => refusals.count >= 3);
    expect(await page.locator('.wb-note').allInnerTexts()).toEqual([]);
    refusals.isOver = true;
    await page.locator('.wb-status.wb-live').waitFor();
    expect(await notedForms(page)).toEqual([]);
  });

  it('goes on where its own token is given again, once that is accepted', async () => {
    await using one = await open(MONEY_IN, transport);
    const { page } = one;
    await signIn(page, first);
    const refusals = await refuseStreams(page, REFUSED);
    if (transport === 'WS') await page.reload();
    await page.locator('.wb-operation .view-line').first().waitFor();
    await play(page);
    await page.locator('.wb-status', { hasText: 'Waiting for a token' }).waitFor();
    refusals.isOver = true;
    await signIn(page, first);
    await page.locator('.wb-status.wb-live').waitFor();
  });
});

it('a refused stream is not live until another token is acknowledged, and leaves a socket that acknowledges none', async () => {
  await using demo = await startDemo();
  await using one = await demo.open({}, '?subscriptions=WS');
  const { page } = one;
  const closing: (() => void)[] = [];
  await page.routeWebSocket(/graphql/, (socket) => {
    const say = (message: object) => socket.send(JSON.stringify(message));
    const number = closing.push(() => void socket.close({ code: 4403, reason: 'It has ended.' }));
    socket.onMessage((text) => {
      const { type, id } = JSON.parse(String(text));
      if (type === 'ping') say({ type: 'pong' });
      if (type === 'connection_init' && number !== 2) say({ type: 'connection_ack' });
      if (type === 'subscribe') say({ type: 'ping', payload: { bookmarks: { [id]: `cursor ${number}` } } });
    });
  });
  await changeAnswers(
    page,
    (url) => url.pathname.endsWith('/workbench/sandbox'),
    async (answer) => {
      const accessToken = closing.length === 0 ? demo.addresses.token : 'the next';
      return { json: { ...(await answer.json()), accessToken } };
    },
  );
  await page.reload();
  await page.locator('.wb-operation .view-line').first().waitFor();
  await page.clock.install();
  await watchMoneyIn(page);
  closing[0]?.();
  await until(() => closing.length === 2);
  expect(await page.locator('.wb-status').innerText()).toBe('Cut: reconnecting');
  const tab = page.locator('.wb-tab', { hasText: 'WatchMoneyIn' });
  expect(await tab.locator('.wb-count').getAttribute('title')).toBe('Cut: reconnecting. Events so far');
  // Its pings are answered meanwhile.
  for (const leap of [9_000, 9_000, 9_000, 9_000]) await page.clock.fastForward(leap);
  await until(() => closing.length === 3);
  await page.locator('.wb-status.wb-live').waitFor();
  await page.getByText('Reconnected, resumed from cursor cursor 1.').waitFor();
});

it('an event that lacks what the service refuses is an event, and a stream that is complete after it has ended', async () => {
  await using one = await open(MONEY_IN);
  const { page } = one;
  await signIn(page, first);
  await noteForms(page);
  const event = {
    data: { moneyIn: { cursor: 'one', payer: null } },
    errors: [{ message: 'No.', path: ['moneyIn', 'payer'], extensions: { code: 'UNAUTHENTICATED' } }],
  };
  await page.route(
    (url) => url.pathname === '/graphql',
    (route) => {
      const { accept } = route.request().headers();
      if (accept !== 'text/event-stream') return route.fallback();
      const body = `id: one\nevent: next\ndata: ${JSON.stringify(event)}\n\nevent: complete\ndata:\n\n`;
      return route.fulfill({ contentType: accept, body });
    },
  );
  await play(page);
  await page.locator('.wb-status.wb-ended').waitFor();
  expect(await notedForms(page)).toEqual([]);
});

it.each([
  ['of another header is refused', 'query Key { credentials(clientId: "CLIENT") { clientId } }', undefined],
  ['is refused by one endpoint of the service alone', ACCOUNTS, '/v1/clients/*/accounts'],
])('a query whose credential %s asks for no other token', async (_what, query, path) => {
  await using one = await open(query.replace('CLIENT', service.clientId));
  const { page } = one;
  await signIn(page, first);
  await noteForms(page);
  if (path !== undefined)
    await control(service, 'POST', '/sandbox/faults', { match: { path }, fault: { status: 401 } });
  await play(page);
  await result(page, /"UNAUTHENTICATED"/);
  expect(await notedForms(page)).toEqual([]);
});

it('a token that was accepted after a refusal is asked about again after the next one', async () => {
  await using one = await open(ACCOUNTS);
  const { page } = one;
  await signIn(page, first);
  await noteForms(page);
  const match = { path: '/v1/clients/*/accounts' };
  await control(service, 'POST', '/sandbox/faults', { match, fault: { status: 401 } });
  const confirmed = page.waitForResponse(
    (response) => response.request().postData()?.includes('{ client { id } }') === true,
  );
  await play(page);
  await (await confirmed).finished();
  expect(await notedForms(page)).toEqual([]);
  await control(service, 'DELETE', '/sandbox/faults');
  await newToken(service);
  await play(page);
  await page.getByRole('alert').getByText(NO_LONGER).waitFor();
});

it('a token under which something alone is refused is not judged by the answer about the one before it', async () => {
  await using one = await open(ACCOUNTS);
  const { page } = one;
  await page.clock.install();
  // The page waits for an answer about a token for as long as the test wants.
  await page.evaluate(() => void Object.assign(AbortSignal, { timeout: () => new AbortController().signal }));
  await signIn(page, first);
  const confirming = Promise.withResolvers<Route>();
  await page.route(
    (url) => url.pathname === '/graphql',
    (route) => {
      const request = route.request();
      const isOfFirst = request.headers()['authorization'] === `Bearer ${first}`;
      if (!isOfFirst || request.postData()?.includes('{ client { id } }') !== true) return route.fallback();
      confirming.resolve(route);
      return Promise.resolve();
    },
  );
  const next = await newToken(service);
  await play(page);
  const held = await confirming.promise;
  await page.clock.fastForward(7 * 86_400_000);
  await page.getByRole('alert').getByText(EXPIRED).waitFor();
  await signIn(page, next);
  await noteForms(page);
  const match = { path: '/v1/clients/*/accounts' };
  await control(service, 'POST', '/sandbox/faults', { match, fault: { status: 401 } });
  const refused = page.waitForResponse(
    (response) => response.request().postData()?.includes('query Accounts') === true,
  );
  await play(page);
  await refused;
  expect(await notedForms(page)).toEqual([]);
  const answered = page.waitForResponse((response) => response.request() === held.request());
  await held.continue();
  await answered;
  expect(await notedForms(page)).toEqual([]);
});

it('a token that is accepted after its end by the browser’s clock is not asked for again, until it is refused', async () => {
  await using one = await open(ACCOUNTS);
  const { page } = one;
  await page.clock.install({ time: Date.now() + 7 * 86_400_000 });
  // The clock has brought the page's own patience.
  await one.context.addInitScript(waitLonger);
  await page.reload();
  await signIn(page, first);
  await noteForms(page);
  expect(await notedForms(page)).toEqual([]);
  await page.reload();
  await page.locator('.wb-operation .view-line').first().waitFor();
  await noteForms(page);
  await play(page);
  await result(page, /"nodes"/);
  expect(await notedForms(page)).toEqual([]);
  await newToken(service);
  await play(page);
  await page.getByRole('alert').getByText(NO_LONGER).waitFor();
});

it.each([
  ['refused before it expires', NO_LONGER],
  ['refused after it has expired', EXPIRED],
])('why a token is asked for is said once: %s', async (_when, said) => {
  await using one = await open(ACCOUNTS);
  const { page } = one;
  await page.clock.install();
  // The clock has brought the page's own patience.
  await page.evaluate(waitLonger);
  await signIn(page, first);
  await noteForms(page);
  const refused = async () => {
    await newToken(service);
    await play(page);
    await result(page, /"UNAUTHENTICATED"/);
  };
  const expired = () => page.clock.fastForward(7 * 86_400_000);
  for (const end of said === EXPIRED ? [expired, refused] : [refused, expired]) {
    await end();
    await page.getByRole('alert').getByText(said).waitFor();
  }
  expect(await notedForms(page)).toEqual([said]);
});
