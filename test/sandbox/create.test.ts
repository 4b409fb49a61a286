import { expect, test } from 'vitest';
import { NAMED_FAULTS } from '../../packages/sandbox/src/faults.ts';
import {
  createSandbox,
  type Endpoint,
  type Failure,
  type RestAnswers,
  type RestBodies,
  type TestSandbox,
} from '../../packages/sandbox/src/index.ts';
import { openReceiver } from './harness.ts';

const MONEY_OUT = 'POST /v1/transactions/money_out';
const TRANSFER = 'POST /v1/transactions/internal_transaction';
const BANKS = 'GET /v1/banks';

const ANSWERS = NAMED_FAULTS.filter((name) => name !== 'reset-before' && name !== 'reset-after-commit');

/** The keys of `RestAnswers`, which the compiler holds to be all of them. */
const ANSWERED = {
  'GET /v1/clients/{clientId}/credentials': true,
  'POST /v1/clients/{clientId}/auth/credential-tokens': true,
  'GET /v1/banks': true,
  'GET /v1/clients/{clientId}/accounts': true,
  'POST /v1/clients/{clientId}/private_accounts': true,
  'POST /v1/clients/{clientId}/customers/{customerId}/private_accounts': true,
  'GET /v1/clients/{clientId}/customers': true,
  'GET /v1/clients/{clientId}/instruments': true,
  'GET /v1/clients/{clientId}/instruments/{instrumentId}': true,
  'POST /v1/clients/{clientId}/instruments': true,
  'POST /v1/transactions/money_out': true,
  'POST /v1/transactions/internal_transaction': true,
  'POST /v1/transactions/penny_validation': true,
  'POST /v1/clients/{clientId}/transactions/{transactionId}/refund': true,
  'GET /v1/clients/{clientId}/transactions/{transactionId}': true,
  'GET /v1/clients/{clientId}/webhooks': true,
  'POST /v1/clients/{clientId}/webhooks': true,
  'GET /v1/clients/{clientId}/webhooks/{id}': true,
  'PATCH /v1/clients/{clientId}/webhooks/{id}': true,
  'DELETE /v1/clients/{clientId}/webhooks/{id}': true,
  'POST /v1/webhooks': true,
} satisfies Record<Endpoint, true>;

