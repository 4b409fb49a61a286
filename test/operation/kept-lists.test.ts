import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';

/** So long that nothing ends it but what the gateway learns. */
const MAX_AGE_MS = 600_000;

let sandbox: Sandbox;
let gateway: RunningGateway;
let authorization: string;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, customers: 200 });
  gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS },
  });
  authorization = `Bearer ${await callerToken()}`;
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

/** What an operation tells, and how many REST calls it took. */
async function ask(document: string) {
  const before = (await control(sandbox, 'GET', '/sandbox/requests')).total;
  const { data, errors } = await gateway.query(document, {}, { authorization });
  expect(errors).toBeUndefined();
  return { data, calls: (await control(sandbox, 'GET', '/sandbox/requests')).total - before };
}

/** Opens an account beside the gateway. */
async function open(like: Readonly<Record<string, string>>): Promise<void> {
  const response = await fetch(`${sandbox.url}/v1/clients/${sandbox.clientId}/private_accounts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${sandbox.accessToken}` },
    body: JSON.stringify({
      bank_id: like['bankId'],
      owner_id: like['ownerId'],
      client_bank_adapter_id: like['clientBankAdapterId'],
      client_id: sandbox.clientId,
      account_id: like['accountId'],
    }),
  });
  expect(response.ok).toBe(true);
}

it('answers that are kept for others go with what the gateway has learned of the list since', async () => {
  const nobody = 'account(by: { clabe: "646180000000000000" }) { id }';
  const page = (first: number) =>
    `client { accounts(first: ${first}) { totalCount nodes { bankId ownerId clientBankAdapterId accountId } } }`;
  await ask(`{ ${nobody} }`);
  const old = await ask(`{ ${page(50)} }`);
  const [like] = old.data.client.accounts.nodes;
  const { totalCount } = old.data.client.accounts;
  expect(totalCount).toBeGreaterThan(100);
  expect(await ask(`{ ${page(50)} }`)).toMatchObject({ calls: 0 });

  await open(like);
  // Another page shows that the list has grown, and its ends show how.
  expect((await ask(`{ ${page(40)} }`)).data.client.accounts.totalCount).toBe(totalCount + 1);
  expect((await ask(`{ ${nobody} }`)).calls).toBeGreaterThan(0);

  const both = await ask(`{ ${page(50)} ${nobody} }`);
  expect(both).toMatchObject({ calls: 1, data: { client: { accounts: { totalCount: totalCount + 1 } } } });
  expect(await ask(`{ ${page(50)} ${nobody} }`)).toMatchObject({ calls: 0 });
});
