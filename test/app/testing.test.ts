import { createGateway, type TestGateway } from 'pasarela/testing';
import { expect, it } from 'vitest';
import { createSandbox, type TestSandbox } from '#sandbox';
import { until } from '../helpers/until.ts';

async function ask({ url, token }: TestGateway, query: string, variables: object = {}): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  return response.json();
}

it('a gateway on a sandbox, started in three lines, shows a credit and forgets it when it is closed', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  const gateway = await createGateway({ sandbox });
  await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1250.00', concept: 'Three lines' });
  const query = '{ events(last: 1) { nodes { __typename ... on MoneyInEvent { paymentConcept } } } }';
  expect(await ask(gateway, query)).toMatchObject({
    data: { events: { nodes: [{ __typename: 'MoneyInEvent', paymentConcept: 'Three lines' }] } },
  });
  await gateway.close();
  await expect(fetch(gateway.url)).rejects.toThrow('fetch failed');
  // What comes now is sent to the gateways that run, and to none that was closed.
  await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '20.00', concept: 'Nobody is there' });
  await using next = await createGateway({ sandbox });
  await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '30.00', concept: 'The next one' });
  const { deliveries } = (await (await fetch(`${sandbox.url}/sandbox/deliveries`)).json()) as {
    deliveries: readonly { state: string }[];
  };
  expect(deliveries.map(({ state }) => state)).toEqual(['ANSWERED', 'ANSWERED']);
  expect(await ask(next, '{ client { webhooks { nodes { id } } } }')).toMatchObject({
    data: { client: { webhooks: { nodes: [{}, {}, {}] } } },
  });
  expect((await fetch(`${sandbox.url}/sandbox`)).status).toBe(200);
});

const PAY = `mutation ($input: CreateMoneyOutInput!) {
  createMoneyOut(input: $input) { __typename ... on OutcomeUnknown { safeToRetry } } }`;

const moneyOut = ({
  centralizingInstrumentId,
  clabeInstrumentIds: [destinationInstrumentId],
}: TestSandbox) => ({
  sourceInstrumentId: centralizingInstrumentId,
  destinationInstrumentId,
  amount: '10.00',
  description: 'Pago',
  externalReference: '1',
  idempotencyKey: 'slow-on-purpose',
});

it('closed twice at once it ends once, after the payment that is under way', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  const gateway = await createGateway({ sandbox });
  await sandbox.fail('POST /v1/transactions/money_out', { delayMs: 1_000 });
  const paying = ask(gateway, PAY, { input: moneyOut(sandbox) });
  await until(async () => (await sandbox.requests()).counts['POST /v1/transactions/money_out']);
  const first = gateway.close().then(() => 'closed');
  await gateway.close();
  expect(await Promise.race([first, Promise.resolve('under way')])).toBe('closed');
  expect(await paying).toMatchObject({ data: { createMoneyOut: { __typename: 'CreateMoneyOutSuccess' } } });
});

/** Counts the milliseconds from now on, without those in which this process stands still. */
function runningTime() {
  let passed = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    passed += Math.min(now - last, 500);
    last = now;
  }, 10);
  return { passed: () => passed, [Symbol.dispose]: () => clearInterval(timer) };
}

it('closed while the sandbox hangs it ends in less than a hook of Jest may take', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  const gateway = await createGateway({ sandbox });
  await sandbox.fail('DELETE /v1/clients/{clientId}/webhooks/{id}', { answer: 'hang' });
  using time = runningTime();
  await gateway.close();
  expect(time.passed()).toBeLessThan(4_000);
});

it('leaves no webhook at a sandbox that has refused one of them', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  await sandbox.fail('POST /v1/clients/{clientId}/webhooks', { status: 500, times: 1 });
  await expect(createGateway({ sandbox })).rejects.toThrow('refused the');
  const headers = { authorization: `Bearer ${sandbox.accessToken}` };
  const answer = await fetch(`${sandbox.url}/v1/clients/${sandbox.clientId}/webhooks`, { headers });
  expect(await answer.json()).toMatchObject({ data: [] });
});

it('an option that there is not is refused, as whoever gives it would wait for what it says', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  const misspelt = { sandbox, upstreamTimeout: 1_000 };
  await expect(createGateway(misspelt)).rejects.toThrow('got "upstreamTimeout"');
});

it('a test that is slow on purpose takes as long as it says', async () => {
  await using sandbox = await createSandbox({ seed: 7 });
  const times = { upstreamTimeoutMs: 1_000, operationTimeoutMs: 3_000 };
  await using gateway = await createGateway({ sandbox, ...times });
  using time = runningTime();
  await sandbox.fail('GET /v1/clients/{clientId}/transactions/{transactionId}', { answer: 'hang' });
  const read = `{ transaction(id: "${sandbox.transactions.moneyOutId}") { status } }`;
  expect(await ask(gateway, read)).toMatchObject({ errors: [{ extensions: { code: 'UPSTREAM_TIMEOUT' } }] });
  await sandbox.fail('POST /v1/transactions/money_out', { answer: 'hang' });
  expect(await ask(gateway, PAY, { input: moneyOut(sandbox) })).toMatchObject({
    data: { createMoneyOut: { __typename: 'OutcomeUnknown', safeToRetry: true } },
  });
  // The deadlines of one call and one operation by default are 10 s and 30 s.
  expect(time.passed()).toBeLessThan(9_000);
  await expect(createGateway({ sandbox, upstreamTimeoutMs: 0 })).rejects.toThrow('UPSTREAM_TIMEOUT_MS');
});
