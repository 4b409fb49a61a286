import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { silentLogger } from '../../../src/common/logger.ts';
import { EventsGapError, type GapReason, StoreUnavailableError } from '../../../src/events/errors.ts';
import type { EventPage, StoredEvent } from '../../../src/events/log.ts';
import { RedisLog } from '../../../src/events/redis/redis-log.ts';
import type { Context } from '../../../src/operation/context.ts';
import { LogReading } from '../../../src/operation/log-reading.ts';
import { whyRejected } from '../../../src/resolvers/payments/rejected-credit.ts';
import { countingMetrics, moneyIn } from '../../helpers/events.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { speiCredit, startDecider } from '../../helpers/ingress.ts';
import { startRedis } from '../../helpers/redis.ts';

const REFUND = `mutation ($input: RefundTransactionInput!) { refundTransaction(input: $input) {
  __typename ... on UserError { code message field upstream { httpStatus } } } }`;

/** Lets a credit arrive of which the sandbox tells nobody. `deliver` tells of it, with its id as it is written, and gives the status. */
async function arrived({ sandbox, ingress }: RunningGateway) {
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  await control(sandbox, 'PATCH', '/sandbox/webhooks', { down: true });
  const { clabe } = accounts[0];
  const made = await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '20.00' });
  const id: string = made.transaction.id;
  const credit = speiCredit({ body: { beneficiary_account: clabe } });
  const deliver = async (written: string): Promise<number> => {
    const body = JSON.stringify({ ...credit, body: { ...credit.body, id: written } });
    return (await fetch(ingress.url(sandbox.clientId, 'MONEY_IN') ?? '', { method: 'POST', body })).status;
  };
  return { id, deliver };
}

it.each([
  [422, { __typename: 'PreconditionError', code: 'REFUND_NOT_ALLOWED', upstream: null }, 0],
  [201, { __typename: 'RefundTransactionSuccess' }, 1],
] as const)(
  'a credit whose webhook was answered %i, and that still reads LIQUIDATED',
  async (status, told, sent) => {
    await using decider = await startDecider({ status, body: '{"refundReason":"No"}' });
    await using gateway = await startGateway({
      webhooks: ['MONEY_IN'],
      config: { ...PATIENT, moneyInDecisionUrl: decider.url },
    });
    const { sandbox } = gateway;
    const { id, deliver } = await arrived(gateway);
    expect(await deliver(id.toUpperCase())).toBe(status);
    await control(sandbox, 'POST', '/sandbox/completions', { id, outcome: 'done' });
    await control(sandbox, 'DELETE', '/sandbox/requests');

    const key = randomUUID();
    const input = { transactionId: id, idempotencyKey: key, as: { reason: 'No' } };
    for (const time of status === 422 ? ['first', 'again'] : ['once']) {
      const { data } = await gateway.query(REFUND, { input });
      expect(data.refundTransaction, time).toMatchObject(told);
    }
    const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
    const refunds = Object.entries(counts).filter(([route]) => /^POST .*refund/.test(route));
    expect(refunds.map(([, count]) => count)).toEqual(sent === 0 ? [] : [sent]);
    // The gateway's own refusal leaves the key free.
    const { data } = await gateway.query(
      'query ($key: String!) { payment(idempotencyKey: $key) { state } }',
      {
        key,
      },
    );
    expect(data.payment?.state).toBe(status === 422 ? undefined : 'DONE');
  },
);

it('a credit that this gateway has refunded gets no 422, though somebody refuses it later', async () => {
  const verdict = { status: 500, body: '{"refundReason":"No"}' };
  await using decider = await startDecider(verdict);
  await using gateway = await startGateway({
    webhooks: ['MONEY_IN'],
    config: { ...PATIENT, moneyInDecisionUrl: decider.url },
  });
  const { sandbox } = gateway;
  const { id, deliver } = await arrived(gateway);
  expect(await deliver(id)).toBe(503);
  await control(sandbox, 'POST', '/sandbox/completions', { id, outcome: 'done' });
  const input = { transactionId: id, idempotencyKey: randomUUID(), as: { reason: 'No' } };
  const { data } = await gateway.query(REFUND, { input });
  expect(data.refundTransaction).toMatchObject({ __typename: 'RefundTransactionSuccess' });
  verdict.status = 422;
  expect([await deliver(id), await deliver(id)]).toEqual([201, 201]);
  expect(decider.asked).toHaveLength(2);
});

