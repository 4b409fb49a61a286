import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../packages/sandbox/src/index.ts';
import {
  control,
  type GraphQLAnswer,
  type RunningGateway,
  sendQuery,
  startGateway,
} from '../helpers/gateway.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { folder } from '../helpers/packages.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { subscribeOverWebSocket } from '../helpers/subscriber.ts';
import { readPage } from './pages.ts';

const page = await readPage('docs/clients/by-hand.md');
/** Every operation of the page by its name. */
const operations = new Map(
  [...page.matchAll(/^ *```graphql\n(.*?)^ *```$/gms)].map(([, text = '']) => [
    /^\s*(?:query|mutation|subscription) (\w+)/.exec(text)?.[1] ?? '',
    text,
  ]),
);
/** What the page says that a step needs, as an identity provider writes it. */
const scopes = new Map(
  [...page.matchAll(/^\| ([^|]+) \| ((?:`[\w:]+` ?)+)\|$/gm)].map(([, step = '', names = '']) => [
    step,
    names.replaceAll('`', '').trim(),
  ]),
);
const [FOLLOW, CHOOSE, PAY, ASK, END, REGISTER, REFUND, VERIFY] = [...scopes.values()];

let sandbox: Sandbox;
let gateway: RunningGateway;
// biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
let world: any;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, webhookHosts: ['example.mx'] });
  gateway = await startGateway({ sandbox, config: { ...PATIENT, service: serviceFor(sandbox) } });
  world = await control(sandbox, 'GET', '/sandbox');
});
afterAll(async () => {
  await gateway?.stop();
  await sandbox?.stop();
});

const textOf = (name: string): string => operations.get(name) ?? expect.fail(`The page has no ${name}.`);

/** Sends an operation of the page with a token of these scopes alone. */
const answerTo = async (name: string, scope: string | undefined, variables = {}): Promise<GraphQLAnswer> =>
  gateway.query(textOf(name), variables, { authorization: `Bearer ${await callerToken({ scope })}` });

async function dataOf(name: string, scope: string | undefined, variables = {}) {
  const { data, errors } = await answerTo(name, scope, variables);
  expect(errors, name).toBeUndefined();
  return data;
}

const subscribe = async (name: string, scope: string | undefined, variables: Record<string, unknown>) =>
  subscribeOverWebSocket(gateway.graphql, await callerToken({ scope }), {
    query: textOf(name),
    variables,
  });

const arrive = (amount: string) =>
  control(sandbox, 'POST', '/sandbox/spei-credits', { clabe: world.accounts[0].clabe, amount });

/** What the page has an app decide on. */
const SHIPPED = { decision: 'ACCEPTED', subCategory: 'SPEI_CREDIT', rawSubCategory: 'SPEI_CREDIT' };

/** Steps 2 and 3 of the page: the list, oldest first, and the place behind it. */
async function listed(start: string) {
  // biome-ignore lint/suspicious/noExplicitAny: what the page's own document selects.
  const list: any[] = [];
  for (let before = null, isMore = true; isMore; ) {
    const { events } = await dataOf('Latest', FOLLOW, { before });
    list.unshift(...events.nodes);
    ({ startCursor: before, hasPreviousPage: isMore } = events.pageInfo);
  }
  return { list, place: list.at(-1)?.cursor ?? start };
}

it('names steps with their scopes, rules of PROTOCOL.md, and operations that are run here', async () => {
  expect([...scopes.keys()]).toHaveLength(8);
  const named = [...page.matchAll(/\(([A-Z]\d+(?:, [A-Z]\d+)*)\)/g)].flatMap(([, ids = '']) =>
    ids.split(', '),
  );
  const rules = [...(await readPage('PROTOCOL.md')).matchAll(/^\| ([A-Z]\d+) \|/gm)].map(([, id]) => id);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((id) => !rules.includes(id))).toEqual([]);
  expect([...operations.keys()]).toEqual([
    'Sources',
    'Recipients',
    'RegisterCard',
    'Start',
    'Latest',
    'MoneyIn',
    'PayOut',
    'Became',
    'Refundable',
    'Refund',
    'Verify',
    'Receipt',
    'Follow',
    'Proof',
  ]);
});

