import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sendQuery } from '../helpers/gateway.ts';
import { demoAddresses, type Program, startProgram } from '../helpers/program.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const SECRET = 'one secret for both processes';
const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { cursor amount { amount } } }';

let redis: RedisServer;
let folder: string;
let a: Program;
let b: Program;
let addresses: Awaited<ReturnType<typeof demoAddresses>>;
let other: string;
// biome-ignore lint/suspicious/noExplicitAny: what the sandbox says of itself.
let seeded: any;

beforeAll(async () => {
  redis = await startRedis();
  folder = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  const shared = { PORT: '0', REDIS_URL: redis.url, WEBHOOK_SECRET: SECRET, DATA_DIR: folder };
  a = startProgram('src/start.js', { ...shared, SANDBOX_PORT: '0' });
  addresses = await demoAddresses(a);
  b = startProgram('src/start.js', { ...shared, UPSTREAM_URL: addresses.sandbox });
  [, other = ''] = await b.says(/"url":"([^"]+)"/);
  seeded = await (await fetch(`${addresses.sandbox}/sandbox`)).json();
});
afterAll(async () => {
  await b?.end('SIGKILL');
  await a?.end('SIGKILL');
  await redis?.stop();
  await rm(folder, { recursive: true, force: true });
});

const bearer = () => ({ authorization: `Bearer ${addresses.token}` });
const credit = async (amount: string) => {
  const response = await fetch(`${addresses.sandbox}/sandbox/spei-credits`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ clabe: seeded.accounts[0].clabe, amount }),
  });
  expect(response.ok).toBe(true);
};

it.each(TRANSPORTS)(
  'a credit delivered to one process reaches a subscriber of the other, over %s',
  async (_, subscribe) => {
    const { data } = await sendQuery(`${other}/graphql`, '{ eventCursor }', {}, bearer());
    await using subscriber = subscribe(`${other}/graphql`, addresses.token, {
      query: MONEY_IN,
      variables: { after: data.eventCursor },
    });
    for (const amount of ['1.00', '2.00', '3.00']) await credit(amount);
    await subscriber.received(3);
    const cursor = subscriber.results[0]?.data.moneyIn.cursor;
    await using resumed = subscribe(`${addresses.gateway}/graphql`, addresses.token, {
      query: MONEY_IN,
      variables: { after: cursor },
    });
    await resumed.received(2);
    expect(resumed.results.map((result) => result.data.moneyIn.amount.amount)).toEqual(['2.00', '3.00']);
  },
);

const RECEIPT = 'subscription ($id: ID!) { cepStatus(transactionId: $id) { kind cep { status } } }';

/** Begins a penny validation at the other process. */
async function validate(idempotencyKey: string): Promise<string> {
  const { data } = await sendQuery(
    `${other}/graphql`,
    `mutation ($input: CreatePennyValidationInput!) {
      createPennyValidation(input: $input) { ... on CreatePennyValidationSuccess { transaction { id } } }
    }`,
    {
      input: {
        idempotencyKey,
        sourceInstrumentId: seeded.centralizingInstrumentId,
        destinationInstrumentId: seeded.clabeInstrumentIds[0],
      },
    },
    bearer(),
  );
  return data.createPennyValidation.transaction.id;
}

it('a receipt delivered to one process completes the subscription of the other', async () => {
  const id = await validate('two-processes');
  const [, subscribe] = TRANSPORTS[0];
  await using subscriber = subscribe(`${other}/graphql`, addresses.token, {
    query: RECEIPT,
    variables: { id },
  });
  expect(await subscriber.ended).toBeUndefined();
  expect(subscriber.results.at(-1)?.data.cepStatus).toMatchObject({
    kind: 'CHANGE',
    cep: { status: 'COMPLETED' },
  });
});

it('who was away as its receipt came, and returns to another process, is told it at once, over each transport', async () => {
  const isThere = async (id: string) => {
    const query = 'query ($id: ID!) { transaction(id: $id) { cep { final } } }';
    const { data } = await sendQuery(`${other}/graphql`, query, { id }, bearer());
    return data.transaction?.cep?.final === true;
  };
  // At once, as a receipt takes its time.
  const returns = TRANSPORTS.map(async ([transport, subscribe]) => {
    const id = await validate(`away over ${transport}`);
    const operation = { query: RECEIPT, variables: { id } };
    const first = subscribe(`${addresses.gateway}/graphql`, addresses.token, operation);
    await first.received(1);
    await first.leave();
    await until(() => isThere(id));
    await using returned = subscribe(`${other}/graphql`, addresses.token, operation);
    expect(await returned.ended, transport).toBeUndefined();
    expect(returned.results.map(({ data }) => data.cepStatus)).toEqual([
      { kind: 'SNAPSHOT', cep: { status: 'COMPLETED' } },
    ]);
  });
  await Promise.all(returns);
});

it('several processes listen on one port where they are told to', async () => {
  await using sharing = startProgram('src/start.js', {
    PORT: '0',
    REUSE_PORT: 'true',
    REDIS_URL: redis.url,
    WEBHOOK_SECRET: SECRET,
    UPSTREAM_URL: addresses.sandbox,
    DATA_DIR: folder,
  });
  const [, url = ''] = await sharing.says(/"url":"([^"]+)"/);
  await using second = startProgram('src/start.js', {
    PORT: new URL(url).port,
    REUSE_PORT: 'true',
    REDIS_URL: redis.url,
    WEBHOOK_SECRET: SECRET,
    UPSTREAM_URL: addresses.sandbox,
    DATA_DIR: folder,
  });
  await second.says(/Pasarela is listening/);
  const answer = async () => (await fetch(`${url}/healthz`, { headers: { connection: 'close' } })).status;
  expect(await Promise.all(Array.from({ length: 20 }, answer))).toEqual(
    Array.from({ length: 20 }, () => 200),
  );
  expect(await sharing.end('SIGTERM')).toBe(0);
  expect(await answer()).toBe(200);
  expect(await second.end('SIGTERM')).toBe(0);
});

it('a process that is interrupted with nothing in flight ends cleanly', async () => {
  expect(await b.end('SIGINT')).toBe(0);
  expect(await a.end('SIGINT')).toBe(0);
});
