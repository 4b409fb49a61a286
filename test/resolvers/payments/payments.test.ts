import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { Secret } from '../../../src/common/secret.ts';
import { control, type GraphQLAnswer, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { startRedis } from '../../helpers/redis.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { clusterUrl, startCluster } from '../../money/stores.ts';
import { serviceError } from '../../money/upstream.ts';
import { inject } from '../../scenarios/faults/payments.ts';

const PAYMENT = `__typename id operation state amount { amount currency } sourceInstrumentId destinationInstrumentId requestedAt
  sentAt settledAt attempts requestedBy code message safeToRetry retryUntil transactionId transaction { id }`;
const BY_KEY = `query ($key: String!) { payment(idempotencyKey: $key) { ${PAYMENT} } }`;
const BY_ID = `query ($id: ID!) { node(id: $id) { id ... on Payment { ${PAYMENT} } } any: node(id: $id) { __typename id } }`;
const LIST = `query ($first: Int, $after: Cursor, $last: Int, $before: Cursor, $states: [PaymentState!],
  $operations: [PaymentOperation!], $from: DateTime, $to: DateTime) {
  payments(first: $first, after: $after, last: $last, before: $before, states: $states, operations: $operations,
    requestedFrom: $from, requestedTo: $to) {
    edges { cursor node { id } } nodes { id state operation requestedAt }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;
const RESULT = `__typename ... on UserError { code }
  ... on OutcomeUnknown { reason safeToRetry retryUntil payment { id state code safeToRetry retryUntil } }`;
const INTERNAL = `mutation ($input: CreateInternalTransactionInput!) { paid: createInternalTransaction(input: $input) { ${RESULT}
  ... on CreateInternalTransactionSuccess { transaction { id payment { id state } } } } }`;
const MONEY_OUT = `mutation ($input: CreateMoneyOutInput!) { paid: createMoneyOut(input: $input) { ${RESULT}
  ... on CreateMoneyOutSuccess { transaction { id payment { id state } } } } }`;

interface Seeded {
  readonly centralizingInstrumentId: string;
  readonly customerIds: readonly string[];
  readonly instruments: readonly { id: string; role: string; ownerId: string; status: string }[];
}

const STORES: [string, () => Promise<{ url: string | undefined; stop(): Promise<void> }>][] = [
  ['node:sqlite', async () => ({ url: undefined, stop: async () => {} })],
  ['Redis', startRedis],
  [
    'a Redis Cluster',
    async () => {
      const redis = await startCluster();
      return { url: clusterUrl(redis), stop: () => redis.stop() };
    },
  ],
];

describe.each(STORES)('payments, over %s', (_name, startStore) => {
  let store: { url: string | undefined; stop(): Promise<void> };
  let sandbox: Sandbox;
  let gateway: RunningGateway;
  let seeded: Seeded;
  let customer: string;
  let other: string;

  beforeAll(async () => {
    store = await startStore();
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    seeded = await control(sandbox, 'GET', '/sandbox');
    [customer = '', other = ''] = seeded.customerIds;
    const config = { service: serviceFor(sandbox), ...PATIENT };
    gateway = await startGateway({
      sandbox,
      config: { ...config, ...(store.url === undefined ? {} : { redisUrl: new Secret(store.url) }) },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await sandbox.stop();
    await store.stop();
  });

  const as = async (
    claims: Parameters<typeof callerToken>[0],
    document: string,
    variables: Record<string, unknown> = {},
  ): Promise<GraphQLAnswer> =>
    gateway.query(document, variables, { authorization: `Bearer ${await callerToken(claims)}` });
  const internalsOf = (ownerId: string) =>
    seeded.instruments.filter(
      (instrument) =>
        instrument.ownerId === ownerId && instrument.role === 'internal' && instrument.status === 'ACTIVE',
    );
  const anyInternal = () => internalsOf(customer)[0]?.id ?? '';
  const input = (amount: string, source = seeded.centralizingInstrumentId) => ({
    idempotencyKey: randomUUID(),
    sourceInstrumentId: source,
    destinationInstrumentId: anyInternal(),
    amount,
    description: 'a payment',
    externalReference: '1234567',
  });
  const card = () => seeded.instruments.find(({ role }) => role === 'card')?.id ?? '';

  it('are told by key, by id and by transaction, and say who asked for what and what came of it', async () => {
    const given = input('12.50');
    const paid = await as({ sub: 'alma' }, INTERNAL, { input: given });
    const { id: transactionId, payment } = paid.data.paid.transaction;
    const { data, errors } = await as({ sub: 'alma' }, BY_KEY, { key: given.idempotencyKey });
    expect(errors).toBeUndefined();
    expect(data.payment).toMatchObject({
      __typename: 'Payment',
      id: payment.id,
      operation: 'INTERNAL_TRANSACTION',
      state: 'DONE',
      amount: { amount: '12.50', currency: 'MXN' },
      sourceInstrumentId: given.sourceInstrumentId,
      destinationInstrumentId: given.destinationInstrumentId,
      attempts: 1,
      requestedBy: 'alma',
      code: null,
      message: null,
      safeToRetry: false,
      retryUntil: null,
      transactionId,
      transaction: { id: transactionId },
    });
    const { requestedAt, sentAt, settledAt } = data.payment;
    expect([requestedAt, sentAt, settledAt]).toEqual([requestedAt, sentAt, settledAt].toSorted());
    const byId = await as({ sub: 'berta' }, BY_ID, { id: payment.id });
    expect(byId.data).toEqual({ node: data.payment, any: { __typename: 'Payment', id: payment.id } });
    // Another subject has keys of its own.
    expect((await as({ sub: 'berta' }, BY_KEY, { key: given.idempotencyKey })).data.payment).toBeNull();
    expect(JSON.stringify(byId.data)).not.toContain(given.idempotencyKey);
  });

  it('say why one was refused', async () => {
    const given = input('99999999.00');
    const paid = await as({}, INTERNAL, { input: given });
    expect(paid.data.paid.code).toBe('INSUFFICIENT_FUNDS');
    const { data } = await as({}, BY_KEY, { key: given.idempotencyKey });
    expect(data.payment).toMatchObject({
      state: 'REFUSED',
      code: 'INSUFFICIENT_FUNDS',
      message: expect.stringMatching(/\w/),
      transactionId: null,
      transaction: null,
      settledAt: expect.any(String),
    });
  });

  it('belong to the customer that paid, and to its client', async () => {
    const [source = ''] = internalsOf(customer).map(({ id }) => id);
    const given = { ...input('1.00', source), destinationInstrumentId: internalsOf(customer)[1]?.id ?? '' };
    const own = await as({ customer_id: customer }, BY_KEY, { key: given.idempotencyKey });
    expect(own.data.payment).toBeNull();
    const paid = await as({ customer_id: customer }, INTERNAL, { input: given });
    const payment = (await as({ customer_id: customer }, BY_KEY, { key: given.idempotencyKey })).data.payment;
    expect(paid.errors).toBeUndefined();
    expect(payment).toMatchObject({ requestedBy: 'somebody' });
    const idsFor = async (claims: object) =>
      (await as(claims, LIST, {})).data.payments.nodes.map(({ id }: { id: string }) => id);
    expect(await idsFor({ customer_id: customer })).toEqual([payment.id]);
    expect(await idsFor({ customer_id: other })).toEqual([]);
    expect(await idsFor({})).toEqual(expect.arrayContaining([payment.id]));
    expect((await as({}, BY_ID, { id: payment.id })).data.node).toMatchObject({ id: payment.id });
    expect((await as({ customer_id: other }, BY_ID, { id: payment.id })).data).toEqual({
      node: null,
      any: null,
    });
    expect((await as({ customer_id: other }, BY_KEY, { key: given.idempotencyKey })).data.payment).toBeNull();
    // What the client has paid is not the customer's, though it received it.
    const clients = await as({}, INTERNAL, { input: input('2.00') });
    const transaction = `query ($id: ID!) { transaction(id: $id) { id payment { id } } }`;
    const { id } = clients.data.paid.transaction;
    expect((await as({}, transaction, { id })).data.transaction.payment).not.toBeNull();
    const seen = await as({ customer_id: customer }, transaction, { id });
    expect(seen.data.transaction).toEqual({ id, payment: null });
  });

  it('say nothing of what the gateway kept from a narrowed caller: it was not sent, and its key is free', async () => {
    const [theirs] = internalsOf(other);
    const [source, destination] = internalsOf(customer);
    const given = { ...input('1.00', source?.id), destinationInstrumentId: theirs?.id ?? '' };
    const pay = async (more: object) =>
      (await as({ customer_id: customer }, INTERNAL, { input: { ...given, ...more } })).data.paid;
    const payment = async () =>
      (await as({ customer_id: customer }, BY_KEY, { key: given.idempotencyKey })).data.payment;
    expect(await pay({})).toMatchObject({ code: 'DESTINATION_NOT_FOUND' });
    expect(await payment()).toBeNull();
    // So null is not REFUSED: a call with this key pays.
    const paid = await pay({ destinationInstrumentId: destination?.id });
    expect(await payment()).toMatchObject({ state: 'DONE', id: paid.transaction.payment.id });
  });

  it('need payments:read beside graph:read', async () => {
    const given = input('3.00');
    await as({}, INTERNAL, { input: given });
    const { data } = await as({}, BY_KEY, { key: given.idempotencyKey });
    for (const scope of ['graph:read', 'payments:read', 'money:move events:read graph:read']) {
      for (const answer of [
        await as({ scope }, BY_KEY, { key: given.idempotencyKey }),
        await as({ scope }, LIST, {}),
      ]) {
        expect(answer.errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
        expect(Object.values(answer.data)).toEqual([null]);
      }
    }
    const scope = 'graph:read';
    expect((await as({ scope }, BY_ID, { id: data.payment.id })).data).toEqual({ node: null, any: null });
    const both = await as({ scope: 'graph:read payments:read' }, BY_KEY, { key: given.idempotencyKey });
    expect(both.data).toEqual(data);
  });

  it('are found by state, operation and time, newest first, page by page both ways, by sealed cursors', async () => {
    const list = async (variables: Record<string, unknown>, claims = {}) => {
      const { data, errors } = await as(claims, LIST, variables);
      expect(errors).toBeUndefined();
      return data.payments;
    };
    const whole = await list({ first: 100 });
    expect(whole.nodes.length).toBeGreaterThan(4);
    expect(whole.pageInfo).toMatchObject({ hasNextPage: false, hasPreviousPage: false });
    const ids = whole.nodes.map(({ id }: { id: string }) => id);
    const forward: string[] = [];
    for (let after: string | null = null; ; ) {
      const { edges, pageInfo } = await list({ first: 2, after });
      forward.push(...edges.map(({ node }: { node: { id: string } }) => node.id));
      after = pageInfo.endCursor;
      if (!pageInfo.hasNextPage) break;
    }
    expect(forward).toEqual(ids);
    const backward: string[] = [];
    for (let before: string | null = null; ; ) {
      const { edges, pageInfo } = await list({ last: 2, before });
      backward.unshift(...edges.map(({ node }: { node: { id: string } }) => node.id));
      before = pageInfo.startCursor;
      if (!pageInfo.hasPreviousPage) break;
    }
    expect(backward).toEqual(ids);
    const refused = await list({ states: ['REFUSED'], operations: ['INTERNAL_TRANSACTION'] });
    expect(refused.nodes.map(({ state }: { state: string }) => state)).toEqual(['REFUSED']);
    expect((await list({ operations: ['MONEY_OUT'] })).nodes).toEqual([]);
    const { requestedAt } = whole.nodes[1];
    expect((await list({ from: requestedAt })).nodes.length).toBeLessThan(ids.length);
    expect((await list({ to: requestedAt })).nodes.length).toBeLessThanOrEqual(ids.length - 2);

    const { cursor } = whole.edges[0];
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/\d{13}:/);
    const forged = Buffer.from('1:abc').toString('base64url');
    for (const [claims, after] of [
      [{}, forged],
      [{}, `${cursor}A`],
      [{ customer_id: customer }, cursor],
      [{ customer_id: other }, (await list({}, { customer_id: customer })).edges[0].cursor],
    ] as const) {
      const { errors } = await as(claims, LIST, { after });
      expect(errors).toMatchObject([{ extensions: { code: 'CURSOR_INVALID' } }]);
    }
    const nowhere = { from: requestedAt, to: requestedAt };
    for (const odd of [{ first: 0 }, { first: 101 }, { first: 1, last: 1 }, { states: [] }, nowhere]) {
      expect((await as({}, LIST, odd)).errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
    }
  });

  it('are UNKNOWN once sent without an answer, and the mutation leads to them', async () => {
    const moneyOut = { method: 'POST', path: '/v1/transactions/money_out' };
    // The refusal of its repeat ends a call, which else would go on until its time is over.
    await inject(sandbox, moneyOut, 'reset-before', 1);
    await inject(sandbox, moneyOut, { status: 403, body: JSON.parse(serviceError(403)) });
    await inject(sandbox, { method: 'POST' }, 'reset-before');
    const given = { ...input('4.00'), destinationInstrumentId: card() };
    for (const [document, variables, state, operation] of [
      [MONEY_OUT, given, { safeToRetry: true, retryUntil: expect.any(String) }, 'MONEY_OUT'],
      [INTERNAL, input('5.00'), { safeToRetry: false, retryUntil: null }, 'INTERNAL_TRANSACTION'],
    ] as const) {
      const paid = await as({}, document, { input: variables });
      expect(paid.data.paid).toMatchObject({ __typename: 'OutcomeUnknown', reason: 'NO_ANSWER', ...state });
      const { payment } = paid.data.paid;
      expect(payment).toMatchObject({ state: 'UNKNOWN', code: 'NO_ANSWER', ...state });
      const { data } = await as({}, LIST, { states: ['UNKNOWN'], operations: [operation] });
      expect(data.payments.nodes.map(({ id }: { id: string }) => id)).toEqual([payment.id]);
      const { attempts } = (await as({}, BY_KEY, { key: variables.idempotencyKey })).data.payment;
      expect(attempts > 1).toBe(operation === 'MONEY_OUT');
    }
    await control(sandbox, 'DELETE', '/sandbox/faults');
    const oldest = await as({}, LIST, { states: ['IN_FLIGHT', 'UNKNOWN'], last: 1 });
    const newer = await as({}, INTERNAL, { input: input('6.00') });
    const newest = { id: newer.data.paid.transaction.payment.id };
    const again = await as({}, MONEY_OUT, { input: given });
    const { payment } = again.data.paid.transaction;
    expect(payment).toMatchObject({ state: 'DONE' });
    const { data } = await as({}, LIST, { states: ['UNKNOWN', 'IN_FLIGHT'], operations: ['MONEY_OUT'] });
    expect(data.payments.nodes).toEqual([]);
    // It stands at the time when it was asked for: it is found from the oldest on that was not settled before, and not at the top.
    const done = { states: ['DONE'] };
    expect((await as({}, LIST, { ...done, first: 1 })).data.payments.nodes).toMatchObject([newest]);
    const [{ requestedAt: from }] = oldest.data.payments.nodes;
    const found = (await as({}, LIST, { ...done, from })).data.payments.nodes;
    expect(found).toMatchObject([newest, { id: payment.id }]);
  });
});
