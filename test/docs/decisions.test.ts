import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildSchema, type GraphQLUnionType, getNamedType, isEnumType } from 'graphql';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { Secret } from '../../src/common/secret.ts';
import { MONEY_MUTATIONS } from '../../src/money/intent.ts';
import { outcomeOf } from '../../src/money/outcome.ts';
import { REFUND_RULES, TRANSFER_RULES } from '../../src/resolvers/payments/service-refusals.ts';
import { refusalError } from '../../src/resolvers/service-refusal.ts';
import { isDocumentedError } from '../../src/upstream/call/documented-error.ts';
import { pasarela } from '../cli/run.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { startRedis } from '../helpers/redis.ts';
import { freePort } from '../helpers/restartable.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';
import { readPage } from './pages.ts';

/** What the first column names: the same in both languages. */
function told(page: string): readonly string[] {
  const [, table = ''] =
    /\n(\| --- \| --- \| --- \|\n(?:\|.*\n)+)/.exec(page.slice(page.search(/^\| (told|recibe) \|/m))) ?? [];
  const rows = table.trim().split('\n').slice(1);
  return rows.map((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, code]) => code).join(' '),
  );
}

/** The address of who decides on credits: it takes all but those of 13.00. */
const decider = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk: Buffer) => {
    body += chunk.toString();
  });
  request.on('end', () => {
    const isTaken = !body.includes('"13.00"');
    response.writeHead(isTaken ? 200 : 422, { 'content-type': 'application/json' });
    response.end(isTaken ? '{}' : '{"refundReason":"No"}');
  });
});
// Where this process stands still for long, an idle connection would be closed as it is used again.
decider.keepAliveTimeout = 0;

let gateway: RunningGateway;
/** For payments that are repeated until the time of their operation is over: here that is sooner. */
let hasty: RunningGateway;
let folder: string;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;
beforeAll(async () => {
  await new Promise<void>((resolve) => decider.listen(0, '127.0.0.1', resolve));
  const address = decider.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  folder = await mkdtemp(join(tmpdir(), 'pasarela-decisions-'));
  gateway = await startGateway({
    webhooks: ['MONEY_IN', 'CEP', 'STATUS_UPDATE'],
    config: { ...PATIENT, dataDir: folder, moneyInDecisionUrl: `http://127.0.0.1:${port}/` },
  });
  hasty = await beside({ operationTimeoutMs: 8_000 });
  world = await control(gateway.sandbox, 'GET', '/sandbox');
});
afterAll(async () => {
  await hasty.stop();
  await gateway.stop();
  decider.close();
  await rm(folder, { recursive: true });
});

/** Starts another gateway on the same sandbox, with a record of its own. */
const beside = (config: NonNullable<Parameters<typeof startGateway>[0]>['config']) =>
  startGateway({ sandbox: gateway.sandbox, webhooks: false, config: { ...PATIENT, ...config } });

const ANSWER = '__typename ... on OutcomeUnknown { reason safeToRetry retryUntil } ... on UserError { code }';
const DOCUMENTS = {
  MoneyOut: `mutation ($input: CreateMoneyOutInput!) { paid: createMoneyOut(input: $input) { ${ANSWER} ... on CreateMoneyOutSuccess { replayed transaction { id status } } } }`,
  Internal: `mutation ($input: CreateInternalTransactionInput!) { paid: createInternalTransaction(input: $input) { ${ANSWER} ... on CreateInternalTransactionSuccess { replayed transaction { id status rawStatus } } } }`,
  Penny: `mutation ($input: CreatePennyValidationInput!) { paid: createPennyValidation(input: $input) { ${ANSWER} ... on CreatePennyValidationSuccess { transaction { id cep { status beneficiaryName } } } } }`,
  Refund: `mutation ($input: RefundTransactionInput!) { paid: refundTransaction(input: $input) { ${ANSWER} ... on RefundTransactionSuccess { refund { id } original { status } } } }`,
};
const pay = async (what: keyof typeof DOCUMENTS, input: object, by = gateway) => {
  const { data, errors } = await by.query(DOCUMENTS[what], { input });
  return data?.paid ?? { topLevel: errors?.[0]?.extensions['code'] };
};
/** What the record tells of a key. */
const recorded = async (key: string, by = gateway) => {
  const document = `query ($key: String!) { payment(idempotencyKey: $key) {
    state code message safeToRetry transaction { id status } } }`;
  return (await by.query(document, { key })).data.payment;
};
const out = (more: object = {}) => ({
  idempotencyKey: randomUUID(),
  sourceInstrumentId: world.centralizingInstrumentId,
  destinationInstrumentId: world.cardInstrumentIds[0],
  amount: '12.50',
  description: 'Pago',
  externalReference: '7',
  ...more,
});
const internal = (more: object = {}) =>
  out({ destinationInstrumentId: world.internalInstrumentIds[1], ...more });
