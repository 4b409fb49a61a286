import { createClient } from 'graphql-ws';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type Sandbox, startSandbox } from '#sandbox';
import { createSocket } from '../../../packages/client/src/graphql-ws.ts';
import { follow, isGap, memoryIntents, pay, typed, watch } from '../../../packages/client/src/index.ts';
import { type SteppedClock, steppedClock } from '../../helpers/clock.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { newToken } from '../../helpers/new-token.ts';
import { connect } from '../../helpers/socket.ts';
import { TRANSPORTS } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, payable } from '../faults/payments.ts';

/** It is read of the service under the caller's token. */
const ACCOUNTS = '{ client { accounts(first: 1) { nodes { id } } } }';
const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { cursor amount { amount } } }';
const WITH_RELATION =
  'subscription ($after: Cursor) { moneyIn(after: $after) { cursor transaction { id } } }';
const STATUS =
  'subscription ($transactionId: ID!) { transactionStatus(transactionId: $transactionId) { kind transaction { id status } } }';
/** When the status is read again, where no message hints at it. */
const POLL = 2_000;

let sandbox: Sandbox;
let clock: SteppedClock;
let gateway: RunningGateway;
/** The token of the beginning. */
let first: string;
let clabe: string;
beforeEach(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices: { newTokenEndsOlder: true } });
  clock = steppedClock();
  gateway = await startGateway({ sandbox, clock });
  first = sandbox.accessToken;
  clabe = (await control(sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
afterEach(async () => {
  await gateway.stop();
  await sandbox.stop();
});

/** The service gives a new token. The ones before end, though their `exp` is an hour away. */
const renewed = () => newToken(sandbox);

const credit = (amount: string) => control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
const fault = (path: string, what: object) =>
  control(sandbox, 'POST', '/sandbox/faults', { match: { path }, fault: what });
const requests = async (route: string): Promise<number> =>
  (await control(sandbox, 'GET', '/sandbox/requests')).counts[route] ?? 0;

/** A payment that is not settled, so that its status is followed. */
async function moneyOut(): Promise<string> {
  const { input } = await payable(sandbox, 'createMoneyOut', 'followed');
  const { data } = await gateway.query(documentOf('createMoneyOut'), { input });
  return data.result.moved.id;
}

const codesOf = (got: Awaited<ReturnType<typeof connect>>['got'], id: string): unknown[] =>
  got.flatMap(({ id: own, type, payload }) =>
    own === id && type === 'next'
      ? [payload.errors?.[0]?.extensions.code ?? payload.data.result?.__typename]
      : [],
  );

describe('a token that the service ends before its exp, at an app with one socket', () => {
  it('is replaced once: a feed, a status, a query and a payment go on under the next', async () => {
    let good = first;
    const asked: boolean[] = [];
    const socket = createSocket({
      url: gateway.graphql,
      webSocketImpl: WebSocket,
      token({ refused }) {
        asked.push(refused);
        return refused ? good : first;
      },
    });
    const transactionId = await moneyOut();
    const { input } = await payable(sandbox, 'createMoneyOut', 'paid later');
    const feed = follow(
      socket,
      typed<{ moneyIn: { cursor: string; amount: { amount: string } } }, { after: string }>(MONEY_IN),
      { presence: () => () => {} },
    );
    const seen: string[] = [];
    void (async () => {
      for await (const item of feed) if (!isGap(item)) seen.push(item.amount.amount);
    })();
    const watched = watch(
      socket,
      typed<{ transactionStatus: { kind: string } }, { transactionId: string }>(STATUS),
      { transactionId },
      () => () => {},
    );
    const kinds: string[] = [];
    void (async () => {
      for await (const { kind } of watched) kinds.push(kind);
    })();
    await until(() => feed.status === 'live' && kinds.length === 1);
    await credit('1.00');
    await until(() => seen.length === 1);

    good = await renewed();
    await clock.pass(POLL);
    await until(() => kinds.length === 2 && feed.status === 'live');
    expect(asked).toEqual([false, true]);
    await credit('2.00');
    await until(() => seen.length === 2);
    expect(await socket.query(ACCOUNTS, {})).toMatchObject({ data: { client: { accounts: {} } } });

    // The first to notice may also be a payment.
    good = await renewed();
    const { idempotencyKey: _own, ...fields } = input;
    const outcome = await pay(
      socket,
      typed<{ createMoneyOut: { __typename: string } }, { input: { idempotencyKey: string } }>(
        'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { __typename } }',
      ),
      fields,
      { store: memoryIntents() },
    );
    expect(outcome).toMatchObject({ status: 'done' });
    expect(asked).toEqual([false, true, true]);
    await credit('3.00');
    await until(() => seen.length === 3);
    expect(seen).toEqual(['1.00', '2.00', '3.00']);
    feed.close();
    watched.close();
    socket.close();
  });

  it('costs a stock client no subscription: it connects again, with what its connectionParams then say', async () => {
    let good = first;
    const transactionId = await moneyOut();
    const seen: string[] = [];
    const client = createClient({
      url: gateway.graphql.replace('http', 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: () => ({ authorization: `Bearer ${good}` }),
      retryWait: async () => undefined,
    });
    client.subscribe<{ transactionStatus: { kind: string } }>(
      { query: STATUS, variables: { transactionId } },
      {
        next: ({ data, errors }) => seen.push(data?.transactionStatus.kind ?? String(errors)),
        error: (error) => seen.push(String(error)),
        complete: () => seen.push('complete'),
      },
    );
    await until(() => seen.length === 1);
    good = await renewed();
    await clock.pass(POLL);
    await until(() => seen.length === 2);
    expect(seen).toEqual(['SNAPSHOT', 'SNAPSHOT']);
    await client.dispose();
  });
});

describe('where the service refuses the token of a socket before its exp', () => {
  const bearer = () => `Bearer ${first}`;

  it('the answer that says so comes first, then all sockets of the token are closed with 4403', async () => {
    const [asking, idle] = [await connect(gateway, bearer()), await connect(gateway, bearer())];
    const codes = Promise.all([asking.closed(), idle.closed()]);
    await renewed();
    asking.ask('1', ACCOUNTS);
    expect(await codes).toEqual([4403, 4403]);
    expect(codesOf(asking.got, '1')).toEqual(['UNAUTHENTICATED']);
    expect(asking.got.at(-1)).toMatchObject({ type: 'complete', id: '1' });
    // Nobody is believed any more who comes back with it.
    const again = new WebSocket(gateway.graphql.replace('http', 'ws'), 'graphql-transport-ws');
    const refused = new Promise((resolve) => again.once('close', resolve));
    again.once('open', () =>
      again.send(JSON.stringify({ type: 'connection_init', payload: { authorization: bearer() } })),
    );
    expect(await refused).toBe(4403);
  });

  it('a payment under way is answered first, and nothing else is begun meanwhile', async () => {
    const payment = await payable(sandbox, 'createMoneyOut', 'under way');
    const socket = await connect(gateway, bearer());
    const closed = socket.closed();
    socket.ask('feed', 'subscription { moneyIn { cursor } }');
    await until(() => socket.got.some(({ payload }) => payload?.bookmarks !== undefined));
    await fault(payment.path, { delayMs: 1_500 });
    const variables = { input: payment.input };
    socket.send({
      type: 'subscribe',
      id: 'pay',
      payload: { query: documentOf('createMoneyOut'), variables },
    });
    await until(async () => (await requests(payment.route)) === 1);
    await renewed();
    socket.ask('ask', ACCOUNTS);
    await socket.end('ask');
    const probes = () => requests('GET /v1/clients/{clientId}/instruments');
    await until(async () => (await probes()) > 1);
    socket.ask('late', '{ __typename }');
    await credit('1.00');
    expect(await closed).toBe(4403);
    expect(codesOf(socket.got, 'ask')).toEqual(['UNAUTHENTICATED']);
    expect(codesOf(socket.got, 'pay')).toEqual(['CreateMoneyOutSuccess']);
  });

  it.each([
    ['a query', ACCOUNTS, '/v1/clients/*/accounts'],
    ['a status', STATUS.replace('($transactionId: ID!)', ''), '/v1/clients/*/transactions/*'],
  ])(
    'and it is one endpoint alone that refuses it, %s ends with that, and the socket stays',
    async (_, query, path) => {
      const socket = await connect(gateway, bearer());
      let code: number | undefined;
      void socket.closed().then((closed) => {
        code = closed;
      });
      const probes = () => requests('GET /v1/clients/{clientId}/instruments');
      const before = await probes();
      await fault(path, { status: 401 });
      socket.ask('1', query.replace('$transactionId', '"11111111-2222-4333-8444-555555555555"'));
      expect(await socket.end('1')).toEqual({ type: 'complete', id: '1' });
      expect(codesOf(socket.got, '1')).toEqual(['UNAUTHENTICATED']);
      await until(async () => (await probes()) === before + 1);
      socket.ask('2', '{ client { id } }');
      expect(await socket.end('2')).toEqual({ type: 'complete', id: '2' });
      expect(socket.got.find(({ id }) => id === '2')?.payload.data.client.id).toBe(sandbox.clientId);
      expect(code).toBeUndefined();
      await socket.close();
    },
  );

  it('and it is an API key that is missing, the socket stays', async () => {
    const socket = await connect(gateway, bearer());
    socket.ask('1', `{ credentials(clientId: "${sandbox.clientId}") { id } }`);
    await socket.end('1');
    expect(socket.got.find(({ id }) => id === '1')?.payload.errors).toMatchObject([
      { extensions: { code: 'UNAUTHENTICATED', header: 'x-api-key' } },
    ]);
    socket.ask('2', ACCOUNTS);
    expect(await socket.end('2')).toEqual({ type: 'complete', id: '2' });
    expect(codesOf(socket.got, '2')).toEqual([undefined]);
    await socket.close();
  });
});

it.each(TRANSPORTS)(
  'over %s an event of which something had to be read comes under the next token, whole',
  async (transport, subscribe) => {
    const { data } = await gateway.query('{ eventCursor }');
    const operation = { query: WITH_RELATION, variables: { after: data.eventCursor } };
    await using ends = subscribe(gateway.graphql, first, operation);
    const paid = await credit('1.00');
    await ends.received(1);
    const good = await renewed();
    const later = await credit('2.00');
    const ended = await ends.ended;
    const last = ends.results.at(-1);
    if (transport === 'SSE') {
      expect(last?.data).toBeUndefined();
      expect(last?.errors?.[0]?.extensions?.['code']).toBe('UNAUTHENTICATED');
    } else expect(ended).toMatchObject({ code: 4403 });
    const events = (results: typeof ends.results) => results.flatMap((result) => result.data?.moneyIn ?? []);
    expect(events(ends.results)).toMatchObject([{ transaction: { id: paid.transaction.id } }]);
    await using next = subscribe(gateway.graphql, good, {
      query: WITH_RELATION,
      variables: { after: events(ends.results)[0].cursor },
    });
    await next.received(1);
    expect(events(next.results)).toMatchObject([{ transaction: { id: later.transaction.id } }]);
  },
);
