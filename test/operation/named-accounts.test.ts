import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { Secret } from '../../src/common/secret.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { subscribeOverWebSocket } from '../helpers/subscriber.ts';

/** So long that nothing ends what is known of a list but what the gateway learns. */
const MAX_AGE_MS = 600_000;

let redis: RedisServer;
let sandbox: Sandbox;
beforeAll(async () => {
  redis = await startRedis();
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, customers: 200, webhookHosts: ['example.mx'] });
});
afterAll(async () => {
  await sandbox.stop();
  await redis.stop();
});

/** Opens an account beside all gateways. @returns its CLABE */
async function open(): Promise<string> {
  const accounts = `/v1/clients/${sandbox.clientId}/accounts`;
  const like = (await control(sandbox, 'GET', accounts)).data[0];
  const { totalItem, totalItems = totalItem } = await control(
    sandbox,
    'GET',
    `${accounts}?page=1&per_page=1`,
  );
  await control(sandbox, 'POST', `/v1/clients/${sandbox.clientId}/private_accounts`, {
    bank_id: like.bankId,
    owner_id: like.ownerId,
    client_bank_adapter_id: like.clientBankAdapterId,
    client_id: sandbox.clientId,
    account_id: like.accountId,
  });
  const { data } = await control(sandbox, 'GET', `${accounts}?page=${totalItems + 1}&per_page=1`);
  return data[0].clabeNumber;
}

it('a credit to an account that was opened elsewhere has its account, on a process that took no webhook', async () => {
  const config = {
    service: serviceFor(sandbox),
    listsMaxAgeMs: MAX_AGE_MS,
    redisUrl: new Secret(redis.url),
  };
  await using receiving = await startGateway({ sandbox, config });
  await using gateway = await startGateway({ sandbox, config, webhooks: false });
  const token = await callerToken();
  const headers = { authorization: `Bearer ${token}` };
  const nobody = '{ account(by: { clabe: "646180000000000000" }) { id } eventCursor }';
  const { data } = await gateway.query(nobody, {}, headers);
  const clabe = await open();
  await using subscriber = subscribeOverWebSocket(gateway.graphql, token, {
    query:
      'subscription ($after: Cursor) { moneyIn(after: $after) { account { clabe } owner { __typename } } }',
    variables: { after: data.eventCursor },
  });
  const credit = { clabe, amount: '1.00', concept: 'to a new account' };
  await control(sandbox, 'POST', '/sandbox/spei-credits', credit);
  const [first] = await subscriber.received(1);
  expect(first?.errors).toBeUndefined();
  expect(first?.data.moneyIn).toMatchObject({ account: { clabe }, owner: {} });
  expect(receiving.url).not.toBe(gateway.url);
});
