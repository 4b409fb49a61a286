import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { readPage } from './pages.ts';

let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;
/** A customer that has an account, and its CLABE. */
let customer: { readonly id: string; readonly clabe: string };
beforeAll(async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({
    sandbox,
    webhooks: ['MONEY_IN'],
    config: { ...PATIENT, service: serviceFor(sandbox) },
  });
  world = await control(sandbox, 'GET', '/sandbox');
  const ids: readonly string[] = world.customers.map(({ id }: { id: string }) => id);
  const { ownerId, clabe } = world.accounts.find((account: { ownerId: string }) =>
    ids.includes(account.ownerId),
  );
  customer = { id: ownerId, clabe };
});
afterAll(async () => {
  await gateway.stop();
  await gateway.sandbox.stop();
});

const ask = async (document: string, variables: object, claims: object = {}) => {
  const authorization = `Bearer ${await callerToken(claims)}`;
  return (await gateway.query(document, { ...variables }, { authorization })).data;
};
const REFUND = `mutation ($input: RefundTransactionInput!) { refundTransaction(input: $input) {
  __typename ... on UserError { code message upstream { httpStatus } } ... on RefundTransactionSuccess { replayed } } }`;
const refund = async (
  transactionId: string,
  idempotencyKey: string = randomUUID(),
  claims: object = {},
  reason = 'No',
) => {
  const input = { transactionId, idempotencyKey, as: { reason } };
  return (await ask(REFUND, { input }, claims)).refundTransaction;
};
const stateOf = async (key: string) =>
  (await ask('query ($key: String!) { payment(idempotencyKey: $key) { state } }', { key })).payment?.state;
const refunds = async (claims: object = {}): Promise<number> =>
  (await ask('{ payments(operations: [REFUND]) { nodes { state } } }', {}, claims)).payments.nodes.length;
const statusOf = async (id: string) =>
  (await ask('query ($id: ID!) { transaction(id: $id) { status } }', { id })).transaction.status;

/** A credit on whose webhook nobody has answered. */
async function unanswered(): Promise<string> {
  await control(gateway.sandbox, 'PATCH', '/sandbox/webhooks', { down: true });
  try {
    return await credit();
  } finally {
    await control(gateway.sandbox, 'PATCH', '/sandbox/webhooks', { down: false });
  }
}
const credit = async (clabe = customer.clabe): Promise<string> =>
  (await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '20.00' })).transaction
    .id;
const end = (id: string, outcome: 'done' | 'failed') =>
  control(gateway.sandbox, 'POST', '/sandbox/completions', { id, outcome });

const NOT_ALLOWED = { __typename: 'PreconditionError', code: 'REFUND_NOT_ALLOWED' };
const BY_GATEWAY = { ...NOT_ALLOWED, upstream: null };
const BY_SERVICE = { ...NOT_ALLOWED, upstream: { httpStatus: 400 } };
const DONE = { __typename: 'RefundTransactionSuccess' };

/** By the first column of the table, in its order: how it comes to that cause, and what is true then. */
const CAUSES: Readonly<Record<string, () => Promise<void>>> = {
  'The credit was refunded through this gateway': async () => {
    const id = await credit();
    expect(await refund(id)).toMatchObject(DONE);
    const before = await refunds();
    expect(await refund(id)).toMatchObject(BY_GATEWAY);
    expect([await statusOf(id), await refunds()]).toEqual(['REFUNDED', before]);
  },
  'The credit was returned by a 422, or at the provider': async () => {
    const id = await unanswered();
    await end(id, 'failed');
    const before = await refunds();
    expect(await refund(id)).toMatchObject(BY_GATEWAY);
    expect([await statusOf(id), await refunds()]).toEqual(['REFUNDED', before]);
  },
  'Another refund of it was sent in the last 48 hours': async () => {
    const [id, first, second] = [await credit(), randomUUID(), randomUUID()];
    await lost(id, first);
    const told = await refund(id, second);
    expect(told).toMatchObject(BY_GATEWAY);
    expect(told.message).toMatch(
      /^Another refund .*, under another key, or by a caller whose keys are not yours/,
    );
    expect(told.message).toMatch(/does not name the credit of an open refund; .*`pasarela payments show`/);
    expect([await stateOf(first), await stateOf(second)]).toEqual(['UNKNOWN', undefined]);
  },
  'The service has refused it, for a cause that passes': async () => {
    const [id, key] = [await unanswered(), randomUUID()];
    expect(await refund(id, key)).toMatchObject(BY_SERVICE);
    expect([await statusOf(id), await stateOf(key)]).toEqual(['INITIALIZED', 'REFUSED']);
    await end(id, 'done');
    expect(await refund(id, key)).toMatchObject(BY_SERVICE);
    expect(await refund(id, `${key}-2`)).toMatchObject(DONE);
  },
  'It is no SPEI credit': async () => {
    const told = await refund(world.transactions.internalTransactionId);
    expect(told).toMatchObject(BY_GATEWAY);
    expect(told.message).toMatch(/^Only received SPEI credits can be refunded/);
  },
  'One of the first three causes, and the caller is narrowed to a customer': async () => {
    const [id, narrowed] = [await credit(), { customer_id: customer.id }];
    const before = await refunds(narrowed);
    expect(await refund(id)).toMatchObject(DONE);
    expect(await refund(id, randomUUID(), narrowed)).toMatchObject(BY_GATEWAY);
    expect(await refunds(narrowed)).toBe(before);
  },
};

