import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Intent } from '../../packages/client/src/index.ts';
import { control } from '../helpers/gateway.ts';
import { type RestartableGateway, startRestartable } from '../helpers/restartable.ts';
import { keepsUnanswered } from './kept-payment.ts';
import { connect, signOut, verify } from './mobile-page.ts';

interface World {
  /** Where the app is served. */
  readonly origin: string;
  readonly browser: Browser;
  /** What no code of the app has caught. */
  readonly failures: string[];
}

/** What a start of the app makes of payments that an earlier one has kept. */
export const describeStarts = (world: () => World) =>
  describe('payments that an earlier start has kept', () => {
    let gateway: RestartableGateway;
    let device: Page;
    beforeAll(async () => {
      const { origin, browser, failures } = world();
      gateway = await startRestartable({ CORS_ORIGINS: origin });
      const own = await browser.newContext({ locale: 'es-MX', viewport: { width: 390, height: 844 } });
      device = await own.newPage();
      device.on('pageerror', (error) => failures.push(error.message));
      await device.goto(origin);
    });
    afterAll(() => gateway?.[Symbol.asyncDispose]());

    const signIn = () => connect(device, gateway.graphql, gateway.sandbox.accessToken);
    const sent = async (): Promise<number | undefined> =>
      (await control(gateway.sandbox, 'GET', '/sandbox/requests')).counts[
        'POST /v1/transactions/penny_validation'
      ];
    const group = (name: string) => device.getByRole('group', { name });
    const press = (name: string, button: string) => group(name).getByRole('button', { name: button }).click();
    /** The app is live on the other screen, and back. */
    const comesBack = async () => {
      await device.getByRole('tab', { name: 'Abonos' }).click();
      await device.getByTestId('status').filter({ hasText: 'En vivo' }).waitFor();
      await device.getByRole('tab', { name: 'Verificar' }).click();
    };

    it('shows a refusal that nobody has seen, and sends nothing that is a day old or was never paid', async () => {
      const { clientId, centralizingInstrumentId, clabeInstrumentIds } = await control(
        gateway.sandbox,
        'GET',
        '/sandbox',
      );
      const kept = (hours: number, destinationInstrumentId: string, more: Partial<Intent>): Intent => ({
        idempotencyKey: `key-of-${destinationInstrumentId}`,
        mutation: 'createPennyValidation',
        input: {
          sourceInstrumentId: centralizingInstrumentId,
          destinationInstrumentId,
          externalReference: '7654321',
        },
        createdAt: new Date(Date.now() - hours * 3_600_000).toISOString(),
        unanswered: 1,
        ...more,
      });
      const result = { __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS', message: 'No money.' };
      const intents = [
        kept(2, 'refused', { result }),
        kept(24, clabeInstrumentIds[0], {}),
        kept(2, 'unpaid', { unanswered: 0 }),
      ];
      await device.evaluate(
        ([name = '', list = '']) => localStorage.setItem(name, list),
        [`pasarela.intents.${clientId}`, JSON.stringify(intents)],
      );
      await signIn();
      await group('refused').getByText('no tiene fondos suficientes').waitFor();
      await group('unpaid').getByText('No salió ningún centavo').waitFor();
      await device.getByText('Hace más de 23 horas').waitFor();
      await comesBack();
      await device.getByText('Hace más de 23 horas').waitFor();
      expect(await sent()).toBeUndefined();
    });

    it('shows them where the lists cannot be read', async () => {
      await control(gateway.sandbox, 'POST', '/sandbox/faults', {
        match: { path: '/v1/clients/*/instruments' },
        fault: { status: 503, body: {} },
      });
      await comesBack();
      await device.getByText('El servicio bancario no responde bien').waitFor();
      await group('refused').getByText('no tiene fondos suficientes').waitFor();
      await group('unpaid').getByText('No salió ningún centavo').waitFor();
      await control(gateway.sandbox, 'DELETE', '/sandbox/faults', undefined);
      await device.getByRole('button', { name: 'Intentar de nuevo' }).click();
      await device.getByRole('radio').first().waitFor();
    });

    it('sends it as the person presses, and then still shows the refusal until the person has seen it', async () => {
      await device.getByRole('button', { name: 'Enviar de todos modos' }).click();
      await device.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
      await device.getByRole('button', { name: 'Verificar otra cuenta' }).click();
      expect(await sent()).toBe(1);
      await press('refused', 'Entendido');
      await press('unpaid', 'No enviar');
      for (const name of ['refused', 'unpaid']) await group(name).waitFor({ state: 'detached' });
    });

    it('leaves a payment that is under way as the person signs out, and goes on with it after the next sign-in', async () => {
      await gateway.kill();
      await verify(device, 'Imprenta');
      await keepsUnanswered(device);
      await signOut(device);
      const calls = device.waitForEvent('websocket', { timeout: 2_000 }).then(
        () => true,
        () => false,
      );
      await gateway.start();
      expect(await calls).toBe(false);
      expect(await sent()).toBe(1);
      await signIn();
      await device.getByRole('heading', { name: 'Cuenta verificada' }).waitFor();
      expect(await sent()).toBe(2);
    });
  });