/** To an instrument of another owner, whose credit an event tells of. */
const toAnother = () => {
  const { id } = world.instruments.find(
    ({ role, status, ownerId }: { role: string; status: string; ownerId: string }) =>
      role === 'internal' && status === 'ACTIVE' && ownerId !== gateway.sandbox.clientId,
  );
  return out({ destinationInstrumentId: id });
};
const penny = (destinationInstrumentId: string) => ({
  idempotencyKey: randomUUID(),
  sourceInstrumentId: world.centralizingInstrumentId,
  destinationInstrumentId,
});
const credit = async (amount: string) =>
  (
    await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
      clabe: world.accounts[0].clabe,
      amount,
    })
  ).transaction.id;
const pass = (advanceSeconds: number) =>
  control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds });
const movements = async (): Promise<number> =>
  (await control(gateway.sandbox, 'GET', '/sandbox/ledger')).movements.length;
const failing = async <T>(fault: unknown, work: () => Promise<T>): Promise<T> => {
  const rule = { match: { method: 'POST', path: '/v1/transactions' }, fault };
  await control(gateway.sandbox, 'POST', '/sandbox/faults', rule);
  try {
    return await work();
  } finally {
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
  }
};
const [, subscribe] = TRANSPORTS[0];
/** The last thing that a subscription tells. */
const lastOf = async (query: string, variables: Record<string, unknown>, count: number) => {
  await using subscriber = subscribe(gateway.graphql, gateway.sandbox.accessToken, { query, variables });
  await subscriber.received(count);
  return subscriber.results.at(-1)?.data;
};
const statusOf = async (id: string, by = gateway) => {
  const query = `subscription ($id: ID!) { transactionStatus(transactionId: $id) {
    transaction { status rawStatus } } }`;
  await using stream = subscribe(by.graphql, by.sandbox.accessToken, { query, variables: { id } });
  const [told] = await stream.received(1);
  return told?.data.transactionStatus.transaction;
};
/** The first credit that comes of something. */
const creditOf = async (happening: () => Promise<unknown>) => {
  const { data } = await gateway.query('{ eventCursor }');
  await happening();
  const query =
    'subscription ($after: Cursor) { moneyIn(after: $after) { decision subCategory rawSubCategory transactionId } }';
  return (await lastOf(query, { after: data.eventCursor }, 1))?.moneyIn;
};
const decisionOn = async (amount: string) => (await creditOf(() => credit(amount))).decision;
const receiptOf = async (destination: string, seconds: number) => {
  const { transaction } = await pay('Penny', penny(destination));
  await pass(seconds);
  const query =
    'subscription ($id: ID!) { cepStatus(transactionId: $id) { cep { status beneficiaryName } } }';
  return (await lastOf(query, { id: transaction.id }, 1))?.cepStatus.cep;
};

/** An error as the service documents them. */
const apiError = (reason: string) => ({
  code: 9,
  message: 'API Error',
  details: [{ reason, domain: 'CORE', metadata: {} }],
});
/** A payment while nobody answers, and once the service is back. */
async function isAway(): Promise<void> {
  const port = await freePort();
  const first = await startSandbox({ port, speed: 0, seed: 1 });
  await using asking = await startGateway({ sandbox: first, webhooks: false, config: PATIENT });
  await asking.query('{ client { id } }');
  await first.stop();
  const input = out();
  expect(await pay('MoneyOut', input, asking)).toEqual({ topLevel: 'UPSTREAM_UNAVAILABLE' });
  const back = await startSandbox({ port, speed: 0, seed: 1 });
  try {
    const paid = await until(async () => {
      const told = await pay('MoneyOut', input, asking);
      return told.topLevel === undefined && told;
    });
    expect(paid).toMatchObject({ replayed: false });
  } finally {
    await back.stop();
  }
}

