import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PHONE, typed } from '../docs/client-pages.ts';
import { seriousFindings } from '../helpers/axe.ts';
import { changeAnswers, startBrowser } from '../helpers/browser.ts';
import { control } from '../helpers/gateway.ts';
import { folder, installWithClient, run } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { serveFolder } from '../helpers/static-server.ts';
import { until } from '../helpers/until.ts';
import { keepsUnanswered } from './kept-payment.ts';
import { closesOf, recordCloses, showApp, verify } from './mobile-page.ts';
import { describeSignedIn } from './mobile-signed-in.ts';
import { describeStarts } from './mobile-starts.ts';

const EXAMPLE = 'examples/mobile';
/** Long enough to read a screen with, and to be checked by a gateway that is slow; short enough to be outlived. */
const TOKEN_TTL_SECONDS = 20;

let site: Awaited<ReturnType<typeof serveFolder>>;
let gateway: RestartableGateway;
let browser: Browser;
let context: BrowserContext;
let page: Page;
const failures: string[] = [];
const foreign: string[] = [];
beforeAll(async () => {
  await installWithClient(EXAMPLE);
  site = await serveFolder(folder(`${EXAMPLE}/dist`));
  gateway = await startRestartable({ CORS_ORIGINS: site.origin }, { tokenTtlSeconds: TOKEN_TTL_SECONDS });
  // The address becomes part of the bundle: nothing of an earlier one may be left.
  await run('npm', ['run', 'build', '--', '--clear'], folder(EXAMPLE), {
    EXPO_PUBLIC_GATEWAY: gateway.graphql,
    EXPO_OFFLINE: '1',
    EXPO_NO_TELEMETRY: '1',
  });
  browser = await startBrowser();
  context = await browser.newContext({ locale: 'es-MX', viewport: { width: 390, height: 844 } });
  await context.addInitScript(recordCloses);
  // As the page's own server does while one develops.
  await changeAnswers(
    context,
    '**/sandbox{,/**}',
    async (response) => ({ response }),
    (address) => `${gateway.sandbox.url}${new URL(address).pathname}`,
  );
  page = await context.newPage();
  page.on('pageerror', (error) => failures.push(error.message));
  page.on('request', (request) => {
    const isOurs = [site.origin, gateway.graphql.replace('/graphql', '')].some((address) =>
      request.url().startsWith(address),
    );
    if (/^https?:/.test(request.url()) && !isOurs) foreign.push(request.url());
  });
});
afterAll(async () => {
  await browser?.close();
  await gateway?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

const closes = () => closesOf(page);
const show = (visibility: 'hidden' | 'visible') => showApp(page, visibility);
const hasStatus = (text: string) => page.getByTestId('status').filter({ hasText: text }).waitFor();
const tap = (name: string) => page.getByRole('tab', { name }).click();

/** What the credits on the screen were for, oldest first. */
const concepts = async (): Promise<string[]> =>
  (await page.getByTestId('concept').allTextContents()).reverse();

/** Waits until just these credits are shown, in this order. */
async function shows(...expected: string[]): Promise<void> {
  await expect.poll(concepts).toEqual(expected);
}

it('the programs on the page of React Native are such that the types of all their packages take them', async () => {
  const work = folder(`${EXAMPLE}/.page`);
  await mkdir(work, { recursive: true });
  try {
    for (const name of PHONE) await writeFile(join(work, name), typed.get(name) ?? '');
    await writeFile(join(work, 'tsconfig.json'), '{ "extends": "../tsconfig.json", "include": ["*.ts*"] }');
    await run('npx', ['tsc', '-p', work], folder(EXAMPLE));
  } finally {
    await rm(work, { recursive: true });
  }
});

it('verifies an account on a phone: from the choice to the holder’s name, over a restart of the app', async () => {
  await page.goto(site.origin);
  await page.getByRole('heading', { name: 'Verifica de quién es una cuenta' }).waitFor();
  await page.getByLabel('Buscar por nombre o CLABE').fill('bodega');
  await page.getByRole('radio', { name: 'Renta de bodega' }).click();
  // The receipt is not there before the app has shown that it is on its way: the sandbox's time stands still.
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
  await page.getByRole('heading', { name: 'Verificación en curso' }).waitFor();
  await page.reload();
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  expect(await page.getByTestId('holder').textContent()).toBe('ROSA ELENA CASTRO VEGA');
  await page.getByText('El titular coincide con el nombre registrado').waitFor();
  await page.getByText('Clave de rastreo').waitFor();
  await page.getByText('Banco', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'Abrir comprobante' }).waitFor();
});

/** Goes from one control to the next by Tab, until it is at one of this name. */
async function tabTo(name: string): Promise<void> {
  await expect
    .poll(
      async () => {
        await page.keyboard.press('Tab');
        return await page.evaluate(() => {
          const { activeElement: at } = document;
          return [at?.textContent, at?.getAttribute('aria-label')];
        });
      },
      { interval: 10 },
    )
    .toContain(name);
}

it('can be used with the keyboard alone', async () => {
  await tabTo('Verificar otra cuenta');
  await page.keyboard.press('Enter');
  await tabTo('Buscar por nombre o CLABE');
  await page.keyboard.type('bodega');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await tabTo('Verificar por $0.01');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
});

it('pays for a verification once, though the gateway is killed while it is sent', async () => {
  await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
  await page.getByLabel('Buscar por nombre o CLABE').fill('taller');
  await page.getByRole('radio', { name: /Taller/ }).click();
  await gateway.kill();
  // The app asks for a minute what became of a payment, and a slow gateway takes longer to start: the minute lasts five.
  await page.evaluate(() => {
    const { now } = Date;
    const began = now();
    Date.now = () => began + (now() - began) / 5;
    Object.assign(globalThis, {
      goOn() {
        Date.now = now;
      },
    });
  });
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
  await page.getByRole('button', { name: 'Enviando…' }).waitFor();
  await gateway.start();
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  await page.evaluate(() => (Reflect.get(globalThis, 'goOn') as () => void)());
  await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
});

it('keeps the steps of a verification while the gateway is away, and tells its end once it is back', async () => {
  // The receipt is not there yet: the sandbox's time stands still.
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
  await verify(page, 'Imprenta');
  const steps = page.getByLabel('Avance de la verificación');
  await steps.waitFor();
  // Who hears the steps does not see that the last one is grey.
  expect(await steps.getByText('Comprobante recibido').count()).toBe(0);
  await steps.getByText('Recibir el comprobante').waitFor();
  await gateway.kill();
  await page.getByText('No hay conexión con el gateway').waitFor();
  expect(await steps.count()).toBe(1);
  expect(await page.getByText('No encontramos esa verificación.').count()).toBe(0);
  await gateway.start();
  await page.getByText('No hay conexión con el gateway').waitFor({ state: 'detached' });
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
});

it('lists all verifications whose end nobody has seen, and asks by itself about those without an answer', async () => {
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
  await verify(page, 'Renta de bodega');
  await page.getByRole('heading', { name: 'Verificación en curso' }).waitFor();
  await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
  const bodega = page.getByRole('group', { name: 'Renta de bodega' });
  await bodega.getByText('El centavo a Renta de bodega salió').waitFor();
  await gateway.kill();
  await verify(page, 'Imprenta');
  await keepsUnanswered(page);
  await page.reload();
  await gateway.start();
  await page.getByText('El centavo a Imprenta salió').waitFor();
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
  for (const name of ['Renta de bodega', 'Imprenta']) {
    await page.getByRole('group', { name }).getByRole('button', { name: 'Ver' }).click();
    await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
    await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
    await page.getByRole('group', { name }).waitFor({ state: 'detached' });
  }
});

it('goes on with a verification that was cut off as soon as the gateway is back, without a press', async () => {
  const before = await context.newPage();
  await before.goto(site.origin);
  await before.getByRole('radio', { name: 'Imprenta' }).click();
  await gateway.kill();
  await before.getByRole('button', { name: 'Verificar por $0.01' }).click();
  await keepsUnanswered(before);
  await before.close();
  await gateway.start();
  const imprenta = page.getByRole('group', { name: 'Imprenta' });
  await imprenta.getByRole('button', { name: 'Ver' }).click();
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
});

it('says in red that the holder is somebody else, with both names', async () => {
  await page.getByLabel('Buscar por nombre o CLABE').fill('other holder');
  await page.getByRole('radio', { name: 'Other holder' }).click();
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
  await page.getByRole('heading', { name: 'El titular no coincide' }).waitFor();
  expect(await page.getByTestId('holder').textContent()).toBe('FERNANDO LUGO ARRIAGA');
  expect(await page.getByTestId('registered').textContent()).toBe('Laura Méndez Ortiz');
  expect(await seriousFindings(page)).toEqual([]);
  await page.getByRole('button', { name: 'Verificar otra cuenta' }).click();
});

it.each([
  ['the smallest screen', { width: 320, height: 568 }],
  // 1280 x 1024, as WCAG 1.4.10 counts.
  ['a screen at 200 %', { width: 640, height: 512 }],
])('keeps the button above the tabs on %s', async (_, size) => {
  await page.setViewportSize(size);
  const button = await page.getByRole('button', { name: 'Verificar por $0.01' }).boundingBox();
  const tabs = await page.getByRole('tablist').boundingBox();
  expect(button).not.toBeNull();
  expect((button?.y ?? 0) + (button?.height ?? 0)).toBeLessThanOrEqual(tabs?.y ?? 0);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  expect(await seriousFindings(page)).toEqual([]);
  await page.setViewportSize({ width: 390, height: 844 });
});

it('shows no empty list where the service fails, and says what to do', async () => {
  // Not what the gateway asks to learn whose token it is: without that there is no connection at all.
  const path = '/v1/clients/*/accounts';
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { path },
    fault: { status: 503, body: {} },
  });
  await page.reload();
  await page.getByText('El servicio bancario no responde bien').waitFor();
  // What TalkBack goes by: React Native announces no role.
  expect(await page.getByRole('alert').getAttribute('aria-live')).toBe('assertive');
  expect(await page.getByText('Aún no hay cuentas').count()).toBe(0);
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
  await page.getByRole('button', { name: 'Intentar de nuevo' }).click();
  await page.getByRole('radio', { name: 'Renta de bodega' }).waitFor();
});

