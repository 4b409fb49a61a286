import { randomUUID } from 'node:crypto';
import type { Browser, Page, WebSocket as PageSocket, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { seriousFindings } from '../helpers/axe.ts';
import { startBrowser } from '../helpers/browser.ts';
import { control } from '../helpers/gateway.ts';
import { buildWebExample, folder } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { serveFolder } from '../helpers/static-server.ts';
import { keepsUnanswered } from './kept-payment.ts';
import { registerMany } from './many.ts';
import { holdLock } from './web-lock.ts';
import { signIn } from './web-sign-in.ts';

const INSTRUMENTS = 130;
/** With the client's own that the sandbox begins with, more than a page. */
const ACCOUNTS = 120;

let site: Awaited<ReturnType<typeof serveFolder>>;
let gateway: RestartableGateway;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  await buildWebExample();
  site = await serveFolder(folder('examples/web/dist'));
  gateway = await startRestartable({ CORS_ORIGINS: site.origin });
  await registerMany(gateway.sandbox, INSTRUMENTS);
  await openMany(ACCOUNTS);
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

/** A page of its own for each test, signed in and in Spanish. */
beforeEach(async () => {
  await page?.context().close();
  const context = await browser.newContext({ locale: 'es-MX', viewport: { width: 1100, height: 800 } });
  page = await context.newPage();
  await page.goto(site.origin);
  await signIn(page, gateway);
  await page.getByRole('heading', { name: 'Verifica de quién es una cuenta' }).waitFor();
});

async function reload(): Promise<void> {
  await page.reload();
  await signIn(page, gateway);
}

/** Accounts of the client's own, beyond the first page of the list. */
async function openMany(count: number): Promise<void> {
  const { clientId, bankIds } = await control(gateway.sandbox, 'GET', '/sandbox');
  for (let opened = 0; opened < count; opened += 1) {
    await control(gateway.sandbox, 'POST', `/v1/clients/${clientId}/private_accounts`, {
      bank_id: bankIds[0],
      owner_id: clientId,
      client_bank_adapter_id: randomUUID(),
      client_id: clientId,
      account_id: randomUUID(),
    });
  }
}

const fault = (path: string, what: unknown, times?: number) =>
  control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { path },
    fault: what,
    ...(times && { times }),
  });
const healthy = () => control(gateway.sandbox, 'DELETE', '/sandbox/faults', undefined);

const choose = async (name: RegExp) => {
  await page.getByRole('radio', { name }).check();
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
};