it('tells codes apart as PROTOCOL.md does, and names no other', async () => {
  const [, table = ''] = page.split('\n## What comes instead\n');
  const rows = [...table.matchAll(/^\| (.*?) \| .* \| .* \|$/gm)].map(([, codes = '']) => [
    ...codes.matchAll(/`([A-Z_]{5,})`/g),
  ]);
  const codes = rows.map((row) => row.map(([, code]) => code));
  const { E4 } = Object.fromEntries(
    [...(await readPage('PROTOCOL.md')).matchAll(/^\| (E4) \| ([^.]*)\./gm)].map(([, id, text]) => [
      id,
      text,
    ]),
  );
  expect([...(E4 ?? '').matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code)).toEqual(
    codes.find((row) => row.includes('FORBIDDEN')),
  );
  const listed = (await readPage('docs/graph.md')).split('\n## Error codes\n')[1];
  expect(codes.flat()).toHaveLength(9);
  for (const code of codes.flat()) expect(listed).toContain(`\`${code}\``);
});

it('names the rules without which an app pays twice, or ships for what nobody knows', () => {
  for (const rule of ['P2', 'P3', 'P4', 'P8', 'P12', 'P13', 'P14', 'P15', 'B1', 'K1', 'K2', 'K3', 'T7'])
    expect(page, rule).toMatch(new RegExp(`\\((?:\\w+, )*${rule}(?:, \\w+)*\\)`));
  expect(page).toContain('for `INFORMED` only where `subCategory` is `INT_CREDIT`');
  const [, saved = ''] = /\n\| saved \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)/.exec(page) ?? [];
  expect([...saved.matchAll(/^\| ([\w, ]+) \|/gm)].map(([, name]) => name)).toEqual([
    'key, input, times',
    'owner',
    'calls',
    'end',
    'seen',
  ]);
});

it('reads a body before its status: errors come with 200, and GraphQL with other statuses too', async () => {
  const answered = async (text: string, scope = CHOOSE) =>
    gateway.query(
      text,
      {},
      { authorization: `Bearer ${await callerToken({ scope })}`, accept: 'application/json' },
    );
  for (const [text, code] of [
    ['{ eventCursor }', 'FORBIDDEN'],
    ['{', 'GRAPHQL_PARSE_FAILED'],
    ['{ nothing }', 'GRAPHQL_VALIDATION_FAILED'],
  ] as const)
    expect(await answered(text)).toMatchObject({ status: 200, errors: [{ extensions: { code } }] });
  const asText = {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: '{"query":"{ eventCursor }"}',
  };
  expect((await fetch(gateway.graphql, asText)).status).toBe(415);
  const stream = await answered('subscription { moneyIn { cursor } }', FOLLOW);
  expect(stream).toMatchObject({ status: 406, errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] });
});

it('starts a gateway in service mode on the sandbox, and makes a token with scopes for it', async () => {
  const [starts = '', makes = ''] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text]) => text);
  const shell = async (script: string) =>
    (await promisify(execFile)('sh', ['-c', script], { cwd: folder('.') })).stdout;
  expect(starts.trim().split('\n').at(-1)).toBe('npm start');
  const said = await shell(starts.replace('npm start', 'env'));
  const set = [...said.matchAll(/^((?:AUTH|UPSTREAM)_\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value,
  ]);
  expect(set).toHaveLength(7);
  const environment = { ...Object.fromEntries(set), PORT: '0', SANDBOX_PORT: '0', LOG_LEVEL: 'error' };
  await using program = startProgram('src/start.js', environment);
  const { gateway: url } = await demoAddresses(program);
  const token = (await shell(`${starts.split('\n')[0]}\n${makes}`)).trim();
  const headers = { authorization: `Bearer ${token}` };
  const document = '{ eventCursor client { id } payments(first: 1) { nodes { id } } }';
  const { data, errors } = await sendQuery(`${url}/graphql`, document, {}, headers);
  expect(errors).toBeUndefined();
  expect(data.client.id).toBe(environment.UPSTREAM_CLIENT_ID);
});