/** Calls an endpoint as a typed client would. */
async function call<E extends keyof RestBodies>(
  sandbox: TestSandbox,
  endpoint: E,
  body: RestBodies[E],
): Promise<RestAnswers[E]> {
  const [method = '', path = ''] = endpoint.split(' ');
  const response = await fetch(sandbox.url + path.replace('{clientId}', sandbox.clientId), {
    method,
    headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${endpoint} answered ${response.status}`);
  // What each endpoint answers is what the types under test say.
  return (await response.json()) as RestAnswers[E];
}

const pay = (sandbox: TestSandbox, endpoint: typeof MONEY_OUT | typeof TRANSFER, to: string | undefined) =>
  call(sandbox, endpoint, {
    client_id: sandbox.clientId,
    source_instrument_id: sandbox.centralizingInstrumentId,
    destination_instrument_id: to ?? '',
    transaction_request: { external_reference: '1', description: 'Pago', amount: '10.00', currency: 'MXN' },
  });

test('a test has a sandbox in five lines', async () => {
  const sandbox = await createSandbox({ seed: 7 });
  const credit = await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1250.00' });
  await sandbox.advance({ minutes: 5 });
  await sandbox.fail('POST /v1/transactions/money_out', { lose: 'answer' });
  await expect(pay(sandbox, MONEY_OUT, sandbox.clabeInstrumentIds[0])).rejects.toThrow('fetch failed');
  expect(credit.transaction).toMatchObject({ amount: '1250.00', transactionStatus: 'LIQUIDATED' });
  await sandbox.close();
  await expect(fetch(sandbox.url)).rejects.toThrow('fetch failed');
});

test('a sandbox that listens on all addresses answers at its own', async () => {
  await using sandbox = await createSandbox({ host: '0.0.0.0' });
  const banks = await fetch(`${sandbox.url}/v1/banks`, {
    headers: { authorization: `Bearer ${sandbox.accessToken}` },
  });
  expect(banks.status).toBe(200);
});

test('every endpoint of the service has the type of its answer', async () => {
  await using sandbox = await createSandbox();
  expect([...sandbox.endpoints].sort()).toEqual(Object.keys(ANSWERED).sort());
});

test('accounts, the ledger and the requests tell how it stands now', async () => {
  await using sandbox = await createSandbox();
  const [before, other] = [sandbox.accounts[0].availableBalance, sandbox.internalInstrumentIds[1]];
  await pay(sandbox, TRANSFER, other);
  expect(Number(sandbox.accounts[0].availableBalance)).toBe(Number(before) - 10);
  expect((await sandbox.ledger()).movements.at(-1)).toMatchObject({ amount: '10.00', description: 'Pago' });
  expect(await sandbox.requests()).toEqual({ total: 1, counts: { [TRANSFER]: 1 } });
  const { refund } = await sandbox.refund();
  expect(refund.originalTransactionId).toBe(sandbox.transactions.refundableCreditId);
});

test('a fault tells how often it was used, over HTTP too, and heals', async () => {
  await using sandbox = await createSandbox();
  await sandbox.fail(BANKS, { status: 503, times: 1 });
  await sandbox.fail('GET /v1/clients/{clientId}/accounts', { lose: 'request' });
  const get = (path: string) =>
    fetch(sandbox.url + path, { headers: { authorization: `Bearer ${sandbox.accessToken}` } });
  expect((await get('/v1/banks')).status).toBe(503);
  expect((await get('/v1/banks')).status).toBe(200);
  await expect(get(`/v1/clients/${sandbox.clientId}/accounts`)).rejects.toThrow('fetch failed');
  const faults = await sandbox.faults();
  expect(faults).toMatchObject([
    { match: { method: 'GET', path: '/v1/banks' }, times: 1, used: 1, inForce: false },
    { match: { path: '/v1/clients/*/accounts' }, times: null, inForce: true },
  ]);
  // Clients of HTTP repeat a GET whose connection was reset.
  expect(faults[1]?.used).toBeGreaterThan(0);
  expect(await (await fetch(`${sandbox.url}/sandbox/faults`)).json()).toEqual({ faults });
  await sandbox.heal();
  expect(await sandbox.faults()).toEqual([]);
  expect((await get(`/v1/clients/${sandbox.clientId}/accounts`)).status).toBe(200);
});

test('heal ends what was begun over HTTP, too', async () => {
  await using sandbox = await createSandbox();
  const control = (method: string, path: string, body: unknown) =>
    fetch(`${sandbox.url}/sandbox/${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await using receiver = await openReceiver();
  await sandbox.registerWebhook({ type: 'MONEY_IN', url: receiver.url, token: 'a token' });
  await control('POST', 'faults', { fault: 'hang' });
  await control('POST', 'lost-messages', { type: 'MONEY_IN' });
  await control('PATCH', 'webhooks', { down: true });
  expect(await sandbox.faults()).toMatchObject([{ fault: 'hang' }]);
  await sandbox.heal();
  expect(await sandbox.faults()).toEqual([]);
  await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1.00' });
  expect(receiver.received).toHaveLength(1);
});

test.each<[Failure, unknown]>([
  [{ lose: 'request' }, 'reset-before'],
  [{ lose: 'answer' }, 'reset-after-commit'],
  ...ANSWERS.map((answer): [Failure, unknown] => [{ answer }, answer]),
  [{ delayMs: 5 }, { delayMs: 5 }],
  [
    { status: 502, body: 'bad gateway', commit: true },
    { status: 502, body: 'bad gateway', commit: true },
  ],
])('%j is the fault %j, of one account where it names one', async (failure, fault) => {
  await using sandbox = await createSandbox();
  const account = sandbox.accounts[1]?.id ?? '';
  await sandbox.fail(TRANSFER, failure);
  await sandbox.fail(TRANSFER, { ...failure, account, times: 2 });
  const match = { method: 'POST', path: '/v1/transactions/internal_transaction' };
  expect(await sandbox.faults()).toMatchObject([
    { match, fault, times: null },
    { match: { ...match, account }, fault, times: 2 },
  ]);
});

test('lost messages are sent to nobody until it heals, and a delivery can be sent again', async () => {
  await using sandbox = await createSandbox();
  await using receiver = await openReceiver();
  await call(sandbox, 'POST /v1/clients/{clientId}/webhooks', {
    client_id: sandbox.clientId,
    url: receiver.url,
    token: 'a token',
    webhook_type: 'MONEY_IN',
  });
  const credit = () => sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1.00' });
  await sandbox.loseMessages('MONEY_IN');
  expect((await credit()).deliveries).toEqual([]);
  await sandbox.heal();
  const { deliveries } = await credit();
  expect(deliveries).toMatchObject([{ state: 'ANSWERED', webhookType: 'MONEY_IN' }]);
  await sandbox.resend(deliveries[0]?.id ?? '');
  expect(await sandbox.deliveries()).toMatchObject([{ attempts: [{ status: 201 }, { status: 201 }] }]);
  expect(receiver.received).toHaveLength(2);
});

test('a receipt in a state that the service does not document is told by a message, until it ends', async () => {
  await using sandbox = await createSandbox();
  await using receiver = await openReceiver();
  await sandbox.registerWebhook({ type: 'CEP', url: receiver.url, token: 'a token' });
  const { id } = await call(sandbox, 'POST /v1/transactions/penny_validation', {
    client_id: sandbox.clientId,
    source_instrument_id: sandbox.centralizingInstrumentId,
    destination_instrument_id: sandbox.clabeInstrumentIds[0] ?? '',
  });
  const { transaction } = await sandbox.receipt(id, { status: 'REJECTED' });
  expect(transaction.metadata?.dataCep.status).toBe('REJECTED');
  await sandbox.complete(id, 'failed');
  const told = ['PENDING', 'REJECTED', 'FAILED'].map((status) => ({
    body: { payload: { body: { status } } },
  }));
  expect(await sandbox.deliveries()).toMatchObject(told);
  await expect(sandbox.receipt(id, 'never')).rejects.toThrow('nothing_pending');
});

test('a webhook that is registered by the call is one that the service lists, and gets what arrives', async () => {
  await using sandbox = await createSandbox();
  await using receiver = await openReceiver();
  await sandbox.registerWebhook({ type: 'MONEY_IN', url: receiver.url, token: 'a token' });
  const listed = await fetch(`${sandbox.url}/v1/clients/${sandbox.clientId}/webhooks`, {
    headers: { authorization: `Bearer ${sandbox.accessToken}` },
  });
  expect(await listed.json()).toMatchObject({
    data: [{ webhookType: 'MONEY_IN', url: receiver.url, webhookStatus: 'ACTIVE' }],
  });
  await sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1.00' });
  expect(receiver.received).toHaveLength(1);
});

test.each<[string, (sandbox: TestSandbox) => Promise<unknown>, string]>([
  [
    'a webhook that leads elsewhere',
    (sandbox) =>
      sandbox.registerWebhook({ type: 'CEP', url: 'https://elsewhere.example/x', token: 'a token' }),
    'elsewhere.example',
  ],
  // @ts-expect-error no endpoint is called so
  ['an unknown endpoint', (sandbox) => sandbox.fail('GET /v1/bank', { lose: 'answer' }), 'GET /v1/bank'],
  [
    'a time that is no number',
    // @ts-expect-error minutes are a number
    (sandbox) => sandbox.advance({ minutes: 'five' }),
    'advance.minutes',
  ],
  // @ts-expect-error a span has parts
  ['a time that is no span', (sandbox) => sandbox.advance(60), 'expected object'],
  [
    'a time in another unit',
    // @ts-expect-error seconds are the smallest part
    (sandbox) => sandbox.advance({ milliseconds: 500 }),
    'milliseconds',
  ],
  // TypeScript takes both: each is a member of one of the failures.
  [
    'an answer that is lost and late',
    (sandbox) => sandbox.fail(BANKS, { lose: 'answer', delayMs: 500 }),
    'fail.fault',
  ],
  [
    'an answer that is garbage with a status',
    (sandbox) => sandbox.fail(BANKS, { answer: 'garbage', status: 502 }),
    'fail.fault',
  ],
  ['a CLABE of nobody', (sandbox) => sandbox.credit({ clabe: '0', amount: '1.00' }), 'clabe_not_found'],
  [
    'an amount without decimals',
    (sandbox) => sandbox.credit({ clabe: sandbox.accounts[0].clabe, amount: '1' }),
    'two decimals',
  ],
  [
    'a thing that is not pending',
    (sandbox) => sandbox.complete(sandbox.transactions.moneyOutId),
    'nothing_pending',
  ],
])('%s is refused in words', async (_name, act, words) => {
  await using sandbox = await createSandbox();
  await expect(act(sandbox)).rejects.toThrow(words);
});

test.each([{ lose: 'Request' }, { lose: undefined }, { answer: 'reset-before' }, { answer: { delayMs: 5 } }])(
  'the failure %j is refused, and befalls no request, as JavaScript lets it pass',
  async (failure) => {
    await using sandbox = await createSandbox();
    await expect(sandbox.fail(MONEY_OUT, failure as never)).rejects.toThrow('fail.fault');
    expect(await sandbox.faults()).toEqual([]);
  },
);

test('the clock stands still until it is stepped, or runs where that is wanted', async () => {
  await using stepped = await createSandbox();
  await using running = await createSandbox({ clock: { speed: 1_000 } });
  const { now } = await stepped.clock();
  expect((await stepped.clock()).now).toBe(now);
  expect(Date.parse((await stepped.advance({ hours: 1, minutes: 2, seconds: 3 })).now)).toBe(
    Date.parse(now) + 3_723_000,
  );
  const begin = (await running.clock()).now;
  await expect.poll(async () => (await running.clock()).now).not.toBe(begin);
});

test.each([
  ['seconds until a settlement', { choices: { moneyOutSeconds: undefined } }],
  ['a seed', { seed: undefined, port: undefined, clock: undefined, choices: undefined }],
])('%s given as undefined is the default, as JavaScript lets it pass', async (_name, options) => {
  const start: (options: never) => Promise<TestSandbox> = createSandbox;
  await using sandbox = await start(options as never);
  await using ordinary = await createSandbox();
  expect(sandbox.clientId).toBe(ordinary.clientId);
  const { id } = await pay(sandbox, MONEY_OUT, sandbox.clabeInstrumentIds[0]);
  await sandbox.advance({ seconds: 30 });
  const read = await fetch(`${sandbox.url}/v1/clients/${sandbox.clientId}/transactions/${id}`, {
    headers: { authorization: `Bearer ${sandbox.accessToken}` },
  });
  expect(await read.json()).toMatchObject({ transactionStatus: 'LIQUIDATED' });
});

test.each([
  ['an option that there is not', { speed: 5 }, 'createSandbox: Unrecognized key: "speed"'],
  ['a choice that there is not', { choices: { leaveOut: true } }, 'createSandbox.choices'],
  ['a seed that is a text', { seed: 'x' }, 'createSandbox.seed'],
  ['a clock that there is not', { clock: 'running' }, 'createSandbox.clock'],
])('%s is refused at the start, as JavaScript lets it pass', async (_name, options, words) => {
  const start: (options: never) => Promise<TestSandbox> = createSandbox;
  await expect(start(options as never)).rejects.toThrow(words);
});
