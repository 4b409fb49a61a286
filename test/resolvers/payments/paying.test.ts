import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/common/secret.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { startRedis } from '../../helpers/redis.ts';
import { VARIANTS } from '../../helpers/variants.ts';
import { serviceError } from '../../money/upstream.ts';

const UNKNOWN = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const ANSWER = `__typename
  ... on UserError { code message field upstream { httpStatus reason detail module methodName errorCode } }
  ... on OutcomeUnknown { message safeToRetry retryUntil original { id rawStatus } }`;
const MOVED =
  'replayed transaction { id status category subCategory amount { amount currency } cep { status } }';

const DOCUMENTS = {
  createMoneyOut: `mutation ($input: CreateMoneyOutInput!) { result: createMoneyOut(input: $input) { ${ANSWER} ... on CreateMoneyOutSuccess { ${MOVED} } } }`,
  createInternalTransaction: `mutation ($input: CreateInternalTransactionInput!) { result: createInternalTransaction(input: $input) { ${ANSWER} ... on CreateInternalTransactionSuccess { ${MOVED} } } }`,
  createPennyValidation: `mutation ($input: CreatePennyValidationInput!) { result: createPennyValidation(input: $input) { ${ANSWER} ... on CreatePennyValidationSuccess { ${MOVED} } } }`,
  refundTransaction: `mutation ($input: RefundTransactionInput!) { result: refundTransaction(input: $input) { ${ANSWER} ... on RefundTransactionSuccess { replayed refund { id originalTransactionId status } original { id rawStatus } } } }`,
};

let keys = 0;
const newKey = (): string => {
  keys += 1;
  return `paying-test-${keys}`;
};

