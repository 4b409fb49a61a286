import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startBrowser } from '../helpers/browser.ts';
import { control, sendQuery } from '../helpers/gateway.ts';
import { buildWebExample, folder } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { serveFolder } from '../helpers/static-server.ts';
import { until } from '../helpers/until.ts';
import { signIn } from './web-sign-in.ts';

let site: Awaited<ReturnType<typeof serveFolder>>;
let gateway: RestartableGateway;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const failures: string[] = [];

beforeAll(async () => {
  await buildWebExample();
  site = await serveFolder(folder('examples/web/dist'));
  gateway = await startRestartable({ CORS_ORIGINS: site.origin });
  browser = await startBrowser();
  context = await browser.newContext({ locale: 'es-MX', viewport: { width: 1100, height: 800 } });
  await context.addInitScript(recordStatuses);
  await context.addInitScript(recordAsked);
  page = await context.newPage();
  page.on('pageerror', (error) => failures.push(error.message));
});
afterAll(async () => {
  await browser?.close();
  await gateway?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** Runs in the page: keeps every text that the connection's status has shown, however briefly. */
function recordStatuses(): void {
  const seen: string[] = [];
  Object.assign(globalThis, { statuses: seen });
  new MutationObserver(() => {
    const text = document.querySelector('.status')?.textContent ?? '';
    if (text !== '' && seen.at(-1) !== text) seen.push(text);
  }).observe(document, { subtree: true, childList: true, characterData: true });
}

/** Runs in the page: notes whether it has asked the browser to keep its storage. */
function recordAsked(): void {
  // The empty page that a tab begins with has none.
  if (typeof StorageManager === 'undefined') return;
  StorageManager.prototype.persist = async () => {
    Object.assign(globalThis, { hasAsked: true });
    return true;
  };
}

const hasAsked = (): Promise<boolean> => page.evaluate(() => Reflect.get(globalThis, 'hasAsked') === true);

const statuses = (): Promise<string[]> =>
  // Put there by the function above.
  page.evaluate(() => Reflect.get(globalThis, 'statuses') as string[]);

const hasStatus = (text: string) => page.locator('.status', { hasText: text }).waitFor();

/** What the credits on the screen were for, oldest first. */
async function concepts(): Promise<string[]> {
  const notes = await page.locator('.credits li .who .note').allTextContents();
  return notes.map((note) => note.split(' · ')[0] ?? '').reverse();
}

async function credits(from: number, to: number): Promise<void> {
  for (let number = from; number <= to; number += 1) await gateway.credit(`Factura ${number}`);
}

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `Factura ${index + 1}`);

/** What the credits in the gateway's log were for, oldest first. */
async function logged(): Promise<string[]> {
  const { data } = await sendQuery(
    gateway.graphql,
    '{ events(first: 100, types: [MONEY_IN]) { nodes { ... on MoneyInEvent { paymentConcept } } } }',
    {},
    { authorization: `Bearer ${gateway.sandbox.accessToken}` },
  );
  return data.events.nodes.map((node: { paymentConcept: string }) => node.paymentConcept);
}

/**
 * Waits until each of the credits has been shown, and compares the list with the log: nothing missing, nothing twice,
 * in the same order, which is that of their arrival. A notification that has to be sent again arrives after newer ones.
 */
async function showsEach(expected: readonly string[]): Promise<void> {
  await until(async () => {
    const shown = new Set(await concepts());
    return expected.every((concept) => shown.has(concept));
  });
  expect(await concepts()).toEqual(await logged());
  expect((await concepts()).toSorted()).toEqual(expected.toSorted());
}

async function reload(): Promise<void> {
  await page.reload();
  await signIn(page, gateway);
}

/**
 * Has the sandbox's time stand still, or go on. While it goes on, a receipt comes a second and a half after its payment: a slow gateway
 * answers later, and the page never shows that the receipt is on its way.
 */
const setSpeed = (speed: 0 | 60) => control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed });

it('asks for a token, and says so when the gateway refuses it', async () => {
  await page.goto(site.origin);
  await page.getByLabel('Dirección del gateway').fill(gateway.graphql);
  await page.getByLabel('Token de acceso').fill('nonsense');
  await page.getByRole('button', { name: 'Conectar' }).click();
  await page.getByText('El gateway no aceptó el token.').waitFor();
  await page.getByLabel('Token de acceso').fill(gateway.sandbox.accessToken);
  await page.getByRole('button', { name: 'Conectar' }).click();
  await page.getByRole('heading', { name: 'Verifica de quién es una cuenta' }).waitFor();
});