it('shows money as it comes in', async () => {
  await tap('Abonos');
  expect(await page.getByRole('tab', { selected: true }).allTextContents()).toEqual(['Abonos']);
  await hasStatus('En vivo');
  expect(await page.getByTestId('status').getAttribute('aria-live')).toBe('polite');
  await page.getByText('sin faltantes ni duplicados').waitFor();
  await page.getByText('Aún no llega dinero.').waitFor();
  await gateway.credit('uno');
  await gateway.credit('dos');
  await shows('uno', 'dos');
  await page.getByText('+$1,250.00').first().waitFor();
});

it('opens a credit to its tracking key, and filters by text and day', async () => {
  await page.getByTestId('credit').first().getByRole('button').click();
  expect(await page.getByTestId('detail').textContent()).toMatch(/Clave de rastreo\w+OrdenanteAna Torres/);
  expect(await seriousFindings(page)).toEqual([]);
  await page.getByTestId('credit').first().getByRole('button').click();
  await page.getByLabel('Buscar').fill('UNO');
  await shows('uno');
  await page.getByRole('radio', { name: 'Ayer' }).click();
  await page.getByText('Ningún abono de esta lista coincide.').waitFor();
  await page.getByRole('radio', { name: 'Todos' }).click();
  await page.getByLabel('Buscar').fill('');
  await shows('uno', 'dos');
});

