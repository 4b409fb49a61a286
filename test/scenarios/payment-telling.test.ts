import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { control, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const INTERNAL = `mutation ($input: CreateInternalTransactionInput!) { paid: createInternalTransaction(input: $input) { __typename
  ... on CreateInternalTransactionSuccess { transaction { payment { id } } } ... on OutcomeUnknown { payment { id } } } }`;

it('each payment leaves one line in the log and is counted by how it ended, and neither says whose it is', async () => {
  await using gateway = await startGateway();
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  const world: any = await control(gateway.sandbox, 'GET', '/sandbox');
  const destination = world.instruments.find(
    ({ role, status }: { role: string; status: string }) => role === 'internal' && status === 'ACTIVE',
  );
  const pay = async (idempotencyKey: string, amount: string) => {
    const input = {
      idempotencyKey,
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: destination.id,
      amount,
      description: 'rent of Alma',
      externalReference: '7654321',
    };
    const { data } = await gateway.query(INTERNAL, { input });
    return data.paid;
  };
  const lines = () =>
    gateway.log.map((line) => JSON.parse(line)).filter(({ message }) => message === 'payment');
  const metric = async (name: string) => {
    const text = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (.*)$`, 'm').exec(text)?.[1]);
  };
  const counted = (outcome: string) =>
    metric(`pasarela_payments_total{operation="createInternalTransaction",outcome="${outcome}"}`);

  const key = randomUUID();
  const done = await pay(key, '12.34');
  await pay(key, '12.34');
  await pay(randomUUID(), '99999999.00');
  expect(await metric('pasarela_payments_oldest_unknown_seconds')).toBe(0);
  await control(gateway.sandbox, 'POST', '/sandbox/faults', {
    match: { method: 'POST' },
    fault: 'reset-after-commit',
    times: 1,
  });
  const unknown = await pay(randomUUID(), '56.78');
  await until(() => lines().length === 4);

  const told = {
    level: 'info',
    mutation: 'createInternalTransaction',
    clientId: gateway.sandbox.clientId,
    requestId: expect.stringMatching(/./),
    milliseconds: expect.any(Number),
    sends: 1,
  };
  const id = expect.stringMatching(/^[\w-]{43}$/);
  expect(lines()).toEqual([
    { ...told, message: 'payment', paymentId: done.transaction.payment.id, outcome: 'done' },
    { ...told, message: 'payment', paymentId: done.transaction.payment.id, outcome: 'replayed', sends: 0 },
    { ...told, message: 'payment', paymentId: id, outcome: 'refused' },
    {
      ...told,
      message: 'payment',
      paymentId: unknown.payment.id,
      outcome: 'unknown',
      reason: 'NO_ANSWER',
    },
  ]);
  for (const outcome of ['done', 'replayed', 'refused', 'unknown']) expect(await counted(outcome)).toBe(1);
  expect(await counted('conflict')).toBe(0);
  expect(await metric('pasarela_payments_in_flight')).toBe(0);
  expect(await metric('pasarela_payments_oldest_unknown_seconds')).toBeGreaterThan(0);
  for (const secret of [key, 'Alma', '12.34', '7654321', destination.id]) {
    expect(lines().some((line) => JSON.stringify(line).includes(secret))).toBe(false);
  }
});

const REFUND = `mutation ($input: RefundTransactionInput!) { refundTransaction(input: $input) { __typename } }`;

it('the line of a payment that was not sent says why, by the code that its caller was told', async () => {
  await using gateway = await startGateway();
  const { sandbox } = gateway;
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  const address = { clabe: accounts[0].clabe, amount: '50.00' };
  const { transaction } = await control(sandbox, 'POST', '/sandbox/spei-credits', address);
  const refund = (transactionId: string) =>
    gateway.query(REFUND, {
      input: { idempotencyKey: randomUUID(), transactionId, as: { reason: 'No' } },
    });
  const lines = () =>
    gateway.log.map((line) => JSON.parse(line)).filter(({ message }) => message === 'payment');
  await refund(randomUUID());
  await control(sandbox, 'POST', '/sandbox/faults', {
    match: { method: 'POST', path: '/v1/' },
    fault: {
      status: 403,
      body: {
        code: 9,
        message: 'API Error',
        details: [{ reason: 'FORBIDDEN', domain: 'CORE', metadata: {} }],
      },
    },
    times: 1,
  });
  await refund(transaction.id);
  for (const [status, code] of [
    [400, 'BAD_USER_INPUT'],
    [410, 'UPSTREAM_INVALID'],
  ] as const) {
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'GET', path: '/v1/clients/*/transactions/*' },
      fault: { status },
      times: 1,
    });
    const { errors } = await refund(transaction.id);
    expect(errors).toMatchObject([{ extensions: { code } }]);
  }
  await refund(transaction.id);
  await refund(transaction.id);
  await until(() => lines().length === 6);
  expect(lines().map(({ outcome, code }) => [outcome, code])).toEqual([
    ['not_sent', 'NOT_FOUND'],
    ['not_sent', 'FORBIDDEN'],
    ['not_sent', 'BAD_USER_INPUT'],
    ['not_sent', 'UPSTREAM_INVALID'],
    ['done', undefined],
    ['not_sent', 'REFUND_NOT_ALLOWED'],
  ]);
});

it('a payment that is not its caller’s to make counts as not sent, and the line has the code', async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  await using gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  const world: any = await control(sandbox, 'GET', '/sandbox');
  const [customer_id, other] = world.customerIds;
  const authorization = `Bearer ${await callerToken({ customer_id })}`;
  const ownedBy = (owner: string) =>
    world.instruments.find(
      ({ role, status, ownerId }: { role: string; status: string; ownerId: string }) =>
        role === 'internal' && status === 'ACTIVE' && ownerId === owner,
    ).id;
  const pay = async (sourceInstrumentId: string, destinationInstrumentId: string) => {
    const input = {
      idempotencyKey: randomUUID(),
      sourceInstrumentId,
      destinationInstrumentId,
      amount: '12.34',
      description: 'Renta',
      externalReference: '7',
    };
    const { data } = await gateway.query(CODED, { input }, { authorization });
    return data.paid.code;
  };
  expect(await pay(ownedBy(other), ownedBy(customer_id))).toBe('NOT_FOUND');
  expect(await pay(ownedBy(customer_id), ownedBy(other))).toBe('DESTINATION_NOT_FOUND');
  const lines = () =>
    gateway.log.map((line) => JSON.parse(line)).filter(({ message }) => message === 'payment');
  await until(() => lines().length === 2);
  expect(lines().map(({ outcome, code }) => [outcome, code])).toEqual([
    ['not_sent', 'NOT_FOUND'],
    ['not_sent', 'DESTINATION_NOT_FOUND'],
  ]);
  const metrics = await (await fetch(`${gateway.url}/metrics`)).text();
  const counted = 'pasarela_payments_total{operation="createInternalTransaction",outcome=';
  expect(metrics).toContain(`${counted}"refused"} 0\n`);
  expect(metrics).toContain(`${counted}"not_sent"} 2\n`);
});

const CODED = `mutation ($input: CreateInternalTransactionInput!) { paid: createInternalTransaction(input: $input) {
  ... on UserError { code } } }`;

const PENNY = `mutation ($input: CreatePennyValidationInput!) { createPennyValidation(input: $input) { __typename } }`;

it('an answer to a payment in a form that nobody has documented leaves one line a minute, without its text', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const { sandbox } = gateway;
  const world = await control(sandbox, 'GET', '/sandbox');
  const answeredWith = async (status: number, body: object) => {
    const match = { method: 'POST', path: '/v1/transactions/penny_validation' };
    await control(sandbox, 'POST', '/sandbox/faults', { match, fault: { status, body }, times: 1 });
    const input = {
      idempotencyKey: randomUUID(),
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.clabeInstrumentIds[0],
    };
    const { data } = await gateway.query(PENNY, { input });
    return data.createPennyValidation.__typename;
  };
  const twin = { code: 'DUPLICATE_VALIDATION', holder: 'Alma Ruiz' };
  expect(await answeredWith(409, twin)).toBe('OutcomeUnknown');
  expect(await answeredWith(409, twin)).toBe('OutcomeUnknown');
  expect(await answeredWith(503, twin)).toBe('OutcomeUnknown');
  expect(await answeredWith(201, twin)).toBe('OutcomeUnknown');
  const lines = () =>
    gateway.log
      .filter((line) => line.includes('has no form that the gateway knows'))
      .map((line) => JSON.parse(line));
  await until(() => lines().length === 2);
  const told = {
    level: 'warn',
    mutation: 'createPennyValidation',
    clientId: sandbox.clientId,
    paymentId: expect.stringMatching(/^[\w-]{43}$/),
    contentType: 'application/json',
    bytes: JSON.stringify(twin).length,
    answers: 1,
    message: 'the answer to a payment has no form that the gateway knows; its outcome is unknown',
  };
  expect(lines()).toEqual([
    { ...told, status: 409 },
    { ...told, status: 201 },
  ]);
  for (const word of ['Alma', 'DUPLICATE']) expect(gateway.log.join('\n')).not.toContain(word);
});

const MONEY_OUT = `mutation ($input: CreateMoneyOutInput!) { paid: createMoneyOut(input: $input) { __typename
  ... on OutcomeUnknown { reason safeToRetry } } }`;

it.each(TRANSPORTS)(
  'a service that goes on saying 409 is given up soon, and why is told, over %s',
  async (_name, subscribe) => {
    await using gateway = await startGateway({ webhooks: false });
    const { accessToken } = gateway.sandbox;
    // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
    const world: any = await control(gateway.sandbox, 'GET', '/sandbox');
    const match = { method: 'POST', path: '/v1/transactions/money_out' };
    await control(gateway.sandbox, 'POST', '/sandbox/faults', { match, fault: { status: 409 }, times: 20 });
    const input = {
      idempotencyKey: randomUUID(),
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.cardInstrumentIds[0],
      amount: '12.34',
      description: 'Renta',
      externalReference: '7654321',
    };
    for (const _time of [1, 2]) {
      await using sent = subscribe(gateway.graphql, accessToken, { query: MONEY_OUT, variables: { input } });
      const [result] = await sent.received(1);
      expect(result?.errors).toBeUndefined();
      expect(result?.data.paid).toMatchObject({ reason: 'STILL_PROCESSING', safeToRetry: false });
      const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
      expect(counts['POST /v1/transactions/money_out']).toBe(5);
    }
  },
);