const ID = randomUUID();
const event = (at: number, changes: Partial<StoredEvent>, id = ID): StoredEvent => ({
  cursor: `cursor ${at}`,
  id: `event ${at}`,
  type: 'MONEY_IN',
  receivedAt: '2026-03-02T16:00:00.000Z',
  decision: 'ACCEPTED',
  payload: speiCredit({ body: { id } }),
  ...changes,
});

interface Reading {
  /** Called before each page is read. */
  readonly onRead?: () => void;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline?: () => number;
  readonly signal?: AbortSignal;
}

/** What is found in a log that is read in pages of one event, and how many turns that took. */
async function find(
  events: readonly StoredEvent[],
  { onRead, deadline = () => Number.POSITIVE_INFINITY, signal = new AbortController().signal }: Reading = {},
) {
  let turns = 0;
  const turn = async () => {
    turns += 1;
  };
  const readAfter = async (_clientId: string, cursor: string | null): Promise<EventPage> => {
    onRead?.();
    const at = cursor === null ? 0 : events.findIndex((one) => one.cursor === cursor) + 1;
    return { events: events.slice(at, at + 1), hasMore: at + 1 < events.length };
  };
  const context = {
    identity: { caller: { clientId: 'client' } },
    reads: { events: { readAfter } },
    budget: { log: new LogReading({ turn, deadline, signal }) },
  };
  const why = await whyRejected(ID, context as unknown as Context);
  return { why, turns };
}
const found = async (...how: Parameters<typeof find>) => (await find(...how)).why;

it('a refusal is found behind whatever else the log lets through, and that of another credit is none', async () => {
  const others = [
    event(1, { decision: 'INFORMED' }),
    event(2, { decision: 'REJECTED' }, randomUUID()),
    event(3, { type: 'CEP', payload: { body: { id: ID } } }),
  ];
  expect(await found(others)).toBeUndefined();
  expect(await found([])).toBeUndefined();
  expect(await found([...others, event(4, { decision: 'REJECTED' })])).toMatchObject({
    kind: 'failed',
    error: { dispatched: false, cause: { code: 'REFUND_NOT_ALLOWED', upstream: null } },
  });
});

const gap = (reason: GapReason) => () =>
  new EventsGapError({ oldest: 'a', head: 'b' }, { clientId: 'client', reason });
it.each([
  ['is away', () => new StoreUnavailableError('It is away.'), /Try again with the same key/],
  ['was trimmed as it was read', gap('trimmed'), /Try again with the same key/],
  ['has lost what was to be read next', gap('lost'), /once the gateway has received the next webhook/],
])('nothing is sent where the log %s', async (_, error, message) => {
  const fail = () => {
    throw error();
  };
  expect(await found([], { onRead: fail })).toMatchObject({
    kind: 'failed',
    error: {
      dispatched: false,
      cause: { code: 'STORE_UNAVAILABLE', message: expect.stringMatching(message) },
    },
  });
});

it('a refund goes on after the next event, where Redis has lost the events alone', async () => {
  const redis = await startRedis();
  try {
    const log = new RedisLog({
      ...{ redisUrl: redis.url, retention: 1_000, logger: silentLogger, metrics: countingMetrics() },
      ...{ now: Date.now, names: () => [] },
    });
    await log.settled();
    const client = randomUUID();
    await log.append(client, moneyIn());
    await redis.admin.del(`{${client}}:log`);
    const context = {
      identity: { caller: { clientId: client } },
      reads: { events: log },
      budget: {
        log: new LogReading({
          ...{ turn: async () => undefined, deadline: () => Number.POSITIVE_INFINITY },
          signal: new AbortController().signal,
        }),
      },
    } as unknown as Context;
    expect(await whyRejected(ID, context)).toMatchObject({
      error: { cause: { code: 'STORE_UNAVAILABLE', message: expect.stringMatching(/next webhook/) } },
    });
    await log.append(client, moneyIn());
    expect(await whyRejected(ID, context)).toBeUndefined();
    await log.stop();
  } finally {
    await redis.stop();
  }
});

it('each batch of the log takes a turn, and none is read once the time is over or the caller has left: nothing is sent', async () => {
  const others = [event(1, {}), event(2, {}), event(3, {})];
  expect((await find(others)).turns).toBe(3);
  const unread = { why: { error: { dispatched: false, cause: { code: 'STORE_UNAVAILABLE' } } }, turns: 1 };
  let deadline = Number.POSITIVE_INFINITY;
  const late = () => {
    deadline = 0;
  };
  expect(await find(others, { onRead: late, deadline: () => deadline })).toMatchObject(unread);
  const left = new AbortController();
  expect(await find(others, { onRead: () => left.abort(), signal: left.signal })).toMatchObject(unread);
});
