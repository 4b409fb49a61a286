import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';

/** So long that nothing ends it but what the gateway learns. */
const MAX_AGE_MS = 600_000;

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, customers: 200 });
});
afterAll(() => sandbox.stop());

const NOBODY = 'account(by: { clabe: "646180000000000000" }) { id }';

/** What an operation tells, and how many REST calls it took. */
async function ask(gateway: RunningGateway, token: string, document: string) {
  const before = (await control(sandbox, 'GET', '/sandbox/requests')).total;
  const { data, errors } = await gateway.query(document, {}, { authorization: `Bearer ${token}` });
  expect(errors).toBeUndefined();
  return { data, calls: (await control(sandbox, 'GET', '/sandbox/requests')).total - before };
}

/** Another access token of the sandbox's client. */
async function otherToken(): Promise<string> {
  const { url, clientId, apiKey, clientSecret } = sandbox;
  const answer = await fetch(`${url}/v1/clients/${clientId}/auth/credential-tokens`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: clientId, client_secret: clientSecret }),
  });
  const { token }: { readonly token: string } = JSON.parse(await answer.text());
  return token;
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
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS },
  });
  const token = await callerToken();
  const told = (document: string) => ask(gateway, token, document);
  const page = (first: number) =>
    `client { accounts(first: ${first}) { totalCount nodes { bankId ownerId clientBankAdapterId accountId } } }`;
  await told(`{ ${NOBODY} }`);
  const old = await told(`{ ${page(50)} }`);
  const [like] = old.data.client.accounts.nodes;
  const { totalCount } = old.data.client.accounts;
  expect(totalCount).toBeGreaterThan(100);
  expect(await told(`{ ${page(50)} }`)).toMatchObject({ calls: 0 });

  await open(like);
  // Another page shows that the list has grown, and its ends show how.
  expect((await told(`{ ${page(40)} }`)).data.client.accounts.totalCount).toBe(totalCount + 1);
  expect((await told(`{ ${NOBODY} }`)).calls).toBeGreaterThan(0);

  const both = await told(`{ ${page(50)} ${NOBODY} }`);
  expect(both).toMatchObject({ calls: 1, data: { client: { accounts: { totalCount: totalCount + 1 } } } });
  expect(await told(`{ ${page(50)} ${NOBODY} }`)).toMatchObject({ calls: 0 });
});

it('a page that takes two reads is shown although one of them was kept from before the list grew', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS },
  });
  const token = await callerToken();
  const page = (first: number, after?: string) =>
    ask(
      gateway,
      token,
      `{ client { accounts(first: ${first}${after === undefined ? '' : `, after: "${after}"`}) {
        totalCount nodes { bankId ownerId clientBankAdapterId accountId } pageInfo { endCursor }
      } } }`,
    );
  const { nodes, totalCount } = (await page(60)).data.client.accounts;
  const { endCursor } = (await page(50)).data.client.accounts.pageInfo;
  // No page of up to 100 items holds 60 from the 50th on, so two of 60 are read, of which the first is kept.
  await open(nodes[0]);
  const { data, calls } = await page(60, endCursor);
  expect(data.client.accounts).toMatchObject({ totalCount: totalCount + 1, nodes: { length: 60 } });
  expect(calls).toBe(3);
});

it('a page that was kept is read afresh once the page before it has shown another total', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS },
  });
  const token = await callerToken();
  const page = async (args: string) => {
    const { data, calls } = await ask(
      gateway,
      token,
      `{ client { accounts(${args}) {
        totalCount nodes { bankId ownerId clientBankAdapterId accountId } pageInfo { endCursor }
      } } }`,
    );
    return { ...data.client.accounts, calls };
  };
  const { nodes, totalCount, pageInfo } = await page('first: 20');
  const second = `first: 20, after: "${pageInfo.endCursor}"`;
  await page(second);
  expect(await page(second)).toMatchObject({ calls: 0, totalCount });

  await open(nodes[0]);
  // No answer is kept of this page, so it is the first to show that the list has grown.
  expect(await page('first: 19')).toMatchObject({ totalCount: totalCount + 1 });
  const told = gateway.log
    .map((line) => JSON.parse(line))
    .filter(({ message }) => /another total/.test(message));
  const route = '/v1/clients/{clientId}/accounts';
  const { clientId } = sandbox;
  expect(told).toMatchObject([
    { level: 'debug', route, clientId, before: totalCount, total: totalCount + 1 },
  ]);
  expect(await page(second)).toMatchObject({ calls: 1, totalCount: totalCount + 1 });
  expect(await page(second)).toMatchObject({ calls: 0, totalCount: totalCount + 1 });
});

