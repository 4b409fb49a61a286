import { randomUUID } from 'node:crypto';
import { startGateway } from '../../helpers/gateway.ts';
import { serviceFor } from '../../helpers/service.ts';
import { startIdentityProvider } from '../../scenarios/rehearse/identity-provider.ts';
import { deliverTo, goOn, world } from './world.ts';

/** A gateway that verifies callers' tokens by the keys of an identity provider. */
export const KEYS = world(
  'the keys of the identity provider',
  async (cleanup) => {
    const identity = cleanup.use(await startIdentityProvider());
    const plain = cleanup.use(await startGateway({ webhooks: false }));
    const { sandbox } = plain;
    const keys = { jwksUrl: identity.jwksUrl, cooldownMs: 1, maxAgeMs: 100 };
    const gateway = cleanup.use(
      await startGateway({
        sandbox,
        webhooks: false,
        config: { service: { ...serviceFor(sandbox), keys } },
      }),
    );
    /** A token that the gateway has not seen. */
    const ask = async () =>
      gateway.query('{ client { id } }', {}, { authorization: await identity.bearer(randomUUID()) });
    return { url: gateway.url, identity, ask, deliver: () => deliverTo(gateway) };
  },
  [
    {
      alerts: ['PasarelaKeysUnreadable'],
      fault: 'The identity provider has gone.',
      async cause({ identity, ask }, ended) {
        await identity[Symbol.asyncDispose]();
        await goOn(ended, ask);
      },
    },
  ],
);
