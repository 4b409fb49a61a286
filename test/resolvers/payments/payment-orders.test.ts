import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GraphQLError } from 'graphql';
import { describe, expect, it } from 'vitest';
import { type Answered, type Attempt, GivenUpError } from '../../../src/common/attempt.ts';
import { toPublicError } from '../../../src/graphql/public-errors.ts';
import type { MoneyOrder } from '../../../src/money/call.ts';
import { createMoney } from '../../../src/money/execute.ts';
import { openSqliteRecords } from '../../../src/money/sqlite/sqlite-record.ts';
import type { Context } from '../../../src/operation/context.ts';
import { attemptOf, createMoneyOut, renewal } from '../../../src/resolvers/payments/paying.ts';
import { refundTransaction } from '../../../src/resolvers/payments/refund.ts';
import { recordingLogger } from '../../helpers/events.ts';
import { CLIENT_ID } from '../../helpers/http-stub.ts';
import { serviceError } from '../../money/upstream.ts';

const INPUT = {
  idempotencyKey: 'one key of everybody',
  sourceInstrumentId: randomUUID(),
  destinationInstrumentId: randomUUID(),
  amount: '1.00',
  currency: 'MXN',
  description: 'Traspaso',
  externalReference: '1',
};

/** The order of money out that a customer of the client gives. */
async function orderOf(customerId: string | undefined): Promise<MoneyOrder> {
  const orders: MoneyOrder[] = [];
  const error = new GivenUpError('it is not sent', { dispatched: false });
  const context = {
    identity: { caller: { clientId: CLIENT_ID, customerId }, requestedBy: 'somebody' },
    services: {
      settleLater: ({ requestedBy }: Context['identity']) => ({ credential: requestedBy }),
      money: {
        execute: async (order: MoneyOrder) => {
          orders.push(order);
          return { kind: 'nothing-moved', because: { kind: 'failed', error } };
        },
      },
    },
    reads: { session: {}, forget: () => undefined },
    budget: {},
    // An order needs nothing else of it.
  } as unknown as Context;
  await expect(createMoneyOut(INPUT, context)).rejects.toMatchObject({ dispatched: false });
  return orders[0] as MoneyOrder;
}

it('money out of two customers under the same key is not the same to the service', async () => {
  const keys = await Promise.all(
    [undefined, randomUUID(), randomUUID()].map(async (customer) => {
      return (await orderOf(customer)).calls.upstreamKey?.(undefined);
    }),
  );
  expect(new Set(keys).size).toBe(3);
});

it('an order says how it is settled under its caller’s own credential', async () => {
  expect((await orderOf(undefined)).later).toEqual({ credential: 'somebody' });
});

it('a payment that is recorded as done with what is no transaction is unknown, and neither a success nor an error that lets an app pay again', async () => {
  const answer = { status: 200, text: '{}', body: {} };
  const context = {
    identity: { caller: { clientId: CLIENT_ID }, requestedBy: 'somebody' },
    services: { money: { execute: async () => ({ kind: 'done', answer, replayed: true }) } },
    reads: { session: {}, forget: () => undefined },
    budget: {},
    // An order needs nothing else of it.
  } as unknown as Context;
  await expect(createMoneyOut(INPUT, context)).rejects.toMatchObject({
    name: 'OutcomeUnknown',
    safeToRetry: false,
    key: INPUT.idempotencyKey,
  });
});

describe.each([
  ['the check of an order', (context: Context) => createMoneyOut(INPUT, context)],
  [
    'the read of a credit',
    (context: Context) =>
      refundTransaction(
        { idempotencyKey: INPUT.idempotencyKey, transactionId: randomUUID(), as: { reason: 'No' } },
        context,
      ),
  ],
])('a defect in %s', (_name, give) => {
  it('is told and logged as INTERNAL, and nothing is sent', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pasarela-orders-'));
    const records = openSqliteRecords(join(folder, 'money.sqlite'));
    const logger = recordingLogger();
    const money = createMoney({ records, logger });
    const defect = () => {
      throw new TypeError('a defect');
    };
    const context = {
      identity: { caller: { clientId: CLIENT_ID }, requestedBy: 'somebody' },
      services: { money },
      reads: { session: { rest: { check: defect }, original: defect }, forget: () => undefined },
      budget: { deadline: Date.now() + 60_000, signal: new AbortController().signal },
      // An order needs nothing else of it.
    } as unknown as Context;
    const error = await give(context).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'GivenUpError', cause: { message: 'a defect' } });
    expect(toPublicError(new GraphQLError('', { originalError: error as Error }))).toBeUndefined();
    await money.stop();
    await records.stop();
    await rm(folder, { recursive: true });
    const told = logger.lines.filter(({ message }) => message === 'payment');
    expect(told).toMatchObject([{ fields: { outcome: 'not_sent', code: 'INTERNAL' } }]);
  });
});

const answer = (status: number, text: string): Answered => ({
  ...{ kind: 'answered', status, text, body: undefined, retryAfterMs: undefined },
});

it('a 401 that is not known to be the service’s has money out alone sent again, once it may have been sent before', () => {
  const own = { ...answer(401, ''), body: JSON.parse(serviceError(401)) };
  const page = answer(401, '<h1>Request blocked</h1>');
  const sentAgain = (mutation: Parameters<typeof renewal>[0]) =>
    [1, 2].map((number) => [renewal(mutation, number)(own), renewal(mutation, number)(page)]);
  expect(sentAgain('createMoneyOut')).toEqual([
    [true, false],
    [true, true],
  ]);
  for (const mutation of [
    'createInternalTransaction',
    'createPennyValidation',
    'refundTransaction',
  ] as const) {
    expect(sentAgain(mutation)).toEqual([
      [true, false],
      [true, false],
    ]);
  }
});

it('what the gateway keeps from a narrowed caller is a refusal of the first request, and says nothing of it on a repeat', () => {
  const kept: Attempt = { ...answer(404, '{}'), synthesized: true };
  expect(attemptOf(kept, 1)).toBe(kept);
  expect(attemptOf(kept, 2)).toMatchObject({ kind: 'failed', error: { dispatched: false } });
  expect(attemptOf(answer(404, '{}'), 2)).toMatchObject({ kind: 'answered', status: 404 });
});