/** Follows from the first two rows: the service refuses what it has returned meanwhile. */
const ALSO = 'The service has refused it, for good';

/** The first column of the first table whose heading begins so. */
const columnOf = (page: string, heading: string): readonly string[] =>
  (new RegExp(`^\\| ${heading} \\|.*\\n.*\\n((?:\\|.*\\n)+)`, 'm').exec(page)?.[1] ?? '')
    .trim()
    .split('\n')
    .map((row) => row.split('|')[1]?.trim() ?? '');

/** The first column of the table of causes. */
const causesOf = (page: string): readonly string[] => columnOf(page, 'caus[ea]');

it('each cause has a row in both languages', async () => {
  const english = causesOf(await readPage('docs/refunds.md'));
  expect(english.filter((cause) => cause !== ALSO)).toEqual(Object.keys(CAUSES));
  expect(causesOf(await readPage('docs/pagos.md'))).toHaveLength(english.length);
});

it.each(Object.entries(CAUSES))('%s: what the table says', async (_cause, isTrue) => {
  await isTrue();
});

const REUSED = { __typename: 'ConflictError', code: 'IDEMPOTENCY_KEY_REUSED' };
const UNKNOWN = { __typename: 'OutcomeUnknown' };

/** A refund whose answer is lost. */
async function lost(id: string, key: string): Promise<void> {
  const match = { method: 'POST', path: '/v1/clients/*/transactions/*/refund' };
  await control(gateway.sandbox, 'POST', '/sandbox/faults', { match, fault: { status: 503 } });
  expect(await refund(id, key)).toMatchObject(UNKNOWN);
  await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
}

/** By the first column of the table of second calls: the credit, its first refund, and the answers of the other columns. */
const SECOND_CALLS: Readonly<
  Record<
    string,
    { credit(): Promise<string>; first(id: string, key: string): Promise<unknown>; told: readonly object[] }
  >
> = {
  'is unknown': { credit, first: lost, told: [UNKNOWN, REUSED, BY_GATEWAY] },
  'is done': {
    credit,
    first: async (id, key) => expect(await refund(id, key)).toMatchObject(DONE),
    told: [{ ...DONE, replayed: true }, REUSED, BY_GATEWAY],
  },
  'was refused by the service': {
    credit: unanswered,
    first: async (id, key) => expect(await refund(id, key)).toMatchObject(BY_SERVICE),
    told: [BY_SERVICE, REUSED, BY_SERVICE],
  },
  'was refused by the gateway': {
    credit: async () => world.transactions.internalTransactionId,
    first: async (id, key) => expect(await refund(id, key)).toMatchObject(BY_GATEWAY),
    told: [BY_GATEWAY, BY_GATEWAY, BY_GATEWAY],
  },
};

/** What is under way is held by test/scenarios/faults/one-key.test.ts and test/money/execute.test.ts. */
const UNDER_WAY = 'is under way';

it('each row of the table of second calls is made', async () => {
  const rows = columnOf(await readPage('docs/refunds.md'), 'the first refund');
  const made = [UNDER_WAY, ...Object.keys(SECOND_CALLS)];
  expect(rows.map((row) => made.find((start) => row.startsWith(start)) ?? row)).toEqual(made);
});

it.each(Object.entries(SECOND_CALLS))('a second call where the first refund %s', async (_row, second) => {
  const [id, key, [again, otherInput, otherKey]] = [await second.credit(), randomUUID(), second.told];
  await second.first(id, key);
  expect(await refund(id, key)).toMatchObject(again ?? {});
  expect(await refund(id, key, {}, 'Another')).toMatchObject(otherInput ?? {});
  expect(await refund(id)).toMatchObject(otherKey ?? {});
  expect(await refund(id, key, { sub: 'another' })).toMatchObject(otherKey ?? {});
});
