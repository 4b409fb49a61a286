import { rolesOf } from './stage.ts';
import { restartAll, type Step } from './step.ts';

export const RENEWALS: Step = {
  name: 'certificates and secrets renewed',
  done: 'New certificates in both proxies, both Redis, the Sentinel and the gateways; a new key of the identity provider, a new `WEBHOOK_SECRET` and a new password of the Redis user, each beside the old one, with a rolling restart. Then the old ones are dropped, with another.',
  async run(stage) {
    const { environment, identity } = stage;
    await stage.renewCertificates();
    await identity.addKey();
    const { primary, replica } = await rolesOf(stage.store);
    for (const { admin } of [primary, replica]) await admin.acl('SETUSER', 'gateway', '>second');
    const secret = 'the secret that the rehearsal goes on with';
    environment['WEBHOOK_SECRET'] = `${secret},${stage.providerSecret}`;
    environment['REDIS_URL'] = (environment['REDIS_URL'] ?? '').replace('gateway:first@', 'gateway:second@');
    await restartAll(stage);

    stage.providerSecret = secret;
    environment['WEBHOOK_SECRET'] = secret;
    for (const { admin } of [primary, replica]) await admin.acl('SETUSER', 'gateway', '<first');
    identity.dropOldKeys();
    await restartAll(stage);
  },
};