it('misses nothing between an empty list and the stream, nor between a list and the stream', async () => {
  const { eventCursor: start } = await dataOf('Start', FOLLOW);
  const empty = await listed(start);
  expect(empty).toEqual({ list: [], place: start });
  await arrive('10.00');
  {
    await using stream = await subscribe('MoneyIn', FOLLOW, { after: empty.place });
    expect((await stream.received(1))[0]?.data.moneyIn).toMatchObject({
      ...SHIPPED,
      amount: { amount: '10.00' },
    });
  }
  const full = await listed((await dataOf('Start', FOLLOW)).eventCursor);
  expect(full.list).toMatchObject([{ ...SHIPPED, amount: { amount: '10.00' } }]);
  expect(full.place).toBe(full.list[0].cursor);
  await arrive('20.00');
  await using stream = await subscribe('MoneyIn', FOLLOW, { after: full.place });
  expect((await stream.received(1)).map(({ data }) => data.moneyIn.amount.amount)).toEqual(['20.00']);
});

it('finds a source and a recipient, registers one, pays it once, and learns what became of it', async () => {
  const { accounts } = (await dataOf('Sources', CHOOSE)).client;
  const sourceInstrumentId = world.centralizingInstrumentId;
  expect(accounts.nodes.map((node: { instrument: { id: string } }) => node.instrument.id)).toContain(
    sourceInstrumentId,
  );
  const [bank] = world.bankIds;
  const debitCard = {
    cardNumber: '4152313000000001',
    holderName: 'Proveedora SA',
    destinationBankId: bank,
  };
  const { registerInstrument } = await dataOf('RegisterCard', REGISTER, {
    input: { alias: 'Proveedora', rfc: 'ND', sourceBankId: bank, receiver: { debitCard } },
  });
  expect(registerInstrument.__typename).toBe('RegisterInstrumentSuccess');
  const destinationInstrumentId = registerInstrument.instrument.id;
  const { instruments } = (await dataOf('Recipients', CHOOSE)).client;
  expect(instruments.nodes).toContainEqual(
    expect.objectContaining({ id: destinationInstrumentId, alias: 'Proveedora' }),
  );

  const example = JSON.parse(/^```json\n(.*?)^```$/ms.exec(page)?.[1] ?? '').input;
  const input = { ...example, idempotencyKey: randomUUID(), sourceInstrumentId, destinationInstrumentId };
  const refused = await answerTo('PayOut', CHOOSE, { input });
  expect(refused.data).toEqual({ createMoneyOut: null });
  expect(refused.errors).toMatchObject([{ path: ['createMoneyOut'], extensions: { code: 'FORBIDDEN' } }]);
  expect(await dataOf('Became', ASK, { key: input.idempotencyKey })).toEqual({ payment: null });

  const first = (await dataOf('PayOut', PAY, { input })).createMoneyOut;
  expect(first).toMatchObject({ __typename: 'CreateMoneyOutSuccess', replayed: false });
  const { headers } = await fetch(gateway.graphql, { method: 'POST' });
  expect(Math.abs(Date.parse(headers.get('date') ?? '') - Date.now())).toBeLessThan(86_400_000);
  // Its answer was lost: the very same again.
  expect((await dataOf('PayOut', PAY, { input })).createMoneyOut).toEqual({ ...first, replayed: true });
  const { id } = first.transaction;
  expect((await dataOf('Became', ASK, { key: input.idempotencyKey })).payment).toMatchObject({
    state: 'DONE',
    transactionId: id,
  });

  const receipt = {
    query: 'subscription ($id: ID!) { cepStatus(transactionId: $id) { kind } }',
    variables: { id },
  };
  await using none = subscribeOverWebSocket(gateway.graphql, await callerToken({ scope: END }), receipt);
  expect(await none.received(1)).toMatchObject([{ errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] }]);

  await using stream = await subscribe('Follow', END, { id });
  await stream.received(1);
  await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 60 });
  expect(await stream.ended).toBeUndefined();
  expect(stream.results.map(({ data }) => data.transactionStatus.transaction.status)).toEqual([
    'INITIALIZED',
    'LIQUIDATED',
  ]);
  expect((await dataOf('Proof', END, { id })).transaction).toMatchObject({
    status: 'LIQUIDATED',
    trackingId: expect.stringMatching(/\w/),
    amount: { amount: input.amount },
    description: input.description,
    externalReference: input.externalReference,
  });
});

