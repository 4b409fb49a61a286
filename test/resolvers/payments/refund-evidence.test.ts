import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { inputHash, recordName } from '../../../src/money/intent.ts';
import type { MoneyRecords } from '../../../src/money/record.ts';
import { openSqliteRecords } from '../../../src/money/sqlite/sqlite-record.ts';
import { lookForRefund } from '../../../src/resolvers/payments/evidence.ts';
import { CLIENT_ID, startUpstream } from '../../helpers/http-stub.ts';
import { NOBODYS, SHOWN } from '../../money/orders.ts';

const HOUR = 60 * 60 * 1_000;
const ASKED = { operation: 'refundTransaction', customerId: null, ...SHOWN } as const;

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

it.each([10 * 60_000, 61 * 60_000, 48 * HOUR, 96 * HOUR])(
  'of two refunds of one credit, sent %s ms apart, neither is told done, and of two credits both are',
  async (apart) => {
    await using cleanup = new AsyncDisposableStack();
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-refunds-'));
    cleanup.defer(() => rm(dataDir, { recursive: true }));
    let now = Date.now();
    // The kernel's clock would not follow.
    const clocks = [() => now, () => now, undefined] as const;
    const records = openSqliteRecords(join(dataDir, 'money.sqlite'), ...clocks);
    cleanup.defer(() => records.stop());
    await using service = await startUpstream((request, response) => {
      const id = request.url?.split('/').at(-1);
      const credit = { id, amount: '75.00', currency: 'MXN', category: 'CREDIT_TRANS' };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ ...credit, subCategory: 'SPEI_CREDIT', transactionStatus: 'REFUNDED' }));
    });
    const [twice, once] = [randomUUID(), randomUUID()];
    const refunds = [await lose(records, twice), await lose(records, once)];
    now += apart;
    refunds.push(await lose(records, twice));
    now += 60_000;
    const found = [];
    for (const { name } of refunds) {
      await records.hasten(name);
      const payment = await records.takeOpen(name, 'settler', 1_000);
      if (payment === undefined) throw new Error('it is due');
      found.push(await lookForRefund(payment, service.rest, records, now));
    }
    const unclear = { kind: 'open', seen: 'other-refund' };
    expect(found).toMatchObject([unclear, { kind: 'done' }, unclear]);
  },
);