/** By what a row names: what makes an app be told so, and what is true then. */
const ROWS: Readonly<Record<string, () => Promise<void>>> = {
  'CreateMoneyOutSuccess INITIALIZED': async () => {
    expect(await pay('MoneyOut', out())).toMatchObject({ transaction: { status: 'INITIALIZED' } });
  },
  'CreateInternalTransactionSuccess LIQUIDATED': async () => {
    expect(await pay('Internal', internal())).toMatchObject({ transaction: { status: 'LIQUIDATED' } });
  },
  CreateInternalTransactionSuccess: async () => {
    const { transaction } = await pay('Internal', internal());
    const read = `/v1/clients/${gateway.sandbox.clientId}/transactions/${transaction.id}`;
    const told = await control(gateway.sandbox, 'GET', read);
    for (const [transactionStatus, status] of [
      ['INITIALIZED', 'INITIALIZED'],
      ['EN_PROCESO', 'OTHER'],
    ]) {
      const body = { ...told, id: randomUUID(), transactionStatus };
      const paid = await failing({ status: 200, body }, () => pay('Internal', internal()));
      const shown = { id: body.id, status, rawStatus: transactionStatus };
      expect(paid).toEqual({
        __typename: 'CreateInternalTransactionSuccess',
        replayed: false,
        transaction: shown,
      });
    }
  },
  CreatePennyValidationSuccess: async () => {
    const { transaction } = await pay('Penny', penny(world.clabeInstrumentIds[0]));
    expect(transaction.cep).toMatchObject({ status: 'PENDING', beneficiaryName: null });
  },
  RefundTransactionSuccess: async () => {
    const input = {
      idempotencyKey: randomUUID(),
      transactionId: await credit('50.00'),
      as: { reason: 'No' },
    };
    expect(await pay('Refund', input)).toMatchObject({ original: { status: 'REFUNDED' } });
    expect(await pay('Refund', { ...input, idempotencyKey: randomUUID() })).toMatchObject({
      code: 'REFUND_NOT_ALLOWED',
    });
  },
  'replayed: true': async () => {
    const input = out();
    const first = await pay('MoneyOut', input);
    const before = await movements();
    expect(await pay('MoneyOut', input)).toEqual({ ...first, replayed: true });
    expect(await movements()).toBe(before);
  },
  'OutcomeUnknown safeToRetry: true': async () => {
    const input = out();
    const before = await movements();
    const unknown = await failing({ status: 503, commit: true }, () => pay('MoneyOut', input, hasty));
    expect(unknown).toMatchObject({
      __typename: 'OutcomeUnknown',
      safeToRetry: true,
      retryUntil: expect.any(String),
    });
    // Calls may be suspended for a moment, as many have failed.
    await until(async () => (await pay('MoneyOut', input, hasty)).__typename === 'CreateMoneyOutSuccess');
    expect(await movements()).toBe(before + 1);
  },
  'OutcomeUnknown safeToRetry: false': async () => {
    const input = internal();
    const before = await movements();
    const unknown = await failing({ status: 503, commit: true }, () => pay('Internal', input));
    expect(unknown).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: false });
    expect(await pay('Internal', input)).toMatchObject({ __typename: 'OutcomeUnknown' });
    expect(await movements()).toBe(before + 1);
  },
  'OutcomeUnknown ANSWER_DOES_NOT_MATCH': async () => {
    const { transaction } = await pay('Internal', internal());
    const before = await movements();
    const { clientId } = gateway.sandbox;
    const read = `/v1/clients/${clientId}/transactions/${transaction.id}`;
    const body = await control(gateway.sandbox, 'GET', read);
    const input = internal();
    const told = { __typename: 'OutcomeUnknown', reason: 'ANSWER_DOES_NOT_MATCH', safeToRetry: false };
    expect(await failing({ status: 201, body }, () => pay('Internal', input))).toMatchObject(told);
    expect(await pay('Internal', input)).toMatchObject(told);
    expect(await movements()).toBe(before);
  },
  'PreconditionError ValidationError NotFoundError RefusedError': async () => {
    const before = await movements();
    const input = out({ amount: '99999999.00' });
    for (const refused of [await pay('MoneyOut', input), await pay('MoneyOut', input)]) {
      expect(refused).toMatchObject({ __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS' });
    }
    expect(await recorded(input.idempotencyKey)).toMatchObject({ state: 'REFUSED' });
    const unsent = out({ amount: '0.00' });
    expect(await pay('MoneyOut', unsent)).toMatchObject({ __typename: 'ValidationError' });
    expect(await recorded(unsent.idempotencyKey)).toBeNull();
    const nobody = internal({ destinationInstrumentId: randomUUID() });
    expect(await pay('Internal', nobody)).toMatchObject({ __typename: 'NotFoundError' });
    const body = apiError('A_REASON_THAT_IS_NOT_DOCUMENTED');
    const refused = await failing({ status: 400, body }, () => pay('MoneyOut', out()));
    expect(refused).toMatchObject({ __typename: 'RefusedError' });
    expect(await movements()).toBe(before);
  },
  'ConflictError EXTERNAL_TRANSFER_NOT_ALLOWED REFUSED': async () => {
    const before = await movements();
    const external = internal({ destinationInstrumentId: world.cardInstrumentIds[0] });
    const told = { __typename: 'ConflictError', code: 'EXTERNAL_TRANSFER_NOT_ALLOWED' };
    for (const _time of [1, 2]) expect(await pay('Internal', external)).toMatchObject(told);
    const fault = { status: 409, body: apiError('A_REASON_THAT_IS_NOT_DOCUMENTED') };
    const refused = await failing(fault, () => pay('Internal', internal()));
    expect(refused).toMatchObject({ __typename: 'ConflictError', code: 'REFUSED' });
    expect(await movements()).toBe(before);
    const paid = await pay('MoneyOut', { ...external, idempotencyKey: randomUUID() });
    expect(paid).toMatchObject({ __typename: 'CreateMoneyOutSuccess' });
  },
  'ValidationError INVALID_INPUT': async () => {
    const idempotencyKey = randomUUID();
    const input = { idempotencyKey, transactionId: await credit('52.00') };
    const of = (amount: string) => ({ ...input, as: { amount: { amount, description: 'Parte' } } });
    const before = await movements();
    for (const _time of [1, 2])
      expect(await pay('Refund', of('20.00'))).toMatchObject({
        __typename: 'ValidationError',
        code: 'INVALID_INPUT',
      });
    expect([await movements(), await recorded(idempotencyKey)]).toEqual([before, null]);
    expect(await pay('Refund', of('52.00'))).toMatchObject({ original: { status: 'REFUNDED' } });
  },
  'PreconditionError REFUND_NOT_ALLOWED': async () => {
    const input = { transactionId: await credit('51.00'), as: { reason: 'No' } };
    await pay('Refund', { ...input, idempotencyKey: randomUUID() });
    const before = await movements();
    expect(await pay('Refund', { ...input, idempotencyKey: randomUUID() })).toMatchObject({
      __typename: 'PreconditionError',
      code: 'REFUND_NOT_ALLOWED',
    });
    expect(await movements()).toBe(before);
    const { data } = await gateway.query('{ payments(first: 1, operations: [REFUND]) { nodes { state } } }');
    expect(data.payments.nodes).toEqual([{ state: 'DONE' }]);
  },
  'ConflictError IDEMPOTENCY_KEY_REUSED': async () => {
    const input = out();
    await pay('MoneyOut', input);
    const before = await movements();
    expect(await pay('MoneyOut', { ...input, amount: '13.50' })).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
    expect(await movements()).toBe(before);
  },
  'ConflictError IDEMPOTENCY_IN_PROGRESS': async () => {
    await using cleanup = new AsyncDisposableStack();
    const redis = await startRedis();
    cleanup.defer(() => redis.stop());
    const started = async (operationTimeoutMs: number) =>
      cleanup.use(await beside({ redisUrl: new Secret(redis.url), operationTimeoutMs }));
    // The first payment lasts until the second was refused.
    const [patient, hurried] = [await started(15_000), await started(2_000)];
    await hurried.query('{ client { id } }');
    // A gateway that stands still for as long as a lease loses its payment to the other: then another payment is tried.
    await until(async () => {
      const input = internal();
      const before = await movements();
      const first = failing('hang', () => pay('Internal', input, patient));
      await until(async () => (await recorded(input.idempotencyKey, patient))?.state === 'IN_FLIGHT');
      const { code } = await pay('Internal', input, hurried);
      await first;
      expect(await movements()).toBe(before + 1);
      return code === 'IDEMPOTENCY_IN_PROGRESS';
    });
  },
  'path ["createMoneyOut", "transaction", "bank"] FORBIDDEN': async () => {
    await using serving = await beside({ service: serviceFor(gateway.sandbox) });
    const paying = { authorization: `Bearer ${await callerToken({ scope: 'money:move:out' })}` };
    const document = `mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) {
      __typename ... on CreateMoneyOutSuccess { transaction { id bank { name } } } } }`;
    const before = await movements();
    const { data, errors } = await serving.query(document, { input: out() }, paying);
    expect(errors).toMatchObject([
      { path: ['createMoneyOut', 'transaction', 'bank'], extensions: { code: 'FORBIDDEN' } },
    ]);
    expect(data.createMoneyOut).toEqual({
      __typename: 'CreateMoneyOutSuccess',
      transaction: { id: expect.any(String), bank: null },
    });
    expect(await movements()).toBe(before + 1);
  },
  'UPSTREAM_UNAVAILABLE PAYMENTS_STOPPED path': async () => {
    const before = await movements();
    const input = out();
    const stopped = { topLevel: 'PAYMENTS_STOPPED' };
    expect(await pasarela(['payments', 'stop'], { DATA_DIR: folder })).toMatchObject({ code: 0 });
    expect(await pay('MoneyOut', input)).toEqual(stopped);
    expect(await pasarela(['payments', 'resume'], { DATA_DIR: folder })).toMatchObject({ code: 0 });
    const refused = { status: 429, body: apiError('BUSY') };
    const busy = { topLevel: 'UPSTREAM_RATE_LIMITED' };
    expect(await failing(refused, () => pay('MoneyOut', input))).toEqual(busy);
    expect(await movements()).toBe(before);
    expect(await pay('MoneyOut', input)).toMatchObject({ replayed: false });
    expect(await movements()).toBe(before + 1);
    await isAway();
  },
  nothing: async () => {
    const input = out();
    expect(await recorded(input.idempotencyKey)).toBeNull();
    await pay('MoneyOut', input);
    expect(await recorded(input.idempotencyKey)).toMatchObject({ state: 'DONE' });
    expect(await pay('MoneyOut', input)).toMatchObject({ replayed: true });
  },
  'payment IN_FLIGHT': async () => {
    // It is seen in flight, also where this process stands still meanwhile.
    await using asking = await beside({ operationTimeoutMs: 15_000 });
    const input = out();
    const paying = failing('hang', () => pay('MoneyOut', input, asking));
    await until(async () => (await recorded(input.idempotencyKey, asking))?.state === 'IN_FLIGHT');
    expect(await paying).toMatchObject({ __typename: 'OutcomeUnknown' });
  },
  'payment DONE': async () => {
    const input = out();
    const { transaction } = await pay('MoneyOut', input);
    await pass(60);
    expect(await recorded(input.idempotencyKey)).toMatchObject({
      state: 'DONE',
      transaction: { id: transaction.id, status: 'LIQUIDATED' },
    });
  },
  'payment REFUSED': async () => {
    const before = await movements();
    const input = out({ amount: '99999999.00' });
    await pay('MoneyOut', input);
    expect(await recorded(input.idempotencyKey)).toMatchObject({
      state: 'REFUSED',
      code: 'INSUFFICIENT_FUNDS',
      message: expect.stringContaining('funds'),
    });
    expect(await movements()).toBe(before);
  },
  'payment UNKNOWN': async () => {
    const [moneyOut, transfer] = [out(), internal()];
    const lost = { status: 503, commit: true };
    const before = await movements();
    await failing(lost, async () => {
      await pay('MoneyOut', moneyOut, hasty);
      await pay('Internal', transfer, hasty);
      for (const [{ idempotencyKey }, safeToRetry] of [
        [moneyOut, true],
        [transfer, false],
      ] as const)
        expect(await recorded(idempotencyKey, hasty)).toMatchObject({ state: 'UNKNOWN', safeToRetry });
    });
    expect(await movements()).toBe(before + 2);
  },
  'transactionStatus LIQUIDATED': async () => {
    const { transaction } = await pay('MoneyOut', out());
    await pass(60);
    expect(await statusOf(transaction.id)).toMatchObject({ status: 'LIQUIDATED' });
    const back = (await pay('MoneyOut', out({ description: 'returned transfer' }))).transaction.id;
    await pass(40);
    expect(await statusOf(back)).toMatchObject({ status: 'LIQUIDATED' });
    await pass(600);
    expect(await statusOf(back)).toMatchObject({ status: 'REFUNDED' });
  },
  'transactionStatus REFUNDED': async () => {
    const balance = async () => {
      const document =
        '{ client { accounts(first: 100) { nodes { instrumentId availableBalance { amount } } } } }';
      const { nodes } = (await gateway.query(document)).data.client.accounts;
      const paying = ({ instrumentId }: { instrumentId: string }) =>
        instrumentId === world.centralizingInstrumentId;
      return nodes.find(paying).availableBalance.amount;
    };
    const before = await balance();
    const { transaction } = await pay('MoneyOut', out({ description: 'failed transfer' }));
    expect(await balance()).not.toBe(before);
    await pass(600);
    expect(await statusOf(transaction.id)).toMatchObject({ status: 'REFUNDED' });
    expect(await balance()).toBe(before);
  },
  'transactionStatus OTHER': async () => {
    const sandboxOptions = { choices: { valuesBeyondTheSpec: true } };
    await using other = await startGateway({ sandboxOptions, webhooks: false, config: PATIENT });
    const { transaction } = await pay('MoneyOut', out(), other);
    await control(other.sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 20 });
    expect(await statusOf(transaction.id, other)).toEqual({ status: 'OTHER', rawStatus: 'IN_PROCESS' });
  },
  'moneyIn decision: ACCEPTED': async () => {
    expect(await decisionOn('12.00')).toBe('ACCEPTED');
  },
  'moneyIn decision: REJECTED': async () => {
    expect(await decisionOn('13.00')).toBe('REJECTED');
  },
  'moneyIn decision: INFORMED subCategory: INT_CREDIT': async () => {
    const told = await creditOf(() => pay('Internal', toAnother()));
    expect(told).toMatchObject({ decision: 'INFORMED', subCategory: 'INT_CREDIT' });
    const refund = { idempotencyKey: randomUUID(), transactionId: told.transactionId, as: { reason: 'No' } };
    expect(await pay('Refund', refund)).toMatchObject({ code: 'REFUND_NOT_ALLOWED' });
  },
  'moneyIn decision: INFORMED subCategory': async () => {
    const address = gateway.ingress.url(gateway.sandbox.clientId, 'MONEY_IN') ?? '';
    // The second is one that nobody has heard of, and the decider would send it back.
    for (const sub_category of [undefined, 'SPEI_CREDIT_2']) {
      const body = JSON.stringify(speiCredit({ body: { amount: '13.00', sub_category } }));
      const told = await creditOf(() => fetch(address, { method: 'POST', body }));
      expect(told).toMatchObject({ decision: 'INFORMED', subCategory: 'OTHER' });
      expect(told.rawSubCategory).toBe(sub_category ?? null);
    }
  },
  'cepStatus COMPLETED': async () => {
    const other = await receiptOf(world.otherHolderInstrumentId, 600);
    expect(other).toMatchObject({ status: 'COMPLETED', beneficiaryName: expect.any(String) });
    const registered = world.instruments.find(
      ({ id }: { id: string }) => id === world.otherHolderInstrumentId,
    );
    expect(other.beneficiaryName).not.toBe(registered.holderName);
  },
  'cepStatus PENDING DELAYED': async () => {
    expect(await receiptOf(world.lateReceiptInstrumentId, 0)).toMatchObject({ status: 'PENDING' });
    expect(await receiptOf(world.lateReceiptInstrumentId, 500)).toMatchObject({ status: 'DELAYED' });
  },
  'cepStatus OTHER': async () => {
    const { transaction } = await pay('Penny', penny(world.clabeInstrumentIds[0]));
    const { clientId, accessToken, url } = gateway.sandbox;
    const path = `/v1/clients/${clientId}/transactions/${transaction.id}`;
    const headers = { authorization: `Bearer ${accessToken}` };
    const read = await (await fetch(`${url}${path}`, { headers })).json();
    // A state that the service does not document.
    const body = structuredClone(read);
    (body.data ?? body).metadata.dataCep.status = 'IN_REVIEW';
    const rule = { match: { method: 'GET', path }, fault: { status: 200, body } };
    await control(gateway.sandbox, 'POST', '/sandbox/faults', rule);
    try {
      const query = 'query ($id: ID!) { transaction(id: $id) { cep { status rawStatus final } } }';
      const { data } = await gateway.query(query, { id: transaction.id });
      expect(data.transaction.cep).toEqual({ status: 'OTHER', rawStatus: 'IN_REVIEW', final: false });
    } finally {
      await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    }
  },
  'cepStatus FAILED': async () => {
    expect(await receiptOf(world.noReceiptInstrumentId, 4 * 3_600)).toMatchObject({ status: 'FAILED' });
  },
  StatusUpdateEvent: async () => {
    const { data } = await gateway.query('{ eventCursor }');
    const { transaction } = await pay('MoneyOut', out());
    await pass(60);
    const query = `subscription ($after: Cursor) { events(after: $after, types: [STATUS_UPDATE]) {
      ... on StatusUpdateEvent { payload } } }`;
    const told = await lastOf(query, { after: data.eventCursor }, 1);
    expect(JSON.stringify(told?.events.payload)).toContain(transaction.id);
    expect(await statusOf(transaction.id)).toMatchObject({ status: 'LIQUIDATED' });
  },
  EVENTS_GAP: async () => {
    await using forgetful = await startGateway({ config: { ...PATIENT, eventsRetention: 1 } });
    const { sandbox, graphql } = forgetful;
    const arrive = (amount: string) =>
      control(sandbox, 'POST', '/sandbox/spei-credits', { clabe: world.accounts[0].clabe, amount });
    await arrive('1.00');
    const { data } = await forgetful.query('{ eventCursor }');
    for (const amount of ['2.00', '3.00']) await arrive(amount);
    const query = 'subscription ($after: Cursor) { moneyIn(after: $after) { amount { amount } } }';
    const from = (after: unknown) => subscribe(graphql, sandbox.accessToken, { query, variables: { after } });
    await using stream = from(data.eventCursor);
    const [gap] = await stream.received(1);
    expect(gap?.errors?.[0]?.extensions).toMatchObject({ code: 'EVENTS_GAP' });
    await using again = from(gap?.errors?.[0]?.extensions?.['oldest']);
    // The one between is nowhere in the log.
    expect((await again.received(1))[0]?.data.moneyIn.amount.amount).toBe('3.00');
  },
};