it('what the service has shown one token alone makes nothing absent for another', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { listsMaxAgeMs: MAX_AGE_MS },
  });
  const tokens = [sandbox.accessToken, await otherToken()] as const;
  // So that it is known whose they are.
  for (const token of tokens) await ask(gateway, token, '{ client { id } }');
  expect((await ask(gateway, tokens[0], `{ ${NOBODY} }`)).calls).toBeGreaterThan(2);
  const calls = [];
  for (const token of [...tokens, ...tokens]) calls.push((await ask(gateway, token, `{ ${NOBODY} }`)).calls);
  // The first and the last page, once, with the places that all of them share.
  expect(calls).toEqual([0, 2, 0, 0]);
});

it('only a change that may lengthen a list has its ends read again', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS },
  });
  const token = await callerToken();
  const told = (document: string) => ask(gateway, token, document);
  const like = await told(
    `{ ${NOBODY} client { accounts(first: 1) { nodes { bankId ownerId clientBankAdapterId accountId } } } }`,
  );
  expect((await told(`{ ${NOBODY} }`)).calls).toBe(0);

  await told(
    'mutation { deleteWebhook(input: { id: "11111111-2222-4333-8444-555555555555" }) { __typename } }',
  );
  expect((await told(`{ ${NOBODY} }`)).calls).toBe(0);

  const [{ bankId, ownerId, clientBankAdapterId, accountId }] = like.data.client.accounts.nodes;
  const input = `{ bankId: "${bankId}", ownerId: "${ownerId}", clientBankAdapterId: "${clientBankAdapterId}", accountId: "${accountId}" }`;
  const opened = await told(`mutation { createPrivateAccount(input: ${input}) { __typename } }`);
  expect(opened.data.createPrivateAccount.__typename).toBe('CreatePrivateAccountSuccess');
  expect((await told(`{ ${NOBODY} }`)).calls).toBeGreaterThan(0);
});

it('an account that was opened for a customer has the ends of the list read again as well', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS },
  });
  const token = await callerToken();
  const { data } = await ask(gateway, token, `{ ${NOBODY} client { customers(first: 1) { nodes { id } } } }`);
  expect((await ask(gateway, token, `{ ${NOBODY} }`)).calls).toBe(0);

  const input = `{ customerId: "${data.client.customers.nodes[0].id}" }`;
  const opened = await ask(
    gateway,
    token,
    `mutation { createCustomerPrivateAccount(input: ${input}) { __typename ... on UserError { message } } }`,
  );
  expect(opened.data.createCustomerPrivateAccount).toEqual({
    __typename: 'CreateCustomerPrivateAccountSuccess',
  });
  expect((await ask(gateway, token, `{ ${NOBODY} }`)).calls).toBeGreaterThan(0);
});

it('what a change may have done whose answer was lost is shown, though the list from before it was kept', async () => {
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    // Sharing forgets by itself what a mutation may have changed.
    config: { service: serviceFor(sandbox), listsMaxAgeMs: MAX_AGE_MS, layersOff: new Set(['sharing']) },
  });
  const token = await callerToken();
  const webhooks = async () => {
    const { data, calls } = await ask(gateway, token, '{ client { webhooks(first: 100) { totalCount } } }');
    return { count: data.client.webhooks.totalCount, calls };
  };
  const { count } = await webhooks();
  expect(await webhooks()).toEqual({ count, calls: 0 });
  await control(sandbox, 'POST', '/sandbox/faults', {
    match: { method: 'POST', path: '/v1/clients/*/webhooks' },
    fault: 'reset-after-commit',
    times: 1,
  });
  const input = '{ type: CEP, url: "http://127.0.0.1:1/hook" }';
  const made = await ask(gateway, token, `mutation { createWebhook(input: ${input}) { __typename } }`);
  expect(made.data.createWebhook.__typename).toBe('OutcomeUnknown');
  expect((await webhooks()).count).toBe(count + 1);
});
