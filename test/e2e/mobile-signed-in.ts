import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { control } from '../helpers/gateway.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { registerMany } from './many.ts';
import { connect, keptBy, signOut, verify } from './mobile-page.ts';
import { holdLock } from './web-lock.ts';

/** With those that the sandbox begins with, more than a page. */
const INSTRUMENTS = 130;

interface World {
  /** Where the app is served. */
  readonly origin: string;
  readonly browser: Browser;
  /** What no code of the app has caught. */
  readonly failures: string[];
}

/** What happens to somebody who has signed in by hand. */
export const describeSignedIn = (world: () => World) =>
  describe('somebody who has signed in', () => {
    /** Its tokens outlive the test. */
    let other: RestartableGateway;
    let device: Page;
    beforeAll(async () => {
      const { origin, browser, failures } = world();
      other = await startRestartable({ CORS_ORIGINS: origin });
      await registerMany(other.sandbox, INSTRUMENTS);
      const own = await browser.newContext({ locale: 'es-MX', viewport: { width: 320, height: 568 } });
      device = await own.newPage();
      device.on('pageerror', (error) => failures.push(error.message));
      await device.goto(origin);
      await signIn();
    });
    afterAll(() => other?.[Symbol.asyncDispose]());

    const signIn = () => connect(device, other.graphql, other.sandbox.accessToken);
    const kept = async () => JSON.stringify(await keptBy(device));
    const sent = async (): Promise<number | undefined> =>
      (await control(other.sandbox, 'GET', '/sandbox/requests')).counts[
        'POST /v1/transactions/penny_validation'
      ];

    it('stays so where a look for the sandbox, of before, is answered late', async () => {
      const { origin, browser } = world();
      const context = await browser.newContext({ locale: 'es-MX' });
      const page = await context.newPage();
      const late: Route[] = [];
      await page.route('**/sandbox', (route) => {
        if (late.length > 0) return route.fulfill({ status: 404 });
        return void late.push(route);
      });
      await page.goto(origin);
      await connect(page, other.graphql, other.sandbox.accessToken);
      await page.getByRole('tab', { name: 'Abonos' }).waitFor();
      const told = page.waitForResponse((response) => response.url().endsWith('/sandbox'));
      await late[0]?.fulfill({ status: 404 });
      await told;
      // The app has taken it once it has drawn twice.
      await page.evaluate(
        () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
      );
      expect(await page.getByRole('tab', { name: 'Abonos' }).count()).toBe(1);
      await context.close();
    });

    it('finds a receiver beyond the first hundred', async () => {
      const search = device.getByLabel('Buscar por nombre o CLABE');
      await search.fill(`proveedor ${INSTRUMENTS}`);
      await device.getByRole('radio', { name: `Proveedor ${INSTRUMENTS}` }).waitFor();
      await search.fill('');
    });

    it('sends nothing that the phone cannot remember, and the button is there again', async () => {
      await device.evaluate(() => {
        const setItem = Storage.prototype.setItem;
        Object.assign(globalThis, { setItem });
        Storage.prototype.setItem = () => {
          throw new DOMException('full', 'QuotaExceededError');
        };
      });
      await verify(device, 'Renta de bodega');
      await device.getByText('El teléfono no puede guardar el intento de pago').waitFor();
      expect(await device.getByRole('button', { name: 'Verificar por $0.01' }).isEnabled()).toBe(true);
      expect(await sent()).toBeUndefined();
      await device.evaluate(() => {
        Storage.prototype.setItem = Reflect.get(globalThis, 'setItem') as Storage['setItem'];
      });
    });

    it('forgets as they sign out who paid, where the feed stood, and what was paid and seen; not a payment that is unknown', async () => {
      await verify(device, 'Renta de bodega');
      await device.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
      await device.getByRole('button', { name: 'Verificar otra cuenta' }).click();
      const { clientId } = await control(other.sandbox, 'GET', '/sandbox');
      // The gateway, which looks for it, is not told either.
      await control(other.sandbox, 'POST', '/sandbox/faults', {
        match: { method: 'GET', path: `/v1/clients/${clientId}/transactions/` },
        fault: { status: 500 },
      });
      await control(other.sandbox, 'POST', '/sandbox/faults', {
        match: { path: '/v1/transactions/penny_validation' },
        fault: 'reset-after-commit',
        times: 1,
      });
      await verify(device, 'Imprenta');
      await device.getByText('No sabemos si el centavo salió').waitFor();
      await device.getByRole('tab', { name: 'Abonos' }).click();
      await other.credit('uno');
      await device.getByTestId('concept').waitFor();
      expect(await kept()).toMatch(/Ana Torres.*acknowledgedAt|acknowledgedAt.*Ana Torres/);
      expect(await device.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
      await signOut(device);
      await expect.poll(kept).not.toMatch(/acknowledgedAt|Ana Torres/);
      const [[name, value] = [], ...more] = Object.entries(await keptBy(device));
      expect([name, more]).toEqual([expect.stringMatching(/^pasarela\.intents\./), []]);
      expect(JSON.parse(value ?? '')).toEqual([expect.objectContaining({ unanswered: 1 })]);
    });

    it('the payment that is unknown is told of again, and not sent again, once somebody signs in', async () => {
      const before = await sent();
      await signIn();
      await device.getByText('No sabemos si el centavo salió').waitFor();
      expect(await sent()).toBe(before);
      await control(other.sandbox, 'DELETE', '/sandbox/faults');
    });

    it('lets go of it once the person has said that the provider has told what became of it', async () => {
      const imprenta = device.getByRole('group', { name: 'Imprenta' });
      await imprenta.getByRole('button', { name: 'Ya lo aclaré con mi proveedor' }).click();
      await imprenta.getByRole('button', { name: 'Todavía no' }).click();
      await imprenta.getByText('No sabemos en qué terminó la verificación de Imprenta.').waitFor();
      await imprenta.getByRole('button', { name: 'Ya lo aclaré con mi proveedor' }).click();
      expect(await device.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
      await imprenta.getByRole('button', { name: 'Sí, olvidarlo' }).click();
      await imprenta.waitFor({ state: 'detached' });
      expect(await kept()).not.toContain('"unanswered":1');
    });

    it('forgets a credit as well that was still being saved', async () => {
      const { clientId } = await control(other.sandbox, 'GET', '/sandbox');
      await device.getByRole('tab', { name: 'Abonos' }).click();
      await other.credit('dos');
      await device.getByTestId('concept').filter({ hasText: 'dos' }).waitFor();
      const lock = await holdLock(device, `pasarela pasarela.feed.${clientId}`);
      await other.credit('tres');
      await lock.isWanted();
      await signOut(device);
      await lock.release();
      expect(await kept()).not.toContain('Ana Torres');
    });
  });