it('both tables have the same rows', async () => {
  const [english, spanish] = [
    told(await readPage('docs/payments.md')),
    told(await readPage('docs/pagos.md')),
  ];
  expect(english).toEqual(spanish);
  // No answer at all has no name.
  expect(english.map((row) => row || 'nothing')).toEqual(Object.keys(ROWS));
});

/** Whether a row tells of a member of the unions, and of its code: one that names no code tells of each. */
const tells = (row: string, member: string, code: string): boolean => {
  const words = row.split(' ');
  const codes = words.filter((word) => /^[A-Z_]+$/.test(word));
  return words.includes(member) && (codes.length === 0 || codes.includes(code));
};

it('each member of the unions of payments has a row', async () => {
  const schema = buildSchema(await readPage('schema.graphql'));
  const names = Object.values(schema.getMutationType()?.getFields() ?? {})
    .filter(({ name }) => (MONEY_MUTATIONS as readonly string[]).includes(name))
    .flatMap(({ type }) => schema.getPossibleTypes(getNamedType(type) as GraphQLUnionType))
    .map(({ name }) => name);
  expect(new Set(names).size).toBe(MONEY_MUTATIONS.length + 6);
  for (const name of names)
    expect(
      Object.keys(ROWS).some((row) => row.split(' ').includes(name)),
      name,
    ).toBe(true);
});

