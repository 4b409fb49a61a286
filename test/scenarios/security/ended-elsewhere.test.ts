import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { newToken } from '../../helpers/new-token.ts';
import { connect } from '../../helpers/socket.ts';
import { subscribeOverSse, TRANSPORTS } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, payable } from '../faults/payments.ts';

/** It is read of the service under the caller's token. */
const ACCOUNTS = '{ client { accounts(first: 1) { nodes { id } } } }';
/** Nothing of it is. */
const MONEY_IN = { query: 'subscription { moneyIn { cursor amount { amount } } }' };
/** Nothing of it is, either: it needs only a caller. */
const CURSOR = '{ eventCursor }';

let sandbox: Sandbox;
let gateway: RunningGateway;
/** The token of the beginning. */
let first: string;
let clabe: string;
beforeEach(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, choices: { newTokenEndsOlder: true } });
  gateway = await startGateway({ sandbox });
  first = sandbox.accessToken;
  clabe = (await control(sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
afterEach(async () => {
  await gateway.stop();
  await sandbox.stop();
});

/** The service gives a new token, and ends the ones before. */
const withdraw = () => newToken(sandbox);

const credit = (amount: string) => control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
const asFirst = (document: string, variables = {}) =>
  gateway.query(document, variables, { authorization: `Bearer ${first}` });
const codeOf = ({ errors }: { readonly errors?: Awaited<ReturnType<typeof asFirst>>['errors'] }): unknown =>
  errors?.[0]?.extensions['code'];
const requests = async (route: string): Promise<number> =>
  (await control(sandbox, 'GET', '/sandbox/requests')).counts[route] ?? 0;
const probes = () => requests('GET /v1/clients/{clientId}/instruments');

/** A stream of events alone over SSE, which has begun. */
async function followed() {
  const feed = subscribeOverSse(gateway.graphql, first, MONEY_IN);
  await until(async () => {
    await credit('1.00');
    return feed.results.length > 0;
  });
  return feed;
}

/** The code with which a stream over SSE has ended. */
async function endOf(feed: ReturnType<typeof subscribeOverSse>): Promise<unknown> {
  await feed.ended;
  return feed.results.at(-1)?.errors?.[0]?.extensions?.['code'];
}

describe('a token that the service has withdrawn ends all that has it, whoever hears of it', () => {
  it('where a query over HTTP is refused: a stream over SSE, a socket, and what is believed of it', async () => {
    await using feed = await followed();
    const closed = (await connect(gateway, `Bearer ${first}`)).closed();
    await withdraw();
    expect(codeOf(await asFirst(ACCOUNTS))).toBe('UNAUTHENTICATED');
    expect(await endOf(feed)).toBe('UNAUTHENTICATED');
    expect(await closed).toBe(4403);
    expect(codeOf(await asFirst(CURSOR))).toBe('UNAUTHENTICATED');
  });

  it('where a query over a socket is refused: a stream over SSE', async () => {
    await using feed = await followed();
    const socket = await connect(gateway, `Bearer ${first}`);
    const closed = socket.closed();
    await withdraw();
    socket.ask('1', ACCOUNTS);
    expect(await endOf(feed)).toBe('UNAUTHENTICATED');
    expect(await closed).toBe(4403);
  });

  it('where an event could not be read over SSE: a socket', async () => {
    await using feed = subscribeOverSse(gateway.graphql, first, {
      query: 'subscription { moneyIn { cursor transaction { id } } }',
    });
    await until(async () => {
      await credit('1.00');
      return feed.results.length > 0;
    });
    const closed = (await connect(gateway, `Bearer ${first}`)).closed();
    await withdraw();
    await credit('2.00');
    expect(await endOf(feed)).toBe('UNAUTHENTICATED');
    expect(await closed).toBe(4403);
  });

  it('where a status could not be read over SSE: a socket, however its header is written', async () => {
    const { input } = await payable(sandbox, 'createMoneyOut', 'on its way');
    const paid = await asFirst(
      'mutation ($input: CreateMoneyOutInput!) { createMoneyOut(input: $input) { ... on CreateMoneyOutSuccess { transaction { id } } } }',
      { input },
    );
    await using status = subscribeOverSse(gateway.graphql, first, {
      query: 'subscription ($id: ID!) { transactionStatus(transactionId: $id) { transaction { status } } }',
      variables: { id: paid.data.createMoneyOut.transaction.id },
    });
    await status.received(1);
    const closed = (await connect(gateway, `bearer  ${first}`)).closed();
    await withdraw();
    expect(await endOf(status)).toBe('UNAUTHENTICATED');
    expect(await closed).toBe(4403);
  });

  it('where nothing of it is open, it is believed no more', async () => {
    expect(codeOf(await asFirst(ACCOUNTS))).toBeUndefined();
    await withdraw();
    expect(codeOf(await asFirst(ACCOUNTS))).toBe('UNAUTHENTICATED');
    await until(async () => codeOf(await asFirst(CURSOR)) === 'UNAUTHENTICATED');
  });

  it.each(TRANSPORTS)(
    'where a payment is repeated, and its answer cannot say so: a stream over %s',
    async (_, subscribe) => {
      await gateway.stop();
      gateway = await startGateway({ sandbox, config: { operationTimeoutMs: 5_000 } });
      const payment = await payable(sandbox, 'createMoneyOut', 'lost at first');
      await control(sandbox, 'POST', '/sandbox/faults', {
        match: { method: 'POST', path: payment.path },
        fault: 'reset-before',
      });
      await using feed = subscribe(gateway.graphql, first, MONEY_IN);
      await until(async () => {
        await credit('1.00');
        return feed.results.length > 0;
      });
      const pay = async () => {
        const answer = await asFirst(documentOf('createMoneyOut'), { input: payment.input });
        return answer.data?.result?.__typename ?? codeOf(answer);
      };
      expect(await pay()).toBe('OutcomeUnknown');
      await control(sandbox, 'DELETE', '/sandbox/faults');
      await withdraw();
      expect(await pay()).toBe('OutcomeUnknown');
      await feed.ended;
      expect(await pay()).toBe('UNAUTHENTICATED');
    },
  );
});

describe('where one endpoint alone refuses a token', () => {
  it('to a query over HTTP, it is asked about once, and what has it goes on', async () => {
    await using feed = await followed();
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/accounts' },
      fault: { status: 401 },
    });
    const before = await probes();
    expect(codeOf(await asFirst(ACCOUNTS))).toBe('UNAUTHENTICATED');
    await until(async () => (await probes()) === before + 1);
    const received = feed.results.length;
    await credit('3.00');
    await feed.received(received + 1);
    expect(feed.results.at(-1)?.data?.moneyIn.amount.amount).toBe('3.00');
    expect(codeOf(await asFirst(CURSOR))).toBeUndefined();
  });
});