it('leaves the gateway in the background, and has what was missed when it returns', async () => {
  await show('hidden');
  await hasStatus('Conectando');
  await gateway.credit('tres');
  await shows('uno', 'dos');
  await show('visible');
  await shows('uno', 'dos', 'tres');
  await hasStatus('En vivo');
});

it('goes on after airplane mode', async () => {
  await context.setOffline(true);
  await gateway.kill();
  await hasStatus('Sin conexión');
  await gateway.start();
  await gateway.credit('cuatro');
  await context.setOffline(false);
  await shows('uno', 'dos', 'tres', 'cuatro');
  await hasStatus('En vivo');
});

it('goes on with another token when the one that it connected with has expired', async () => {
  await until(async () => (await closes()).includes(4403));
  await gateway.credit('cinco');
  await shows('uno', 'dos', 'tres', 'cuatro', 'cinco');
  await hasStatus('En vivo');
});

it('goes on after a restart of the gateway, and of the app', async () => {
  await gateway.kill();
  await page.reload();
  await gateway.start();
  await gateway.credit('seis');
  await tap('Abonos');
  await shows('uno', 'dos', 'tres', 'cuatro', 'cinco', 'seis');
});

it('says so when the log has lost what it showed', async () => {
  await gateway.allDelivered();
  await gateway.kill();
  await gateway.loseLog();
  await gateway.start();
  await page.getByText('La lista empieza de nuevo con lo que sí guarda.').waitFor();
  await gateway.credit('siete');
  await shows('siete');
  // Who had no look at it then is told at the next start.
  await page.reload();
  await tap('Abonos');
  await page.getByText('La lista empieza de nuevo con lo que sí guarda.').waitFor();
  await shows('siete');
});

it('speaks English, is dark at night, and nothing is wider than the screen', async () => {
  const background = () =>
    page.getByRole('tablist').evaluate((element) => getComputedStyle(element).backgroundColor);
  expect(await background()).toBe('rgb(255, 255, 255)');
  await page.getByRole('radio', { name: 'English' }).click();
  expect(await page.locator('html').getAttribute('lang')).toBe('en');
  await page.getByRole('heading', { name: 'Money in' }).waitFor();
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(background).toBe('rgb(27, 30, 35)');
  expect(await seriousFindings(page)).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
  await tap('Verify');
  await page.getByRole('radio').first().waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
});

describeSignedIn(() => ({ origin: site.origin, browser, failures }));

describeStarts(() => ({ origin: site.origin, browser, failures }));

it('has asked nobody but the gateway and its own server, and nothing has failed', () => {
  expect(foreign).toEqual([]);
  expect(failures).toEqual([]);
});
