import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
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

let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;
beforeAll(async () => {
  await new Promise<void>((resolve) => decider.listen(0, '127.0.0.1', resolve));
  const address = decider.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  gateway = await startGateway({
    webhooks: ['MONEY_IN', 'CEP'],
    config: { moneyInDecisionUrl: `http://127.0.0.1:${port}/`, operationTimeoutMs: 1_500 },
  });
  world = await control(gateway.sandbox, 'GET', '/sandbox');
});
afterAll(async () => {
  await gateway.stop();
  decider.close();
});

const ANSWER = '__typename ... on OutcomeUnknown { safeToRetry retryUntil } ... on UserError { code }';
const DOCUMENTS = {
  MoneyOut: `mutation ($input: CreateMoneyOutInput!) { paid: createMoneyOut(input: $input) { ${ANSWER} ... on CreateMoneyOutSuccess { replayed transaction { id status } } } }`,
  Internal: `mutation ($input: CreateInternalTransactionInput!) { paid: createInternalTransaction(input: $input) { ${ANSWER} ... on CreateInternalTransactionSuccess { replayed transaction { id status } } } }`,
  Penny: `mutation ($input: CreatePennyValidationInput!) { paid: createPennyValidation(input: $input) { ${ANSWER} ... on CreatePennyValidationSuccess { transaction { id cep { status beneficiaryName } } } } }`,
  Refund: `mutation ($input: RefundTransactionInput!) { paid: refundTransaction(input: $input) { ${ANSWER} ... on RefundTransactionSuccess { refund { id } original { status } } } }`,
};
const pay = async (what: keyof typeof DOCUMENTS, input: object) => {
  const { data, errors } = await gateway.query(DOCUMENTS[what], { input });
  return data?.paid ?? { topLevel: errors?.[0]?.extensions['code'] };
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
const statusOf = async (id: string) =>
  (await gateway.query('query ($id: ID!) { transaction(id: $id) { status } }', { id })).data.transaction
    .status;
const decisionOn = async (amount: string) => {
  const { data } = await gateway.query('{ eventCursor }');
  await credit(amount);
  const query = 'subscription ($after: Cursor) { moneyIn(after: $after) { decision amount { amount } } }';
  return (await lastOf(query, { after: data.eventCursor }, 1))?.moneyIn.decision;
};
const receiptOf = async (destination: string, seconds: number) => {
  const { transaction } = await pay('Penny', penny(destination));
  await pass(seconds);
  const query =
    'subscription ($id: ID!) { cepStatus(transactionId: $id) { cep { status beneficiaryName } } }';
  return (await lastOf(query, { id: transaction.id }, 1))?.cepStatus.cep;
};

/** By what a row names: what makes an app be told so, and what is true then. */
const ROWS: Readonly<Record<string, () => Promise<void>>> = {
  'CreateMoneyOutSuccess INITIALIZED': async () => {
    expect(await pay('MoneyOut', out())).toMatchObject({ transaction: { status: 'INITIALIZED' } });
  },
  'CreateInternalTransactionSuccess LIQUIDATED': async () => {
    expect(await pay('Internal', internal())).toMatchObject({ transaction: { status: 'LIQUIDATED' } });
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
    const unknown = await failing({ status: 503, commit: true }, () => pay('MoneyOut', input));
    expect(unknown).toMatchObject({
      __typename: 'OutcomeUnknown',
      safeToRetry: true,
      retryUntil: expect.any(String),
    });
    expect(await pay('MoneyOut', input)).toMatchObject({ __typename: 'CreateMoneyOutSuccess' });
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
  'PreconditionError ValidationError NotFoundError RefusedError': async () => {
    const before = await movements();
    const input = out({ amount: '99999999.00' });
    for (const refused of [await pay('MoneyOut', input), await pay('MoneyOut', input)]) {
      expect(refused).toMatchObject({ __typename: 'PreconditionError', code: 'INSUFFICIENT_FUNDS' });
    }
    expect(await pay('MoneyOut', out({ amount: '0.00' }))).toMatchObject({ __typename: 'ValidationError' });
    const nobody = internal({ destinationInstrumentId: randomUUID() });
    expect(await pay('Internal', nobody)).toMatchObject({ __typename: 'NotFoundError' });
    expect(await movements()).toBe(before);
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
  UPSTREAM_UNAVAILABLE: async () => {
    const before = await movements();
    const input = out();
    const busy = {
      code: 9,
      message: 'API Error',
      details: [{ reason: 'BUSY', domain: 'CORE', metadata: {} }],
    };
    expect(await failing({ status: 429, body: busy }, () => pay('MoneyOut', input))).toEqual({
      topLevel: 'UPSTREAM_RATE_LIMITED',
    });
    expect(await movements()).toBe(before);
    expect(await pay('MoneyOut', input)).toMatchObject({ replayed: false });
    expect(await movements()).toBe(before + 1);
  },
  nothing: async () => {
    const ask = async (key: string) =>
      (await gateway.query('query ($key: String!) { payment(idempotencyKey: $key) { state } }', { key })).data
        .payment;
    const input = out();
    expect(await ask(input.idempotencyKey)).toBeNull();
    await pay('MoneyOut', input);
    expect(await ask(input.idempotencyKey)).toEqual({ state: 'DONE' });
    expect(await pay('MoneyOut', input)).toMatchObject({ replayed: true });
  },
  'transactionStatus LIQUIDATED': async () => {
    const { transaction } = await pay('MoneyOut', out());
    await pass(60);
    expect(await statusOf(transaction.id)).toBe('LIQUIDATED');
  },
  'transactionStatus REFUNDED': async () => {
    const { transaction } = await pay('MoneyOut', out({ description: 'returned transfer' }));
    await pass(600);
    expect(await statusOf(transaction.id)).toBe('REFUNDED');
  },
  'moneyIn decision: ACCEPTED': async () => {
    expect(await decisionOn('12.00')).toBe('ACCEPTED');
  },
  'moneyIn decision: REJECTED': async () => {
    expect(await decisionOn('13.00')).toBe('REJECTED');
  },
  'cepStatus COMPLETED': async () => {
    const other = await receiptOf(world.otherHolderInstrumentId, 600);
    expect(other).toMatchObject({ status: 'COMPLETED', beneficiaryName: expect.any(String) });
    const registered = world.instruments.find(
      ({ id }: { id: string }) => id === world.otherHolderInstrumentId,
    );
    expect(other.beneficiaryName).not.toBe(registered.holderName);
  },
  'cepStatus PENDING': async () => {
    expect(await receiptOf(world.lateReceiptInstrumentId, 0)).toMatchObject({ status: 'PENDING' });
  },
  'cepStatus FAILED': async () => {
    expect(await receiptOf(world.noReceiptInstrumentId, 4 * 3_600)).toMatchObject({ status: 'FAILED' });
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

it.each(Object.entries(ROWS))('%s is told of what the table says', async (_name, isTrue) => {
  await isTrue();
});
