import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { inputHash, recordName } from '../../../src/money/intent.ts';
import type { MoneyRecords } from '../../../src/money/record.ts';
import { openSqliteRecords } from '../../../src/money/sqlite/sqlite-record.ts';
import { lookForRefund } from '../../../src/resolvers/payments/evidence.ts';
import { createSettlingCalls } from '../../../src/resolvers/payments/settling-calls.ts';
import { Sightings } from '../../../src/resolvers/payments/sightings.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';
import { NOBODYS, SHOWN } from '../../money/orders.ts';

const HOUR = 60 * 60 * 1_000;
const ASKED = { operation: 'refundTransaction', customerId: null, ...SHOWN } as const;

const NOT_FOUND = {
  code: 5,
  message: 'API Error',
  details: [{ reason: 'transaction_not_found', domain: 'CORE', metadata: { http_code: '404' } }],
};

/** A refund of a credit whose answer was lost. */
async function lose(records: MoneyRecords, original: string) {
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT_ID, customerId: undefined, key });
  const hash = inputHash('refundTransaction', key);
  const claim = { ...NOBODYS, asked: ASKED, owner: 'call', inputHash: hash, leaseMs: 0, twin: key };
  await records.claim(name, claim);
  await records.markSent(name, 'call', '{}', { upstreamKey: null, original });
  return { name, hash };
}

const unread = (): never => {
  throw new Error('is not read');
};

it.each([
  ...[10 * 60_000, 61 * 60_000, 48 * HOUR, 96 * HOUR].map((apart) => ({ apart, behind: 0, later: 'open' })),
  ...['open', 'done'].map((later) => ({ apart: 10 * 60_000, behind: 2 * 60_000 + 1, later })),
])(
  'of two refunds of one credit, sent $apart ms apart, the later one $later, none is told done by a gateway $behind ms behind the store, and of two credits both are',
  async ({ apart, behind, later }) => {
    await using cleanup = new AsyncDisposableStack();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-refunds-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    let now = Date.now();
    // The kernel's clock would not follow.
    const clocks = [() => now, () => now, undefined] as const;
    const path = join(dataDir, 'money.sqlite');
    const records = openSqliteRecords(path, ...clocks);
    cleanup.defer(() => records.stop());
    await using service = await startUpstream((request, response) => {
      const id = request.url?.split('/').at(-1);
      const credit = { id, amount: '75.00', currency: 'MXN', category: 'CREDIT_TRANS' };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...credit, subCategory: 'SPEI_CREDIT', transactionStatus: 'REFUNDED' }));
    });
    const [twice, once] = [randomUUID(), randomUUID()];
    const calls = createSettlingCalls({
      ...{ clientId: CLIENT_ID, utcOffset: '-06:00', isOver: () => false, now: () => now - behind },
      // A refund is known by its credit alone.
      sightings: new Sightings({ readAfter: unread, givenUpTo: unread }, CLIENT_ID),
      rest: () => service.rest,
      onSent: unread,
    });
    const refunds = [await lose(records, twice), await lose(records, once)];
    now += apart;
    // A version that noted no refund of a credit has sent the first: this one refuses the second for two days.
    using db = new DatabaseSync(path);
    db.exec('DELETE FROM refunds');
    const last = await lose(records, twice);
    if (later === 'open') refunds.push(last);
    else {
      const text = JSON.stringify({ originalTransactionId: twice });
      await records.answer(last.name, last.hash, { kind: 'done', status: 200, text });
    }
    now += 60_000;
    const found = [];
    for (const { name } of refunds) {
      await records.hasten(name);
      const payment = await records.takeOpen(name, 'settler', 1_000);
      if (payment === undefined) throw new Error('it is due');
      found.push(await calls.look(payment, records));
    }
    const unclear = { kind: 'open', seen: 'other-refund' };
    expect(found).toMatchObject([unclear, { kind: 'done' }, unclear].slice(0, refunds.length));
  },
);

it.each([
  ['is unknown to the service', 404, () => NOT_FOUND],
  ['is shown as no transaction', 200, (id: string) => ({ id, transactionStatus: 'REFUNDED' })],
])('a refund is not told done by a credit that %s', async (_how, status, body) => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-refunds-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  cleanup.defer(() => records.stop());
  const credit = randomUUID();
  await using service = await startUpstream((_request, response) => json(response, body(credit), status));
  const { name } = await lose(records, credit);
  await records.hasten(name);
  const payment = await records.takeOpen(name, 'settler', 1_000);
  if (payment === undefined) throw new Error('it is due');
  expect(await lookForRefund(payment, service.rest, records)).toEqual({ kind: 'open', seen: 'unreadable' });
});

it.each([
  ['open', 2_000, { kind: 'done' }],
  ['open', 2_001, { kind: 'open', seen: 'too-many' }],
  ['done', 2_000, { kind: 'done' }],
  ['done', 2_001, { kind: 'open', seen: 'too-many' }],
] as const)(
  'beside refunds of other credits that are %s, %i of them, a refund is %j',
  async (kind, count, found) => {
    await using cleanup = new AsyncDisposableStack();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-refunds-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
    cleanup.defer(() => records.stop());
    const credit = randomUUID();
    const read = {
      id: credit,
      amount: '75.00',
      currency: 'MXN',
      category: 'CREDIT_TRANS',
      subCategory: 'SPEI_CREDIT',
    };
    await using service = await startUpstream((_request, response) =>
      json(response, { ...read, transactionStatus: 'REFUNDED' }),
    );
    const { name } = await lose(records, credit);
    const mine = await records.read(name);
    await records.hasten(name);
    const payment = await records.takeOpen(name, 'settler', 1_000);
    if (payment === undefined || mine === undefined) throw new Error('it is due');
    const another = { ...mine, original: randomUUID() };
    const search: MoneyRecords['search'] = async ({ classes, beyond, limit }) => {
      if (!classes.includes(kind)) return { records: [], next: undefined };
      const from = Number(beyond?.hash ?? 0);
      const to = Math.min(count, from + limit);
      const page = Array.from({ length: to - from }, (_, at) => ({ ...another, hash: `${from + at}` }));
      return { records: page, next: to < count ? { createdAt: 0, hash: `${to}` } : undefined };
    };
    expect(await lookForRefund(payment, service.rest, { ...records, search })).toMatchObject(found);
  },
);
