import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Intent } from '../../packages/client/src/index.ts';
import { startBrowser } from '../helpers/browser.ts';
import { control } from '../helpers/gateway.ts';
import { buildWebExample, folder } from '../helpers/packages.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { serveFolder } from '../helpers/static-server.ts';
import { keepsUnanswered } from './kept-payment.ts';
import { signIn } from './web-sign-in.ts';

let site: Awaited<ReturnType<typeof serveFolder>>;
let gateway: RestartableGateway;
let browser: Browser;
let page: Page;
const failures: string[] = [];

beforeAll(async () => {
  await buildWebExample();
  site = await serveFolder(folder('examples/web/dist'));
  gateway = await startRestartable({ CORS_ORIGINS: site.origin });
  browser = await startBrowser();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await page?.context().close();
  await control(gateway.sandbox, 'DELETE', '/sandbox/requests', undefined);
  const context = await browser.newContext({ locale: 'es-MX' });
  page = await context.newPage();
  page.on('pageerror', (error) => failures.push(error.message));
  await page.goto(site.origin);
});

const sent = async (): Promise<number | undefined> =>
  (await control(gateway.sandbox, 'GET', '/sandbox/requests')).counts[
    'POST /v1/transactions/penny_validation'
  ];

const telling = (text: string) => page.getByRole('status').filter({ hasText: text });
const press = (text: string, name: string) => telling(text).getByRole('button', { name }).click();
const verify = async (name: string) => {
  await page.getByRole('radio', { name }).check();
  await page.getByRole('button', { name: 'Verificar por $0.01' }).click();
};

/** The page is live on the other screen, and back. */
async function comesBack(): Promise<void> {
  await page.getByRole('link', { name: 'Abonos recibidos' }).click();
  await page.locator('.status', { hasText: 'En vivo' }).waitFor();
  await page.getByRole('link', { name: 'Verificar cuenta' }).first().click();
}

/** Puts a payment into the list, as an earlier page has kept it. */
async function keeps(hours: number, receiver: string, more: Partial<Intent>): Promise<void> {
  const { clientId, centralizingInstrumentId } = await control(gateway.sandbox, 'GET', '/sandbox');
  const intent: Intent = {
    idempotencyKey: `key-of-${receiver}`,
    mutation: 'createPennyValidation',
    input: {
      sourceInstrumentId: centralizingInstrumentId,
      destinationInstrumentId: receiver,
      externalReference: '7654321',
    },
    createdAt: new Date(Date.now() - hours * 3_600_000).toISOString(),
    unanswered: 1,
    ...more,
  };
  await page.evaluate(
    ([name = '', added = '']) => {
      const list = JSON.parse(localStorage.getItem(name) ?? '[]') as object[];
      localStorage.setItem(name, JSON.stringify([...list, JSON.parse(added)]));
    },
    [`pasarela.intents.${clientId}`, JSON.stringify(intent)],
  );
}

/** Changes each payment of the list, as another tab does. */
const changeKept = (more: Partial<Intent>, without: string) =>
  page.evaluate(
    ([added = '', gone = '']) => {
      for (const name of Object.keys(localStorage).filter((each) => each.startsWith('pasarela.intents.'))) {
        const list = JSON.parse(localStorage.getItem(name) ?? '[]') as object[];
        const changed = list.map((one) => ({ ...one, [gone]: undefined, ...JSON.parse(added) }));
        localStorage.setItem(name, JSON.stringify(changed));
      }
    },
    [JSON.stringify(more), without],
  );

it('a page shows a refusal that nobody has seen, and sends nothing that is a day old or was never paid until somebody presses', async () => {
  const result = { __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS', message: 'No money.' };
  const { clabeInstrumentIds } = await control(gateway.sandbox, 'GET', '/sandbox');
  await keeps(2, 'refused', { result });
  await keeps(24, clabeInstrumentIds[0], {});
  await keeps(2, 'unpaid', { unanswered: 0 });
  await signIn(page, gateway);
  await telling('No se verificó a refused').getByText('no tiene fondos suficientes').waitFor();
  await telling('No salió ningún centavo a unpaid').waitFor();
  await telling('Hace más de 23 horas').waitFor();
  await comesBack();
  await telling('Hace más de 23 horas').waitFor();
  expect(await sent()).toBeUndefined();

  await press('Hace más de 23 horas', 'Enviar de todos modos');
  await page.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
  expect(await sent()).toBe(1);
  await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
  await press('No se verificó a refused', 'Entendido');
  await press('No salió ningún centavo a unpaid', 'No enviar');
  for (const text of ['refused', 'unpaid']) await telling(text).waitFor({ state: 'detached' });
  await comesBack();
  await page.getByRole('radio').first().waitFor();
  for (const text of ['refused', 'unpaid']) expect(await telling(text).count()).toBe(0);
});

it('what nobody has seen the end of is shown, and can be let go of, where the lists cannot be read', async () => {
  await keeps(2, 'unpaid', { unanswered: 0 });
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { path: '/v1/clients/*/instruments' },
    fault: { status: 503, body: {} },
  });
  await signIn(page, gateway);
  await page.getByText('El servicio bancario no responde bien').waitFor();
  await press('No salió ningún centavo a unpaid', 'No enviar');
  await telling('unpaid').waitFor({ state: 'detached' });
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults', undefined);
  await page.getByRole('button', { name: 'Intentar de nuevo' }).click();
  await page.getByRole('radio').first().waitFor();
});

it('one that is a day old is told of by itself where the gateway knows its end, and is not sent again', async () => {
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 0 });
  await signIn(page, gateway);
  await verify('Renta de bodega');
  await page.getByRole('heading', { name: 'Verificación en curso' }).waitFor();
  await page.getByRole('link', { name: 'Verificar otra cuenta' }).click();
  await changeKept({ createdAt: new Date(Date.now() - 24 * 3_600_000).toISOString() }, 'result');
  await page.reload();
  await signIn(page, gateway);
  await telling('El centavo a Renta de bodega salió').waitFor();
  expect(await sent()).toBe(1);
  await control(gateway.sandbox, 'PATCH', '/sandbox/clock', { speed: 60 });
});

it('one that was never paid is kept where another tab has sent it since it was listed', async () => {
  await keeps(2, 'unpaid', { unanswered: 0 });
  await signIn(page, gateway);
  // What it goes on with by itself, it has gone on with.
  await comesBack();
  await telling('No salió ningún centavo a unpaid').waitFor();
  await changeKept({ unanswered: 1 }, 'result');
  await press('No salió ningún centavo a unpaid', 'No enviar');
  await telling('No sabemos en qué terminó la verificación de unpaid').waitFor();
});

it('a payment that is under way is left as the person signs out, and goes on after the next sign-in', async () => {
  await signIn(page, gateway);
  await page.getByRole('radio', { name: 'Imprenta' }).waitFor();
  await gateway.kill();
  await verify('Imprenta');
  await keepsUnanswered(page);
  await page.getByRole('button', { name: 'Salir' }).click();
  await page.getByRole('heading', { name: 'Conéctate a tu gateway' }).waitFor();
  const calls = page.waitForEvent('websocket', { timeout: 5_000 }).then(
    () => true,
    () => false,
  );
  await gateway.start();
  expect(await calls).toBe(false);
  expect(await sent()).toBeUndefined();
  await signIn(page, gateway);
  await telling('El centavo a Imprenta salió').waitFor();
  expect(await sent()).toBe(1);
});

it('nothing on the page has failed', () => {
  expect(failures).toEqual([]);
});