describe.each(VARIANTS)('over %s,', (_name, sandboxOptions) => {
  let gateway: RunningGateway;
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  let world: any;

  beforeAll(async () => {
    gateway = await startGateway({ sandboxOptions, config: PATIENT });
    world = await control(gateway.sandbox, 'GET', '/sandbox');
  });
  afterAll(() => gateway.stop());
  beforeEach(async () => {
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  });

  const posts = async (): Promise<number> => {
    const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
    return Object.entries<number>(counts)
      .filter(([route]) => route.startsWith('POST /v1/'))
      .reduce((sum, [, count]) => sum + count, 0);
  };
  const fault = (path: string, what: unknown, times = 1) =>
    control(gateway.sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'POST', path },
      fault: what,
      times,
    });

  async function pay(mutation: keyof typeof DOCUMENTS, input: object) {
    const { data, errors } = await gateway.query(DOCUMENTS[mutation], { input });
    expect(errors).toBeUndefined();
    return data.result;
  }

  const transfer = (more: object = {}) => ({
    idempotencyKey: newKey(),
    sourceInstrumentId: world.centralizingInstrumentId,
    destinationInstrumentId: world.internalInstrumentIds[1],
    amount: '12.50',
    description: 'Traspaso',
    externalReference: '1234567',
    ...more,
  });
  const out = (more: object = {}) =>
    transfer({ destinationInstrumentId: world.cardInstrumentIds[0], ...more });
  const penny = (more: object = {}) => ({
    idempotencyKey: newKey(),
    sourceInstrumentId: world.centralizingInstrumentId,
    destinationInstrumentId: world.clabeInstrumentIds[0],
    ...more,
  });
  const newCredit = async (): Promise<string> =>
    (
      await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', {
        clabe: world.accounts[0].clabe,
        amount: '75.00',
      })
    ).transaction.id;

  it('money out is accepted and read back', async () => {
    expect(await pay('createMoneyOut', out())).toMatchObject({
      __typename: 'CreateMoneyOutSuccess',
      replayed: false,
      transaction: {
        status: 'INITIALIZED',
        category: 'DEBIT_TRANS',
        subCategory: 'SPEI_DEBIT',
        amount: { amount: '12.50', currency: 'MXN' },
      },
    });
  });

  it('an internal transaction settles at once', async () => {
    expect(await pay('createInternalTransaction', transfer())).toMatchObject({
      __typename: 'CreateInternalTransactionSuccess',
      transaction: { status: 'LIQUIDATED', category: 'INTER_TRANS', subCategory: 'INT_DEBIT' },
    });
  });

  it('a refund is sent no empty reason, and a penny validation no empty description', async () => {
    const input = { idempotencyKey: newKey(), transactionId: UNKNOWN, as: { reason: '' } };
    expect(await pay('refundTransaction', input)).toMatchObject({
      __typename: 'ValidationError',
      code: 'INVALID_INPUT',
      field: ['input', 'as', 'reason'],
    });
    const { transaction } = await pay('createPennyValidation', penny({ description: '' }));
    const read = await gateway.query('query ($id: ID!) { transaction(id: $id) { description } }', {
      id: transaction.id,
    });
    expect(read.data.transaction.description).toBe('Validacion de cuenta');
  });

  it('a penny validation has a receipt that is pending', async () => {
    expect(
      await pay('createPennyValidation', penny({ description: 'Prueba ñ 1', externalReference: '7' })),
    ).toMatchObject({
      __typename: 'CreatePennyValidationSuccess',
      transaction: { amount: { amount: '0.01' }, cep: { status: 'PENDING' } },
    });
  });

  it.each([
    ['with its amount', { amount: { amount: '75.00', description: 'Devolucion' } }],
    ['with a reason alone', { reason: 'Devolucion' }],
  ])('a credit is refunded %s, and reads REFUNDED afterwards', async (_how, as) => {
    const transactionId = await newCredit();
    expect(await pay('refundTransaction', { idempotencyKey: newKey(), transactionId, as })).toEqual({
      __typename: 'RefundTransactionSuccess',
      replayed: false,
      refund: { id: expect.any(String), originalTransactionId: transactionId, status: 'LIQUIDATED' },
      original: { id: transactionId, rawStatus: 'REFUNDED' },
    });
  });

  it.each(Object.keys(DOCUMENTS) as (keyof typeof DOCUMENTS)[])(
    '%s answers the same key again with the first answer, and sends nothing',
    async (mutation) => {
      const inputs = {
        createMoneyOut: out(),
        createInternalTransaction: transfer(),
        createPennyValidation: penny(),
        refundTransaction: {
          idempotencyKey: newKey(),
          transactionId: await newCredit(),
          as: { reason: 'No' },
        },
      };
      const first = await pay(mutation, inputs[mutation]);
      const sent = await posts();
      expect(await pay(mutation, inputs[mutation])).toEqual({ ...first, replayed: true });
      expect(await posts()).toBe(sent);
    },
  );

  it('the same key with other contents is a conflict, and nothing is sent', async () => {
    const input = transfer();
    await pay('createInternalTransaction', input);
    const sent = await posts();
    expect(await pay('createInternalTransaction', { ...input, amount: '12.51' })).toMatchObject({
      __typename: 'ConflictError',
      code: 'IDEMPOTENCY_KEY_REUSED',
      field: ['input', 'idempotencyKey'],
    });
    expect(await posts()).toBe(sent);
  });

  describe('the gateway checks first what is documented, and sends nothing:', () => {
    it.each([
      ['a short key', { idempotencyKey: 'short' }, 'INVALID_INPUT', ['input', 'idempotencyKey']],
      [
        'a source that is no id',
        { sourceInstrumentId: '../banks' },
        'INVALID_INPUT',
        ['input', 'sourceInstrumentId'],
      ],
      [
        'a destination that is no id',
        { destinationInstrumentId: 'x?y' },
        'INVALID_INPUT',
        ['input', 'destinationInstrumentId'],
      ],
      ['nothing', { amount: '0.00' }, 'AMOUNT_NOT_POSITIVE', ['input', 'amount']],
      ['less than nothing', { amount: '-5.00' }, 'AMOUNT_NOT_POSITIVE', ['input', 'amount']],
      ['dollars', { currency: 'USD' }, 'CURRENCY_UNSUPPORTED', ['input', 'currency']],
      [
        'a reference with a letter',
        { externalReference: '12a' },
        'EXTERNAL_REFERENCE_INVALID',
        ['input', 'externalReference'],
      ],
      [
        'a reference of eight digits',
        { externalReference: '12345678' },
        'EXTERNAL_REFERENCE_INVALID',
        ['input', 'externalReference'],
      ],
    ])('%s', async (_what, wrong, code, field) => {
      for (const mutation of ['createMoneyOut', 'createInternalTransaction'] as const) {
        expect(await pay(mutation, transfer(wrong))).toMatchObject({
          __typename: 'ValidationError',
          code,
          field,
          upstream: null,
        });
      }
      expect(await posts()).toBe(0);
    });

    it('a description of 40 characters, of an internal transaction alone', async () => {
      expect(await pay('createInternalTransaction', transfer({ description: 'x'.repeat(40) }))).toMatchObject(
        { code: 'DESCRIPTION_INVALID' },
      );
      expect(await posts()).toBe(0);
      expect(
        await pay('createInternalTransaction', transfer({ description: 'x'.repeat(39) })),
      ).toHaveProperty('transaction');
      await pay('createMoneyOut', out({ description: 'x'.repeat(40) }));
      expect(await posts()).toBe(2);
    });

    it('a description of a penny validation that is too long, or has other characters', async () => {
      for (const description of ['x'.repeat(41), 'Validación', 'a-b']) {
        expect(await pay('createPennyValidation', penny({ description }))).toMatchObject({
          code: 'DESCRIPTION_INVALID',
        });
      }
      expect(await posts()).toBe(0);
    });

    it.each([
      [
        'of what is no credit',
        () => ({ transactionId: world.transactions.moneyOutId, as: { reason: 'No' } }),
        'PreconditionError',
        'REFUND_NOT_ALLOWED',
      ],
      [
        'of what has been refunded',
        () => ({ transactionId: world.transactions.refundedCreditId, as: { reason: 'No' } }),
        'PreconditionError',
        'REFUND_NOT_ALLOWED',
      ],
      [
        'of part of the amount',
        () => ({
          transactionId: world.transactions.refundableCreditId,
          as: { amount: { amount: '0.01', description: 'No' } },
        }),
        'ValidationError',
        'INVALID_INPUT',
      ],
      [
        'of what nobody knows',
        () => ({ transactionId: UNKNOWN, as: { reason: 'No' } }),
        'NotFoundError',
        'NOT_FOUND',
      ],
    ])('a refund %s', async (_what, input, __typename, code) => {
      expect(await pay('refundTransaction', { idempotencyKey: newKey(), ...input() })).toMatchObject({
        __typename,
        code,
      });
      expect(await posts()).toBe(0);
    });
  });

  describe('the upstream refuses, with the code that tells why and its own words:', () => {
    it('insufficient funds', async () => {
      expect(await pay('createInternalTransaction', transfer({ amount: '999999999999.00' }))).toMatchObject({
        __typename: 'PreconditionError',
        code: 'INSUFFICIENT_FUNDS',
        upstream: {
          httpStatus: 400,
          reason: 'FAILED_PRECONDITION',
          detail: 'The account does not have sufficient funds.',
          module: 'Transactions',
          methodName: 'InternalTransaction',
          errorCode: '10-E4120',
        },
      });
    });

    it.each(['source', 'destination'])('a blocked %s', async (end) => {
      const blocked = { [`${end}InstrumentId`]: world.blockedInstrumentIds[0] };
      expect(await pay('createInternalTransaction', transfer(blocked))).toMatchObject({
        __typename: 'PreconditionError',
        code: 'ACCOUNT_NOT_ACTIVE',
      });
    });

    it('a destination that nobody knows', async () => {
      expect(
        await pay('createInternalTransaction', transfer({ destinationInstrumentId: UNKNOWN })),
      ).toMatchObject({
        __typename: 'NotFoundError',
        code: 'DESTINATION_NOT_FOUND',
        upstream: { httpStatus: 404 },
      });
    });

    it('an external destination', async () => {
      expect(await pay('createInternalTransaction', out())).toMatchObject({
        __typename: 'ConflictError',
        code: 'EXTERNAL_TRANSFER_NOT_ALLOWED',
        upstream: { httpStatus: 409 },
      });
    });
  });

  it.each([
    ['createInternalTransaction', 'internal_transaction', () => transfer()],
    ['createPennyValidation', 'penny_validation', () => penny()],
  ] as const)(
    '%s whose answer is lost is unknown, for every call with its key, and is never sent again',
    async (mutation, route, input) => {
      const given = input();
      await fault(`/v1/transactions/${route}`, 'reset-after-commit');
      expect(await pay(mutation, given)).toMatchObject({
        __typename: 'OutcomeUnknown',
        safeToRetry: false,
        retryUntil: null,
      });
      expect(await pay(mutation, given)).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: false });
      expect(await posts()).toBe(1);
    },
  );

  it('money out whose answer is lost is sent again under the same key, and done once', async () => {
    const movements = async (): Promise<number> =>
      (await control(gateway.sandbox, 'GET', '/sandbox/ledger')).movements.length;
    const before = await movements();
    await pay('createMoneyOut', out());
    const ofOne = (await movements()) - before;
    await fault('/v1/transactions/money_out', 'reset-after-commit');
    expect(await pay('createMoneyOut', out())).toMatchObject({
      __typename: 'CreateMoneyOutSuccess',
      replayed: false,
    });
    expect(await movements()).toBe(before + 2 * ofOne);
    expect(await posts()).toBe(3);
  });

  it('a refund whose answer is lost shows the credit as it reads now, and is never sent again', async () => {
    const input = { idempotencyKey: newKey(), transactionId: await newCredit(), as: { reason: 'No' } };
    await fault(`/v1/clients/*/transactions/*/refund`, 'reset-after-commit');
    const sent = await posts();
    for (const _call of [1, 2]) {
      expect(await pay('refundTransaction', input)).toMatchObject({
        __typename: 'OutcomeUnknown',
        safeToRetry: false,
        original: { id: input.transactionId, rawStatus: 'REFUNDED' },
      });
    }
    expect((await posts()) - sent).toBe(1);
  });

  it.each([
    [401, 'UNAUTHENTICATED'],
    [403, 'FORBIDDEN'],
    [429, 'UPSTREAM_RATE_LIMITED'],
  ])('a %i is a top-level error and frees the key', async (status, code) => {
    const input = transfer();
    const body = JSON.parse(serviceError(status));
    await fault('/v1/transactions/internal_transaction', { status, body });
    const refused = await gateway.query(DOCUMENTS.createInternalTransaction, { input });
    expect(refused.errors?.[0]?.extensions['code']).toBe(code);
    expect(await pay('createInternalTransaction', input)).toMatchObject({
      __typename: 'CreateInternalTransactionSuccess',
      replayed: false,
    });
  });

  it('parts of a credit go back by money out, from the centralizing account, and the gateway ties none to the credit', async () => {
    const id = await newCredit();
    const READ = `query ($id: ID!) { transaction(id: $id) { rawStatus source { instrumentId } }
      client { accounts(first: 100) { nodes { availableBalance { amount } instrument { id } } } } }`;
    const read = async () => {
      const { data, errors } = await gateway.query(READ, { id });
      expect(errors).toBeUndefined();
      const accounts: { availableBalance: { amount: string }; instrument: { id: string } }[] =
        data.client.accounts.nodes;
      const balances = new Map(accounts.map((one) => [one.instrument.id, one.availableBalance.amount]));
      return { ...data.transaction, balances };
    };
    const before = await read();
    const part = (more: object = {}) => out({ amount: '50.00', description: 'Devolución parcial', ...more });
    // On the sandbox the payer of a credit is registered nowhere.
    expect(
      await pay('createMoneyOut', part({ destinationInstrumentId: before.source.instrumentId })),
    ).toMatchObject({
      __typename: 'NotFoundError',
    });
    // Together more than the credit of 75.00.
    for (const _part of ['first', 'second']) {
      expect(await pay('createMoneyOut', part())).toMatchObject({ __typename: 'CreateMoneyOutSuccess' });
    }
    const after = await read();
    expect(after.rawStatus).toBe('LIQUIDATED');
    const paid = [...before.balances].filter(([account, held]) => after.balances.get(account) !== held);
    expect(paid.map(([account]) => account)).toEqual([world.centralizingInstrumentId]);
    const whole = { idempotencyKey: newKey(), transactionId: id, as: { reason: 'Devolución' } };
    expect(await pay('refundTransaction', whole)).toMatchObject({ __typename: 'RefundTransactionSuccess' });
  });

  it('what is read after a payment, in the midst of an operation, is read anew', async () => {
    const paid = `... on CreateInternalTransactionSuccess { transaction { client {
      accounts(first: 100) { nodes { availableBalance { amount } } } } } }`;
    const { data, errors } = await gateway.query(
      `mutation ($one: CreateInternalTransactionInput!, $two: CreateInternalTransactionInput!) {
        one: createInternalTransaction(input: $one) { ${paid} } two: createInternalTransaction(input: $two) { ${paid} } }`,
      { one: transfer(), two: transfer() },
    );
    expect(errors).toBeUndefined();
    const [one, two] = [data.one, data.two].map(({ transaction }) =>
      transaction.client.accounts.nodes.map((node: { availableBalance: { amount: string } }) =>
        Number(node.availableBalance.amount),
      ),
    );
    expect(one.map((amount: number, index: number) => two[index] - amount)).toContain(-12.5);
  });

  it('a payment that is done stays done when what is read of it afterwards cannot be', async () => {
    await control(gateway.sandbox, 'POST', '/sandbox/faults', {
      match: { method: 'GET', path: '/v1/*' },
      fault: { status: 500 },
    });
    const { data, errors } = await gateway.query(
      `mutation ($input: CreateInternalTransactionInput!) { createInternalTransaction(input: $input) {
        ... on CreateInternalTransactionSuccess { transaction { id client { accounts { totalCount } } } } } }`,
      { input: transfer() },
    );
    expect(data.createInternalTransaction.transaction).toEqual({
      id: expect.any(String),
      client: { accounts: null },
    });
    expect(errors?.[0]?.extensions['code']).toBe('UPSTREAM_UNAVAILABLE');
  });
});