it('stores no token: a reload asks for it again', async () => {
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
  expect(stored + (await page.evaluate(() => document.cookie))).not.toContain(gateway.sandbox.accessToken);
  await page.reload();
  await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
  await signIn(page, gateway);
  await page.getByRole('heading', { name: 'Verifica de quién es una cuenta' }).waitFor();
});

it('verifies an account: from the choice to the holder’s name and the receipt, over a reload', async () => {
  await page.getByLabel('Buscar por nombre o CLABE').fill('bodega');
  await page.getByRole('radio', { name: /Renta de bodega/ }).check();
  expect(await hasAsked()).toBe(false);
  await setSpeed(0);
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
  await page.getByRole('heading', { name: 'Verificación en curso' }).waitFor();
  expect(await hasAsked()).toBe(true);
  await reload();
  await setSpeed(60);
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  expect(await page.locator('.holder .name').textContent()).toBe('ROSA ELENA CASTRO VEGA');
  await page.getByText('El titular coincide con el nombre registrado').waitFor();
  const facts = await page.locator('.facts').textContent();
  expect(facts).toMatch(/Banco[A-Z ]+CLABE\d{18}Clave de rastreo\w+/);
  const receipt = page.getByRole('link', { name: 'Abrir comprobante' });
  const address = String(await receipt.getAttribute('href'));
  expect(await (await fetch(address)).text()).toContain('Comprobante Electrónico de Pago');
});

it('follows a receipt through a restart of the gateway', async () => {
  await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
  await page.getByRole('radio', { name: /Taller/ }).check();
  await setSpeed(0);
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
  await page.getByRole('heading', { name: 'Verificación en curso' }).waitFor();
  await gateway.kill();
  await gateway.start();
  await setSpeed(60);
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  expect(await page.locator('.holder .name').textContent()).toMatch(/DI[EÉ]SEL BOCA/);
});

it('speaks English as well, and remembers it', async () => {
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByRole('heading', { name: 'Account verified' }).waitFor();
  await reload();
  await page.getByRole('heading', { name: 'Account verified' }).waitFor();
  expect(await page.locator('html').getAttribute('lang')).toBe('en');
});

it('shows credits as they arrive', async () => {
  await page.getByRole('link', { name: 'Money in' }).click();
  await page.getByRole('button', { name: 'Español' }).click();
  await page.getByText('sin faltantes ni duplicados').waitFor();
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByText('No money has come in yet.').waitFor();
  await hasStatus('Live');
  await credits(1, 3);
  await showsEach(numbered(3));
  expect(await page.locator('.credits li').first().textContent()).toContain('+$1,250.00');
});

it('shows what came in while the gateway was away, once each, and that it is catching up', async () => {
  await gateway.kill();
  await hasStatus('Offline');
  await credits(4, 8);
  await gateway.start();
  await showsEach(numbered(8));
  await hasStatus('Live');
  const words = (await statuses()).map((text) => text.split(/[:…]/)[0]);
  expect([...new Set(words.slice(words.lastIndexOf('Offline')))]).toEqual(['Offline', 'Catching up', 'Live']);
});

it('goes on where it was after a reload in the middle of a stream of credits', async () => {
  const arriving = credits(9, 20);
  await until(async () => (await concepts()).length > 10);
  await reload();
  await arriving;
  await showsEach(numbered(20));
});

it('shows what came in while the page was closed, and how much is still to come', async () => {
  await page.goto('about:blank');
  await credits(21, 50);
  await gateway.allDelivered();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.routeWebSocket(/graphql/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage(async (message) => {
      // A bookmark says that what came before it has been sent.
      if (/"moneyIn"|"bookmarks"/.test(String(message))) await released;
      socket.send(message);
    });
  });
  await page.goto(`${site.origin}/#/money-in`);
  await signIn(page, gateway);
  await hasStatus('Catching up: 30 to go');
  release();
  await showsEach(numbered(50));
  await hasStatus('Live');
});

it('keeps its place through gateways that are killed again and again under a stream of credits', async () => {
  const arriving = credits(51, 90);
  for (let round = 0; round < 3; round += 1) {
    await gateway.kill();
    await hasStatus('Offline');
    await gateway.start();
    await hasStatus('Live');
  }
  await arriving;
  await showsEach(numbered(90));
});

it('says so when the log has lost what it showed, and starts over with what the log holds', async () => {
  await gateway.allDelivered();
  await gateway.kill();
  await gateway.loseLog();
  await gateway.start();
  await page.getByText('The list starts over with what it does hold.').waitFor();
  await credits(91, 92);
  await showsEach(['Factura 91', 'Factura 92']);
});

it('signs out when asked, and nothing on the page has failed', async () => {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Connect to your gateway' }).waitFor();
  expect(failures).toEqual([]);
});
