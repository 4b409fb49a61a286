import { startSandbox } from '#sandbox';
import { readMetric } from '../../helpers/fleet.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { inject } from '../../scenarios/faults/payments.ts';
import { deliverTo, world } from './world.ts';

const TIMES = { everyMs: 400, marginMs: 100 };

/** A gateway in service mode that compares balances. */
export const BALANCES = world(
  'balances',
  async (cleanup) => {
    const sandbox = await startSandbox({ port: 0, speed: 1, seed: 1, webhookHosts: ['example.mx'] });
    cleanup.defer(() => sandbox.stop());
    const gateway = cleanup.use(
      await startGateway({
        sandbox,
        config: { service: serviceFor(sandbox), reconciling: TIMES },
      }),
    );
    const { accounts } = await control(sandbox, 'GET', '/sandbox');
    const credit = (amount: string) =>
      control(sandbox, 'POST', '/sandbox/spei-credits', { clabe: accounts[0].clabe, amount });
    const compared = () =>
      readMetric(gateway.url, 'pasarela_balance_comparisons_total', 'outcome="compared"');
    return { url: gateway.url, sandbox, credit, compared, deliver: () => credit('25.10') };
  },
  [
    {
      alerts: ['PasarelaBalanceDiffers'],
      fault: 'The webhook of a credit is lost on the way.',
      async cause({ sandbox, credit, compared }) {
        await until(async () => (await compared()) > 2);
        // All of them: one that is sent again, of a credit from before the first reading, would be the one that is lost.
        await control(sandbox, 'POST', '/sandbox/lost-messages', { type: 'MONEY_IN' });
        // Of another amount than the one that was delivered: near a reading, that one would explain it.
        await credit('77.70');
      },
    },
  ],
);

/** A gateway in service mode, before a service that another one cannot reach from its start on. */
export const UNREAD_BALANCES = world(
  'balances that cannot be read',
  async (cleanup) => {
    const gateway = cleanup.use(await startGateway({ webhooks: false }));
    return { url: gateway.url, gateway, cleanup, deliver: () => deliverTo(gateway) };
  },
  [
    {
      alerts: ['PasarelaBalancesNotCompared'],
      fault: 'A gateway starts that compares balances, and cannot reach the service.',
      async cause({ gateway: { sandbox }, cleanup }, _ended, { scrape }) {
        await inject(sandbox, { path: '/v1/' }, 'reset-before');
        const config = { service: serviceFor(sandbox), reconciling: TIMES };
        const comparing = cleanup.use(await startGateway({ sandbox, webhooks: false, config }));
        await scrape([comparing.url]);
      },
    },
  ],
);