describe('an amount', () => {
  it.each([12.5, 12, '12.5', '12', '1,000.00'])('that is %j never reaches the mutation', async (amount) => {
    await using gateway = await startGateway({ webhooks: false });
    const { data, errors } = await gateway.query(DOCUMENTS.createMoneyOut, {
      input: {
        idempotencyKey: 'amount-test-1',
        sourceInstrumentId: UNKNOWN,
        destinationInstrumentId: UNKNOWN,
        amount,
        description: 'x',
        externalReference: '1',
      },
    });
    expect(data).toBeUndefined();
    expect(errors?.[0]?.extensions['code']).toBe('BAD_USER_INPUT');
    expect(errors?.[0]?.message).toContain('MoneyAmount must be a string');
  });
});

it('a field that this version does not know is refused, in a variable as in the document, and leaves no payment', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const idempotencyKey = 'of-a-later-version';
  const input = {
    idempotencyKey,
    sourceInstrumentId: UNKNOWN,
    destinationInstrumentId: UNKNOWN,
    amount: '1.00',
    description: 'x',
    externalReference: '1',
    later: 'x',
  };
  const inline = `mutation { result: createMoneyOut(input: { idempotencyKey: "${idempotencyKey}", later: "x" }) { __typename } }`;
  const answers = [await gateway.query(DOCUMENTS.createMoneyOut, { input }), await gateway.query(inline)];
  expect(answers.map(({ errors }) => errors?.[0]?.extensions['code'])).toEqual([
    'BAD_USER_INPUT',
    'GRAPHQL_VALIDATION_FAILED',
  ]);
  const { data } = await gateway.query(`{ payment(idempotencyKey: "${idempotencyKey}") { state } }`);
  expect(data).toEqual({ payment: null });
});

it('without the record of payments nothing is sent, and the answer says so', async () => {
  await using redis = await startRedis();
  await using gateway = await startGateway({ config: { redisUrl: new Secret(redis.url) } });
  const world = await control(gateway.sandbox, 'GET', '/sandbox');
  await redis.kill();
  const { data, errors } = await gateway.query(DOCUMENTS.createInternalTransaction, {
    input: {
      idempotencyKey: 'store-test-1',
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.internalInstrumentIds[1],
      amount: '1.00',
      description: 'x',
      externalReference: '1',
    },
  });
  expect(data).toEqual({ result: null });
  expect(errors?.[0]?.extensions['code']).toBe('STORE_UNAVAILABLE');
  const { counts } = await control(gateway.sandbox, 'GET', '/sandbox/requests');
  expect(counts).not.toHaveProperty('POST /v1/transactions/internal_transaction');
});
