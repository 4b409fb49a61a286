import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RETRY_WINDOW_MS } from '../../../src/money/backoff.ts';
import { recordName } from '../../../src/money/intent.ts';
import { createPayments } from '../../../src/money/payment-reads.ts';
import type { StoredAnswer } from '../../../src/money/record.ts';
import { openSqliteRecords } from '../../../src/money/sqlite/sqlite-record.ts';
import type { Context } from '../../../src/operation/context.ts';
import { paymentByKey, paymentsPage } from '../../../src/resolvers/payments/payment-list.ts';
import { paymentOf } from '../../../src/resolvers/payments/payment-state.ts';
import { CLIENT_ID } from '../../helpers/http-stub.ts';
import { NOBODYS, SHOWN } from '../../money/orders.ts';

it.each<['createMoneyOut' | 'createInternalTransaction', StoredAnswer['kind'] | 'none', boolean]>([
  // To look for it would send it again, and a question sends no payment.
  ['createMoneyOut', 'none', false],
  ['createMoneyOut', 'unknown', true],
  ['createMoneyOut', 'done', false],
  ['createInternalTransaction', 'none', true],
  ['createInternalTransaction', 'done', false],
])('who asks for %s, with the answer %s, has it looked for: %s', async (operation, kind, isLookedFor) => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-asked-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  cleanup.defer(() => records.stop());
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT_ID, customerId: undefined, key });
  const asked = { operation, customerId: null, ...SHOWN };
  await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: 'input', leaseMs: 0 });
  await records.markSent(name, 'call', '{}', { upstreamKey: key, original: null });
  if (kind !== 'none') await records.answer(name, 'input', { kind, status: 409, text: '{}' });
  const remembered: unknown[] = [];
  const later = { calls: () => expect.unreachable(), credential: 'token', until: 0 };
  await paymentByKey(key, {
    identity: {
      caller: {
        clientId: CLIENT_ID,
        customerId: undefined,
        subject: undefined,
        keyOwner: undefined,
        scopes: new Set(),
        expiresAt: undefined,
      },
      requester: { caller: 'one', group: 'one' },
      authorize: () => expect.unreachable(),
      requestedBy: 'somebody',
    },
    services: {
      settleLater: () => later,
      money: {
        payments: createPayments(records),
        remember: (...args) => remembered.push(args),
      },
    },
  });
  expect(remembered).toEqual(isLookedFor ? [[name, later]] : []);
});

const HOUR = 60 * 60_000;

it.each([
  [10 * HOUR, HOUR, 10 * HOUR],
  [HOUR, 10 * HOUR, 10 * HOUR],
  [RETRY_WINDOW_MS, HOUR, undefined],
  [HOUR, RETRY_WINDOW_MS, undefined],
])(
  'money out of %i ms ago, which is %i ms old at most, is safe to send again by the greater age',
  (sinceMs, ageMs, age) => {
    const now = Date.now();
    const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
    const record: Parameters<typeof paymentOf>[0] = {
      ...{ id: 'id', hash: 'hash', keyOwner: '', asked, isHeld: false, createdAt: 0 },
      state: 'sent',
      ...{ sent: { sentAt: now - sinceMs, ageMs }, body: '{}', settledAt: null, attempts: 1 },
      ...{ answer: null, original: null },
    };
    const retryUntil = age === undefined ? null : new Date(now - age + RETRY_WINDOW_MS).toISOString();
    expect(paymentOf(record, now)).toMatchObject({ safeToRetry: age !== undefined, retryUntil });
  },
);

/** A payment that has no answer yet. */
const unanswered = (state: 'claimed' | 'sent', isHeld: boolean): Parameters<typeof paymentOf>[0] => ({
  ...{ id: 'id', hash: 'hash', keyOwner: '', isHeld, createdAt: 0, settledAt: null, attempts: 1, state },
  asked: { operation: 'createMoneyOut', customerId: null, ...SHOWN },
  ...{ sent: { sentAt: Date.now(), ageMs: 0 }, body: '{}', answer: null, original: null },
});

const STATES = [
  ['claimed', true, 'IN_FLIGHT'],
  ['claimed', false, 'IN_FLIGHT'],
  ['sent', true, 'IN_FLIGHT'],
  ['sent', false, 'UNKNOWN'],
] as const;

it.each(STATES)(
  'a payment without an answer that is %s, held by a call: %s, is %s',
  (state, isHeld, told) => {
    expect(paymentOf(unanswered(state, isHeld), Date.now()).state).toBe(told);
  },
);

it.each([
  [404, 'destination_not_found', 'DESTINATION_NOT_FOUND'],
  [404, '{"error":"destination_not_found"}', 'DESTINATION_NOT_FOUND'],
  [409, 'external_transfer_not_allowed', 'EXTERNAL_TRANSFER_NOT_ALLOWED'],
  [409, '{"error":"external_transfer_not_allowed"}', 'EXTERNAL_TRANSFER_NOT_ALLOWED'],
])('a payment that was refused by a %i with the text %s is told so', (status, text, code) => {
  const refused = { ...unanswered('sent', false), state: 'answered' as const };
  const told = paymentOf({ ...refused, answer: { kind: 'refused', status, text } }, Date.now());
  expect(told).toMatchObject({ state: 'REFUSED', code });
});

it.each(['IN_FLIGHT', 'UNKNOWN'] as const)(
  'of the payments without an answer a page shows those that are %s alone',
  async (named) => {
    const payments = {
      sealKey: async () => Buffer.alloc(32),
      page: async (_search: object, _size: number, isWanted: (record: object) => boolean) => ({
        payments: STATES.map(([state, isHeld]) => unanswered(state, isHeld)).filter(isWanted),
        goesOn: false,
      }),
    };
    const context = {
      identity: { caller: { clientId: CLIENT_ID, customerId: undefined } },
      services: { money: { payments } },
      // A page of payments needs nothing else of it.
    } as unknown as Context;
    const { edges } = await paymentsPage({ states: [named] }, context);
    expect(edges.map(({ node }) => node.state)).toEqual(
      STATES.flatMap(([, , told]) => (told === named ? [told] : [])),
    );
  },
);

it.each([
  ['onwards', {}, 'endCursor'],
  ['back', { last: 5 }, 'startCursor'],
] as const)('a page that the operation’s time ends says where to read %s', async (_way, args, named) => {
  const [place, other] = [
    { createdAt: 7, hash: 'place' },
    { createdAt: 9, hash: 'found' },
  ];
  const asked: boolean[] = [];
  const beyonds: unknown[] = [];
  const payments = {
    sealKey: async () => Buffer.alloc(32),
    async page({ beyond }: { beyond: unknown }, ..._rest: unknown[]) {
      beyonds.push(beyond);
      asked.push(await (_rest[2] as () => Promise<boolean>)());
      return { payments: [{ ...unanswered('sent', false), ...other }], goesOn: true, endedAt: place };
    },
  };
  const context = {
    identity: { caller: { clientId: CLIENT_ID, customerId: undefined } },
    budget: { mayReadOn: async () => false },
    services: { money: { payments } },
    // A page of payments needs nothing else of it.
  } as unknown as Context;
  const { pageInfo } = await paymentsPage(args, context);
  expect(asked).toEqual([false]);
  expect(pageInfo).toMatchObject(named === 'endCursor' ? { hasNextPage: true } : { hasPreviousPage: true });
  const again = named === 'endCursor' ? { after: pageInfo.endCursor } : { before: pageInfo.startCursor };
  await paymentsPage(again, context);
  expect(beyonds).toEqual([undefined, place]);
});