it('each state of a transaction and of a receipt has a row', async () => {
  const schema = buildSchema(await readPage('schema.graphql'));
  const statesOf = (name: string) => {
    const type = schema.getType(name);
    return isEnumType(type) ? type.getValues().map((value) => value.name) : [];
  };
  const named = (first: string) =>
    Object.keys(ROWS)
      .filter((row) => row.startsWith(first))
      .flatMap((row) => row.split(' '));
  expect(named('cepStatus ')).toEqual(expect.arrayContaining(statesOf('CepStatus')));
  const ofTransactions = [...named('transactionStatus '), ...named('CreateMoneyOutSuccess ')];
  expect(ofTransactions).toEqual(expect.arrayContaining(statesOf('TransactionStatus')));
});

/** By what a row of docs/upstream-api.md, "Errors", begins with. */
const MUTATION_OF: Readonly<Record<string, (typeof MONEY_MUTATIONS)[number]>> = {
  'money out': 'createMoneyOut',
  'internal transaction': 'createInternalTransaction',
  'penny validation': 'createPennyValidation',
  refund: 'refundTransaction',
};

it('each refusal of the service that is documented has a row, and each that is not', async () => {
  const errors = (await readPage('docs/upstream-api.md')).split('\n## Errors\n')[1]?.split('\n## ')[0] ?? '';
  const explained = [...errors.matchAll(/\| `([A-Z_]+)` \| `(.+)` \|$/gm)].map(
    ([, reason = '', detail = '']) => ({
      status: 400,
      body: { details: [{ reason, domain: 'CORE', metadata: { error_detail: detail } }] },
    }),
  );
  const identified = [
    ...errors.matchAll(/^\| ([\w ]+): [^|]*\| (4\d\d) \| `(\w+)` \| (?:`(.+)`|not documented) \|$/gm),
  ].map(([, subject = '', status, identifier, form]) => ({
    subject,
    status: Number(status),
    body: form === undefined ? { identifier } : JSON.parse(form),
  }));
  expect([explained.length, identified.length], 'rows of docs/upstream-api.md, "Errors"').toEqual([6, 2]);
  const others = [400, 404, 409, 418].map((status) => ({ status, body: apiError('NOT_DOCUMENTED') }));
  for (const { subject, status, body } of identified) {
    const answer = { status, body, text: JSON.stringify(body) };
    // By this a refusal that was stored is told again.
    expect(isDocumentedError(answer), answer.text).toBe(true);
    const { code } = refusalError(answer, TRANSFER_RULES);
    const plain = apiError('NOT_DOCUMENTED');
    const generic = refusalError({ status, body: plain, text: JSON.stringify(plain) }, TRANSFER_RULES);
    expect(code, `${answer.text} has a code of its own`).not.toBe(generic.code);
    const mutation = MUTATION_OF[subject];
    if (mutation === undefined) continue;
    const attempt = { kind: 'answered', retryAfterMs: undefined, ...answer } as const;
    const reading = { compare: () => expect.unreachable(), isServiceError: isDocumentedError };
    expect(outcomeOf(mutation, true, attempt, reading), `${answer.text} to ${subject}`).toMatchObject({
      kind: 'refused',
    });
  }
  for (const { status, body } of [...explained, ...identified, ...others])
    for (const rules of [TRANSFER_RULES, REFUND_RULES]) {
      const { name, code } = refusalError({ status, body, text: JSON.stringify(body) }, rules);
      expect(
        Object.keys(ROWS).some((row) => tells(row, name, code)),
        `${name} ${code}`,
      ).toBe(true);
    }
});

it.each(Object.entries(ROWS))('%s is told of what the table says', async (_name, isTrue) => {
  await isTrue();
});