it('verifies a recipient once, and follows the receipt to the name of its holder', async () => {
  const input = {
    idempotencyKey: randomUUID(),
    sourceInstrumentId: world.centralizingInstrumentId,
    destinationInstrumentId: world.clabeInstrumentIds[0],
    externalReference: /"externalReference": "(7\d+)"/.exec(page)?.[1],
  };
  const first = (await dataOf('Verify', VERIFY, { input })).createPennyValidation;
  expect(first).toMatchObject({ __typename: 'CreatePennyValidationSuccess', replayed: false });
  expect((await dataOf('Verify', VERIFY, { input })).createPennyValidation).toEqual({
    ...first,
    replayed: true,
  });
  const { id } = first.transaction;
  {
    await using stream = await subscribe('Receipt', VERIFY, { id });
    expect(await stream.received(1)).toMatchObject([
      { data: { cepStatus: { kind: 'SNAPSHOT', cep: { status: 'PENDING', final: false } } } },
    ]);
  }
  // The app was closed, and the receipt came meanwhile.
  await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 600 });
  await using stream = await subscribe('Receipt', VERIFY, { id });
  expect(await stream.ended).toBeUndefined();
  const { cepStatus } = stream.results.at(-1)?.data ?? {};
  expect(cepStatus.cep).toMatchObject({ status: 'COMPLETED', final: true });
  const { instruments } = (await dataOf('Recipients', CHOOSE)).client;
  const { detail } = instruments.nodes.find(
    (node: { id: string }) => node.id === input.destinationInstrumentId,
  );
  expect(cepStatus.cep.beneficiaryName).toBe(detail.holderName.toUpperCase());
});

it('refunds a credit once under the key of the credit, and tells whether the gateway or the service has refused', async () => {
  const refund = async (id: string, idempotencyKey: string, amount = '30.00') => {
    const as = { amount: { amount, description: 'Devolución' } };
    return (await dataOf('Refund', REFUND, { input: { idempotencyKey, transactionId: id, as } }))
      .refundTransaction;
  };
  const statusOf = async (id: string) => (await dataOf('Refundable', REFUND, { id })).transaction.status;
  const became = async (key: string) => (await dataOf('Became', REFUND, { key })).payment;
  const notAllowed = { __typename: 'PreconditionError', code: 'REFUND_NOT_ALLOWED' };

  const { id } = (await arrive('30.00')).transaction;
  await expect.poll(() => statusOf(id)).toBe('LIQUIDATED');
  const part = await refund(id, `refund-${id}`, '10.00');
  expect(part).toMatchObject({ code: 'INVALID_INPUT', upstream: null });
  expect(await became(`refund-${id}`)).toBeNull();
  const first = await refund(id, `refund-${id}`);
  expect(first).toMatchObject({ __typename: 'RefundTransactionSuccess', replayed: false });
  expect(await refund(id, `refund-${id}`)).toEqual({ ...first, replayed: true });
  expect(await became(`refund-${id}`)).toMatchObject({ state: 'DONE', transactionId: first.refund.id });
  expect(await statusOf(id)).toBe('REFUNDED');
  expect(await refund(id, `refund-${id}-2`)).toMatchObject({ ...notAllowed, upstream: null });
  expect(await became(`refund-${id}-2`)).toBeNull();
  const nobodys = randomUUID();
  expect(await refund(nobodys, `refund-${nobodys}`)).toMatchObject({ code: 'NOT_FOUND', upstream: null });

  await control(sandbox, 'PATCH', '/sandbox/webhooks', { down: true });
  const early = (await arrive('30.00')).transaction.id;
  await control(sandbox, 'PATCH', '/sandbox/webhooks', { down: false });
  expect(await statusOf(early)).toBe('INITIALIZED');
  expect(await refund(early, `refund-${early}`)).toMatchObject({
    ...notAllowed,
    upstream: { httpStatus: 400 },
  });
  expect(await became(`refund-${early}`)).toMatchObject({ state: 'REFUSED' });
});
