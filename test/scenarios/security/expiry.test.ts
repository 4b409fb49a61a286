import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { subscribeOverSse, subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { startFront } from '../faults/front.ts';
import { documentOf } from '../faults/payments.ts';

const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { cursor amount { amount } } }';

let sandbox: Sandbox;
let gateway: RunningGateway;
let clabe: string;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
  clabe = (await control(sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

const credit = (amount: string) => control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
const shortToken = (seconds: number) => callerToken({ exp: Date.now() / 1000 + seconds });

describe('a token that ends while a stream is open', () => {
  it('closes the socket with 4403', async () => {
    await using subscriber = subscribeOverWebSocket(gateway.graphql, await shortToken(1.5), {
      query: MONEY_IN,
    });
    await credit('1.00');
    expect(await subscriber.ended).toMatchObject({ code: 4403 });
    expect(subscriber.results.every(({ errors }) => errors === undefined)).toBe(true);
  });

  it('closes also a socket that has asked for nothing', async () => {
    const socket = new WebSocket(gateway.graphql.replace('http', 'ws'), 'graphql-transport-ws');
    await new Promise((resolve) => socket.once('open', resolve));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const authorization = `Bearer ${await shortToken(1)}`;
    socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
    expect(await closed).toBe(4403);
  });

  it('ends a stream over SSE with an error', async () => {
    await using subscriber = subscribeOverSse(gateway.graphql, await shortToken(1.5), { query: MONEY_IN });
    await credit('1.00');
    expect(await subscriber.ended).toBeUndefined();
    expect(subscriber.results.at(-1)?.errors?.[0]).toMatchObject({
      message: 'The access token has expired.',
      extensions: { code: 'UNAUTHENTICATED', requestId: expect.any(String) },
    });
  });

  it('loses nothing: the stock client comes back with a fresh one, and its cursor', async () => {
    const { data } = await gateway.query(
      '{ eventCursor }',
      {},
      { authorization: `Bearer ${await callerToken()}` },
    );
    const payload = { query: MONEY_IN, variables: { after: data.eventCursor } };
    const seen: string[] = [];
    const codes: number[] = [];
    let connections = 0;
    const client = createClient({
      url: gateway.graphql.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: async () => {
        connections += 1;
        return { authorization: `Bearer ${await (connections < 4 ? shortToken(1) : callerToken())}` };
      },
      shouldRetry: () => true,
      retryAttempts: 10,
      retryWait: async () => undefined,
      // The only closing frames here are those of the socket's own events.
      on: { closed: (event) => codes.push((event as { code: number }).code) },
    });
    client.subscribe<{ moneyIn: { cursor: string; amount: { amount: string } } }>(payload, {
      next({ data: result }) {
        if (result == null) return;
        payload.variables.after = result.moneyIn.cursor;
        seen.push(result.moneyIn.amount.amount);
      },
      error: (error) => seen.push(String(error)),
      complete: () => undefined,
    });
    const sent: string[] = [];
    while (connections < 4) {
      sent.push(`${sent.length + 1}.00`);
      await credit(sent.at(-1) ?? '');
    }
    await until(() => seen.length >= sent.length);
    await client.dispose();
    expect(seen).toEqual(sent);
    expect(codes.slice(0, 3)).toEqual([4403, 4403, 4403]);
  });
});

it('a query and a payment over HTTP that have begun are finished when the token ends: the gateway has its own', async () => {
  const { customerIds, instruments } = await control(sandbox, 'GET', '/sandbox');
  const [customer] = customerIds;
  const ofCustomer = (...roles: string[]): string =>
    instruments.find(
      (one: { id: string; role: string; ownerId: string; status: string }) =>
        roles.includes(one.role) && one.ownerId === customer && one.status === 'ACTIVE',
    ).id;
  const input = {
    idempotencyKey: 'the key of a token that ends',
    sourceInstrumentId: ofCustomer('internal'),
    destinationInstrumentId: ofCustomer('card', 'clabe'),
    amount: '1.00',
    description: 'ended',
    externalReference: '1',
  };
  let exp = Number.POSITIVE_INFINITY;
  // The query waits for its one reading; the payment, before it is sent, for whose the instruments are.
  await using front = await startFront(sandbox.url, async ({ path }) => {
    if (path.includes('/instruments/')) await until(() => Date.now() > exp * 1_000 + 500);
    return false;
  });
  await using own = await startGateway({
    sandbox,
    webhooks: false,
    config: {
      service: serviceFor(sandbox),
      upstreamUrl: front.url,
      upstreamTimeoutMs: 60_000,
      operationTimeoutMs: 60_000,
    },
  });
  // Both have begun by then, however slow the machine is.
  exp = Math.ceil(Date.now() / 1_000) + 12;
  const authorization = `Bearer ${await callerToken({ customer_id: customer, exp })}`;
  const [read, paid] = await Promise.all([
    own.query(
      'query ($id: ID!) { instrument(id: $id) { id } }',
      { id: ofCustomer('clabe') },
      { authorization },
    ),
    own.query(documentOf('createMoneyOut'), { input }, { authorization }),
  ]);
  expect(Date.now()).toBeGreaterThan(exp * 1_000);
  expect(read).toMatchObject({ status: 200, data: { instrument: { id: ofCustomer('clabe') } } });
  expect(paid.data.result).toMatchObject({ __typename: 'CreateMoneyOutSuccess', replayed: false });
  const { errors } = await own.query('{ client { id } }', {}, { authorization });
  expect(errors?.[0]?.extensions['code']).toBe('UNAUTHENTICATED');
});
