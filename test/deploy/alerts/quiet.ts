import { startGateway } from '../../helpers/gateway.ts';
import { world } from './world.ts';

/** A gateway that nobody delivers anything to. */
export const QUIET = world(
  'a gateway without webhooks',
  async (cleanup) => {
    const { url } = cleanup.use(await startGateway({ webhooks: false }));
    return { url };
  },
  [
    {
      alerts: ['PasarelaNoWebhooks'],
      fault:
        'No webhook comes. Where one has come, the alert is quiet: that holds for all other gateways here.',
      cause: () => undefined,
    },
  ],
);