describe('a verification', () => {
  it('says in red that the holder is somebody else, with both names', async () => {
    await choose(/Other holder/);
    await page.getByRole('heading', { name: 'El titular no coincide' }).waitFor();
    expect(await page.locator('.holder .name').textContent()).toBe('FERNANDO LUGO ARRIAGA');
    expect(await page.locator('.holder .registered').textContent()).toBe('Laura Méndez Ortiz');
    expect(await page.getByText('Cuenta verificada').count()).toBe(0);
    const red = await page.getByRole('heading', { level: 1 }).evaluate((it) => getComputedStyle(it).color);
    const black = await page.locator('body').evaluate((it) => getComputedStyle(it).color);
    expect(red).not.toBe(black);
    expect(await page.locator('.steps li').last().getAttribute('class')).toBe('failed');
  });

  it('that the service does not show yet is looked for again', async () => {
    const { clientId } = await control(gateway.sandbox, 'GET', '/sandbox');
    await fault(`/v1/clients/${clientId}/transactions/`, { status: 404, body: {} });
    await choose(/Renta de bodega/);
    const { counts: before } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
    const reads = (counts: Readonly<Record<string, number>>) =>
      Object.entries(counts)
        .filter(([route]) => /^GET .*\/transactions\//.test(route))
        .reduce((sum, [, count]) => sum + count, 0);
    await expect
      .poll(async () => reads((await control(gateway.sandbox, 'GET', '/sandbox/requests')).counts))
      .toBeGreaterThan(reads(before) + 1);
    expect(await page.getByText('No encontramos esa verificación.').count()).toBe(0);
    await healthy();
    await page.locator('.holder .name').waitFor();
  });

  it('is not lost where the connection is: its steps stay, and it is told once the gateway is back', async () => {
    // The receipt is not there yet: the sandbox's time stands still.
    await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
    await choose(/Renta de bodega/);
    await page.getByRole('list', { name: 'Avance de la verificación' }).waitFor();
    // Who hears the steps does not see that the last one is grey.
    expect(await page.getByText('Comprobante recibido').count()).toBe(0);
    await page.getByText('Recibir el comprobante').waitFor();
    await gateway.kill();
    await page.getByText('No hay conexión con el gateway. Se vuelve a intentar solo.').waitFor();
    expect(await page.getByRole('list', { name: 'Avance de la verificación' }).count()).toBe(1);
    expect(await page.getByText('No encontramos esa verificación.').count()).toBe(0);
    expect(await page.getByRole('alert').count()).toBe(0);
    await gateway.start();
    await page.getByText('No hay conexión con el gateway').waitFor({ state: 'detached' });
    await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
    await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  });

  it('is not sent where the browser blocks storage, and the page says so', async () => {
    const context = await browser.newContext({ locale: 'es-MX' });
    await context.addInitScript(() => {
      const get = () => {
        throw new DOMException('Access is denied for this document.', 'SecurityError');
      };
      Object.defineProperty(globalThis, 'localStorage', { get });
    });
    await page.context().close();
    page = await context.newPage();
    await page.goto(site.origin);
    await signIn(page, gateway);
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests', undefined);
    await choose(/Renta de bodega/);
    await page.getByText('así que no se envió nada').waitFor();
    const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
    expect(Object.keys(counts).filter((route) => /^POST .*penny_validation/.test(route))).toEqual([]);
    await page.getByRole('button', { name: 'Salir' }).click();
    await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
  });

  it('finds a receiver beyond the first hundred', async () => {
    await page.getByLabel('Buscar por nombre o CLABE').fill(`proveedor ${INSTRUMENTS}`);
    await page.getByRole('radio', { name: new RegExp(`Proveedor ${INSTRUMENTS}`) }).waitFor();
  });

  it('can be paid for by each account of one’s own, also beyond the first hundred', async () => {
    const payers = page.getByLabel('Pagar desde').locator('option');
    const before = await payers.count();
    await page
      .getByText(/^100 de \d+ cuentas leídas/)
      .getByRole('button', { name: 'Leer más' })
      .click();
    await page.getByText(/cuentas leídas/).waitFor({ state: 'detached' });
    expect(await payers.count()).toBeGreaterThan(before);
  });

  it('of which nobody knows the end is still told of after a reload, and can be asked about', async () => {
    const { clientId } = await control(gateway.sandbox, 'GET', '/sandbox');
    // The gateway, which looks for it, is not told either.
    await fault(`/v1/clients/${clientId}/transactions/`, { status: 500 });
    await fault('/v1/transactions/penny_validation', 'reset-after-commit', 1);
    await choose(/Imprenta/);
    await page.getByText('No sabemos si el centavo salió').waitFor();
    await reload();
    await page.getByText('No sabemos en qué terminó la verificación de Imprenta.').waitFor();
    await page.getByRole('button', { name: 'Consultar' }).click();
    await page.getByText('No sabemos si el centavo salió').waitFor();
    const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
    const before = counts['POST /v1/transactions/penny_validation'];
    await page.getByRole('button', { name: 'Consultar' }).click();
    await page.getByRole('button', { name: 'Consultar' }).and(page.locator(':enabled')).waitFor();
    const after = (await control(gateway.sandbox, 'GET', '/sandbox/requests')).counts;
    expect(after['POST /v1/transactions/penny_validation']).toBe(before);
    // Somebody has asked the provider: from here on another verification is another payment.
    await page.getByRole('button', { name: 'Ya lo aclaré con mi proveedor' }).click();
    await page.getByRole('button', { name: 'Sí, olvidarlo' }).click();
    await page.getByText('No sabemos en qué terminó').waitFor({ state: 'detached' });
    await healthy();
  });

  it('that is left before its receipt has come stays in the list until its end was seen, beside others', async () => {
    await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
    for (const name of [/Renta de bodega/, /Imprenta/]) {
      await choose(name);
      await page.getByRole('heading', { name: 'Verificación en curso' }).waitFor();
      await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
    }
    await reload();
    const bodega = page.getByRole('status').filter({ hasText: 'El centavo a Renta de bodega salió' });
    const imprenta = page.getByRole('status').filter({ hasText: 'El centavo a Imprenta salió' });
    await imprenta.waitFor();
    await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
    await bodega.getByRole('button', { name: 'Ver' }).click();
    await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
    await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
    await imprenta.waitFor();
    await bodega.waitFor({ state: 'detached' });
  });

  it('whose receipt is refused stays open, because nobody has seen an end, and can be shown later', async () => {
    let isRefused = true;
    await page.routeWebSocket(/graphql/, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((message) => {
        if (!isRefused || !String(message).includes('subscription WatchReceipt')) return server.send(message);
        const { id } = JSON.parse(String(message)) as { id: string };
        const errors = [{ message: 'There is no such one.', extensions: { code: 'BAD_USER_INPUT' } }];
        socket.send(JSON.stringify({ id, type: 'next', payload: { errors } }));
        socket.send(JSON.stringify({ id, type: 'complete' }));
      });
    });
    await reload();
    const open = page.getByRole('status').filter({ hasText: 'El centavo a Renta de bodega salió' });
    const learned = open.getByRole('button', { name: 'Ya lo aclaré con mi proveedor' });
    await choose(/Renta de bodega/);
    await page.getByText('No encontramos esa verificación.').waitFor();
    await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
    await learned.waitFor();
    isRefused = false;
    await open.getByRole('button', { name: 'Ver' }).click();
    await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
    await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
    await open.waitFor({ state: 'detached' });
  });

  it('that was cut off is asked about by itself once the gateway is back', async () => {
    const tab = await page.context().newPage();
    await tab.goto(site.origin);
    await signIn(tab, gateway);
    await tab.getByRole('radio', { name: /Imprenta/ }).check();
    await gateway.kill();
    await tab.getByRole('button', { name: 'Verificar por $0.01' }).click();
    await keepsUnanswered(tab);
    await tab.close();
    await gateway.start();
    await page.getByText('El centavo a Imprenta salió').waitFor();
  });

  it('that was refused behind a call without an answer says why, and is let go of only by a person', async () => {
    await gateway.kill();
    await choose(/Imprenta/);
    await keepsUnanswered(page);
    await page.goto('about:blank');
    await gateway.start();
    await page.clock.install();
    const refusal = {
      __typename: 'PreconditionError',
      code: 'INSUFFICIENT_FUNDS',
      message: 'Too little.',
    };
    let refused = 0;
    await page.routeWebSocket(/graphql/, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((message) => {
        if (!String(message).includes('mutation StartVerification')) return server.send(message);
        const { id } = JSON.parse(String(message)) as { id: string };
        const payload = { data: { createPennyValidation: refusal } };
        socket.send(JSON.stringify({ id, type: 'next', payload }));
        socket.send(JSON.stringify({ id, type: 'complete' }));
        refused += 1;
      });
    });
    /** Waits until it is asked about, and lets the minute pass in which the page goes on asking. */
    const outlast = async (before: number) => {
      await expect.poll(() => refused).toBeGreaterThan(before);
      await page.clock.fastForward(60_000);
    };
    await page.goto(site.origin);
    await signIn(page, gateway);
    await outlast(0);
    const learned = page.getByRole('button', { name: 'Ya lo aclaré con mi proveedor' });
    await learned.waitFor();
    const before = refused;
    await page.getByRole('button', { name: 'Consultar' }).click();
    await outlast(before);
    await page.getByText('El último intento fue rechazado: La cuenta de la que pagas').waitFor();
    await learned.click();
    await page.getByRole('button', { name: 'Todavía no' }).click();
    await page.getByText('No sabemos en qué terminó la verificación de Imprenta.').waitFor();
    await learned.click();
    await page.getByRole('button', { name: 'Sí, olvidarlo' }).click();
    await page.getByText('No sabemos en qué terminó').waitFor({ state: 'detached' });
  });

  it('whose end was seen is forgotten, and one that is unknown is not, also as somebody signs out', async () => {
    await choose(/Renta de bodega/);
    await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
    await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
    await fault('/v1/transactions/penny_validation', 'reset-after-commit', 1);
    await choose(/Imprenta/);
    await page.getByText('No sabemos si el centavo salió').waitFor();
    const intents = () =>
      page.evaluate(() =>
        Object.entries(localStorage).flatMap(([name, value]) =>
          name.startsWith('pasarela.intents.') ? (JSON.parse(value) as object[]) : [],
        ),
      );
    // The one that was seen is over. It stays for a while, for a window that still asks about it.
    expect(await intents()).toEqual([
      expect.objectContaining({ acknowledgedAt: expect.anything() }),
      expect.objectContaining({ unanswered: 1 }),
    ]);
    await page.getByRole('button', { name: 'Salir' }).click();
    await expect.poll(intents).toEqual([expect.objectContaining({ unanswered: 1 })]);
    expect(await intents()).not.toEqual([expect.objectContaining({ acknowledgedAt: expect.anything() })]);
  });

  it('that the browser cannot remember is not sent, and the button is there again', async () => {
    await page.evaluate(() => {
      Storage.prototype.setItem = () => {
        throw new DOMException('full', 'QuotaExceededError');
      };
    });
    await choose(/Renta de bodega/);
    await page.getByText('El navegador no puede guardar el intento de pago').waitFor();
    expect(await page.getByRole('button', { name: 'Verificar por $0.01' }).isEnabled()).toBe(true);
  });
});

