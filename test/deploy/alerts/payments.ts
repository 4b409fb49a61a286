import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { startSandbox } from '#sandbox';
import { pasarela } from '../../cli/run.ts';
import { startAltered } from '../../helpers/altered-service.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { documentOf, inject, payable } from '../../scenarios/faults/payments.ts';
import { deliverTo, goOn, world } from './world.ts';

/** A little more than the quarter of an hour after which an unknown payment is told. */
const LATER_MS = 16 * 60_000;

/** A gateway that keeps its own record, before a service whose answers can be altered. */
export const PAYMENTS = world(
  'payments',
  async (cleanup) => {
    const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    cleanup.defer(() => sandbox.stop());
    const service = cleanup.use(await startAltered(sandbox.url));
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-alerts-payments-'));
    cleanup.defer(() => rm(dataDir, { recursive: true, force: true }));
    const gateway = cleanup.use(
      await startGateway({
        sandbox,
        webhooks: false,
        config: {
          upstreamUrl: service.url,
          dataDir,
          service: serviceFor(sandbox),
          operationTimeoutMs: 3_000,
        },
      }),
    );
    const authorization = `Bearer ${await callerToken()}`;
    const pay = async (tag: string, isRefusable = false) => {
      const { input } = await payable(sandbox, 'createMoneyOut', tag, isRefusable);
      return gateway.query(documentOf('createMoneyOut'), { input }, { authorization });
    };
    return { url: gateway.url, sandbox, service, dataDir, pay, deliver: () => deliverTo(gateway) };
  },
  [
    {
      alerts: ['PasarelaPaymentsRefused'],
      fault: 'Callers order six payments of more than the account holds.',
      async cause({ pay }) {
        for (let number = 0; number < 6; number += 1) await pay(`too much ${number}`, true);
      },
    },
    {
      alerts: ['PasarelaAnswerDoesNotMatch'],
      fault: 'The service answers a payment with another amount than that of the order.',
      async cause({ service, pay }) {
        service.alter = ({ method, path }, { body }) =>
          method === 'POST' && path.endsWith('/money_out') && typeof body === 'object'
            ? { body: { ...body, amount: '7.77' } }
            : undefined;
        await pay('another amount');
        service.alter = () => undefined;
      },
    },
    {
      alerts: ['PasarelaPaymentUnknown'],
      fault:
        'The service takes a payment, its answer is lost, and nobody reaches it any more. The clock of the machine goes on by 16 minutes.',
      async cause({ sandbox, pay }, ended) {
        await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, 'reset-after-commit', 1);
        await inject(sandbox, { path: '/v1/' }, 'reset-before');
        await pay('nobody knows');
        vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + LATER_MS });
        ended.addEventListener('abort', () => vi.useRealTimers());
      },
    },
    {
      alerts: ['PasarelaUpstreamSuspended', 'PasarelaPaymentsEndUnknown'],
      fault: 'The service answers every payment with 503, and all else as ever.',
      async cause({ sandbox, pay }, ended) {
        await control(sandbox, 'DELETE', '/sandbox/faults');
        await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, { status: 503 });
        let number = 0;
        // A dozen at once: later ones are refused, as calls are suspended.
        await goOn(ended, () =>
          Promise.all(
            Array.from({ length: 12 }, () => {
              number += 1;
              return pay(`in vain ${number}`);
            }),
          ),
        );
        await control(sandbox, 'DELETE', '/sandbox/faults');
      },
    },
    {
      alerts: ['PasarelaPaymentsHeld'],
      fault: 'An operator stops all payments.',
      async cause({ dataDir }) {
        await pasarela(['payments', 'stop'], { DATA_DIR: dataDir });
      },
    },
  ],
);