describe('an error', () => {
  it('of the service is no empty list, and is over once it can be read', async () => {
    // Not what the gateway asks to learn whose token it is: without that there is no connection at all.
    await fault('/v1/clients/*/accounts', { status: 503, body: {} });
    await reload();
    await page.getByText('El servicio bancario no responde bien').waitFor();
    expect(await page.getByText('Aún no hay cuentas').count()).toBe(0);
    await healthy();
    await page.getByRole('button', { name: 'Intentar de nuevo' }).click();
    await page.getByRole('radio').first().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  it('of the account of an instrument makes no receiver of an account of one’s own', async () => {
    let isRead = true;
    await page.routeWebSocket(/graphql/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => {
        const { payload, ...rest } = JSON.parse(String(message));
        const nodes: { account: object | null }[] = payload?.data?.client?.instruments?.nodes ?? [];
        const index = nodes.findIndex(({ account }) => account !== null);
        const node = nodes[index];
        if (!isRead || node === undefined) return socket.send(message);
        isRead = false;
        node.account = null;
        const path = ['client', 'instruments', 'nodes', index, 'account'];
        const errors = [{ message: 'No.', path, extensions: { code: 'UPSTREAM_TIMEOUT' } }];
        socket.send(JSON.stringify({ ...rest, payload: { ...payload, errors } }));
      });
    });
    await reload();
    await page.getByText('El servicio bancario no responde bien').waitFor();
    expect(await page.getByRole('radio').count()).toBe(0);
    await page.getByRole('button', { name: 'Intentar de nuevo' }).click();
    await page.getByRole('radio').first().waitFor();
  });

  it('of the connection is told in Spanish, and is over once the gateway is back', async () => {
    let isAway = true;
    await page.routeWebSocket(/graphql/, (socket) => {
      if (isAway) void socket.close({ code: 1012 });
      else socket.connectToServer();
    });
    await reload();
    await page.getByText('No hay conexión con el gateway. Se vuelve a intentar solo.').waitFor();
    isAway = false;
    await page.getByRole('radio').first().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});

it.each([404, 502])(
  'a look for the sandbox that is answered late, with %i, takes nobody’s screen away',
  async (status) => {
    const late: Route[] = [];
    let looks = 0;
    await page.route('**/sandbox', (route) => {
      looks += 1;
      if (looks === 2) return void late.push(route);
      return route.fulfill({ status: looks === 1 ? 502 : 404 });
    });
    await reload();
    await page.getByRole('heading', { name: 'Verifica de quién es una cuenta' }).waitFor();
    await page.evaluate(() => {
      const look = () =>
        document.querySelector('input[type="search"]') ?? Object.assign(globalThis, { isGone: true });
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
    });
    const told = page.waitForResponse((response) => response.url().endsWith('/sandbox'));
    await late[0]?.fulfill({ status });
    await told;
    // The page has taken it once it has drawn twice.
    await page.evaluate(
      () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
    );
    expect(await page.evaluate(() => Reflect.has(globalThis, 'isGone'))).toBe(false);
  },
);

describe('the list of credits', () => {
  beforeEach(async () => {
    await page.getByRole('link', { name: 'Abonos recibidos' }).click();
    await page.locator('.status', { hasText: 'En vivo' }).waitFor();
    await gateway.credit('Factura Única');
    await page.locator('.credits li').first().waitFor();
  });

  it('opens to the tracking key and all that is known, and is filtered by text and by day', async () => {
    await gateway.credit('Renta de octubre');
    await page.locator('.credits li', { hasText: 'Renta de octubre' }).first().waitFor();
    await page.getByLabel('Buscar').fill('UNICA');
    await page.locator('.credits li', { hasText: 'Renta de octubre' }).first().waitFor({ state: 'detached' });
    await page.locator('.credits summary').first().press('Enter');
    const detail = await page.locator('.credits dl').first().textContent();
    expect(detail).toMatch(/Clave de rastreo\w+/);
    expect(detail).toContain('OrdenanteAna Torres');
    await page.getByLabel('Día').fill('2001-01-01');
    await page.getByText('Ningún abono de esta lista coincide.').waitFor();
  });

  it('is gone from the browser once somebody has signed out', async () => {
    const kept = () => page.evaluate(() => JSON.stringify(localStorage));
    expect(await kept()).toContain('Ana Torres');
    await page.getByRole('button', { name: 'Salir' }).click();
    await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
    expect(await kept()).not.toContain('Ana Torres');
  });

  it('comes to nobody once somebody has signed out, and the address names no transaction', async () => {
    // The page leaves a socket whose answer to a ping takes longer than five seconds, and opens another.
    const sockets: PageSocket[] = [];
    page.on('websocket', (one) => {
      if (one.url().endsWith('/graphql')) sockets.push(one);
    });
    await reload();
    await page.getByRole('link', { name: 'Verificar cuenta' }).first().click();
    await choose(/Renta de bodega/);
    await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
    expect(new URL(page.url()).hash).toMatch(/^#\/verify\/./);
    await expect.poll(() => sockets.some((one) => !one.isClosed())).toBe(true);
    await page.getByRole('button', { name: 'Salir' }).click();
    await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
    expect(new URL(page.url()).hash).toBe('');
    await expect.poll(() => sockets.every((one) => one.isClosed())).toBe(true);
  });

  it('is gone as well where a credit was still being saved as somebody signed out', async () => {
    const { clientId } = await control(gateway.sandbox, 'GET', '/sandbox');
    const lock = await holdLock(page, `pasarela pasarela.feed.${clientId}`);
    await gateway.credit('Factura tardía');
    await lock.isWanted();
    await page.getByRole('button', { name: 'Salir' }).click();
    await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
    await lock.release();
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('Ana Torres');
  });

  it('stays where it is when somebody skips to it', async () => {
    await page.getByRole('button', { name: 'Saltar al contenido' }).press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('content');
    expect(page.url()).toContain('#/money-in');
  });
});

describe.each(['light', 'dark'] as const)('in the %s', (colorScheme) => {
  it('axe finds nothing serious on any screen', async () => {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    expect(await seriousFindings(page)).toEqual([]);
    await choose(/Other holder/);
    await page.getByRole('heading', { name: 'El titular no coincide' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('link', { name: 'Abonos recibidos' }).click();
    await gateway.credit('Factura');
    await page.locator('.credits summary').first().click();
    expect(await seriousFindings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Salir' }).click();
    await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
    expect(await seriousFindings(page)).toEqual([]);
  });
});

it.each([
  ['320 px', { width: 320, height: 640 }],
  // 1280 x 1024 at 200 % and 400 %, as WCAG 1.4.10 counts.
  ['200 %', { width: 640, height: 512 }],
])('nothing is wider than a screen of %s', async (_, size) => {
  await page.setViewportSize(size);
  const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(await overflow()).toBeLessThanOrEqual(0);
  await choose(/Other holder/);
  await page.getByRole('heading', { name: 'El titular no coincide' }).waitFor();
  expect(await overflow()).toBeLessThanOrEqual(0);
  await page.getByRole('link', { name: 'Abonos recibidos' }).click();
  await gateway.credit('Factura con un concepto que es tan largo como lo permite el sistema');
  await page.locator('.credits summary').first().click();
  expect(await overflow()).toBeLessThanOrEqual(0);
});
