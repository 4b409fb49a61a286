import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isClabe } from '../../packages/sandbox/src/clabe.ts';
import { at, type Opened, openReceiver, openSandbox, READINGS, transfer } from './harness.ts';
import { explored } from './spec.ts';

const cents = fc.bigInt({ min: 1n, max: 300_000_000n });
const index = fc.nat(5);

/** One thing that a caller, a payer or time can do. */
const operation = fc.oneof(
  fc.record({ kind: fc.constant('internal' as const), from: index, to: index, cents }),
  fc.record({ kind: fc.constant('money out' as const), from: index, to: index, cents }),
  fc.record({ kind: fc.constant('inside' as const), from: index, to: index, cents }),
  fc.record({ kind: fc.constant('penny' as const), to: index }),
  fc.record({ kind: fc.constant('credit' as const), to: index, cents }),
  fc.record({ kind: fc.constant('refund' as const), which: index }),
  fc.record({ kind: fc.constant('account' as const), owner: index }),
  fc.record({ kind: fc.constant('time' as const), seconds: fc.nat(400) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

function money(amount: bigint): string {
  const digits = amount.toString().padStart(3, '0');
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

function toCents(text: string): bigint {
  return BigInt(text.replace('.', ''));
}

function pick<T>(list: readonly T[], number: number): T {
  return at(list, number % list.length);
}

async function perform(box: Opened, credits: string[], step: Operation): Promise<number> {
  const { seeded } = box;
  const pay = (path: string, from: number, destination: string, amount: bigint) =>
    box.post(
      `/v1/transactions/${path}`,
      transfer(box, destination, { amount: money(amount) }, pick(seeded.internalInstrumentIds, from)),
    );
  switch (step.kind) {
    case 'internal': {
      const to = pick([...seeded.internalInstrumentIds, ...seeded.blockedInstrumentIds], step.to);
      return (await pay('internal_transaction', step.from, to, step.cents)).status;
    }
    case 'money out':
      return (await pay('money_out', step.from, pick(seeded.cardInstrumentIds, step.to), step.cents)).status;
    case 'inside':
      return (await pay('money_out', step.from, pick(seeded.internalInstrumentIds, step.to), step.cents))
        .status;
    case 'penny': {
      const body = {
        client_id: seeded.clientId,
        source_instrument_id: seeded.centralizingInstrumentId,
        destination_instrument_id: pick(seeded.clabeInstrumentIds, step.to),
      };
      return (await box.post('/v1/transactions/penny_validation', body)).status;
    }
    case 'credit': {
      const { clabe } = pick(seeded.accounts, step.to);
      const reply = await box.post('/sandbox/spei-credits', { clabe, amount: money(step.cents) });
      const id = reply.text.match(/"id":"([^"]+)"/)?.[1];
      if (id !== undefined) credits.push(id);
      return reply.status;
    }
    case 'refund': {
      const path = box.of(`/transactions/${pick(credits, step.which)}/refund`);
      return (await box.post(path, { refundReason: 'any' })).status;
    }
    case 'account': {
      const path = box.of(`/customers/${pick(seeded.customerIds, step.owner)}/private_accounts`);
      const body = {
        client_id: seeded.clientId,
        client_bank_adapter_id: seeded.clientBankAdapterId,
        bank_id: at(seeded.bankIds, 0),
        owner_id: pick(seeded.customerIds, step.owner),
      };
      return (await box.post(path, body)).status;
    }
    case 'time':
      return (await box.step(step.seconds)).status;
  }
}

/** Adds the movements up anew: every balance must be their sum, every account's at least zero, and all together zero. */
async function checkBooks(box: Opened): Promise<void> {
  const book = await box.ledger();
  expect(book.balanced).toBe(true);
  const sums = new Map<string, bigint>();
  for (const { lines, amount } of book.movements) {
    expect(lines.map((line) => toCents(line.amount))).toEqual([-toCents(amount), toCents(amount)]);
    for (const line of lines) sums.set(line.account, (sums.get(line.account) ?? 0n) + toCents(line.amount));
  }
  let total = 0n;
  for (const [account, sum] of sums) {
    total += sum;
    expect(book.balances[account] && toCents(book.balances[account])).toBe(sum);
    if (account !== 'spei') expect(sum).toBeGreaterThanOrEqual(0n);
  }
  expect(total).toBe(0n);
}

describe.each(READINGS)('the ledger, %s choices', (_name, choices) => {
  test('stays balanced, and no account goes below zero, whatever happens in whatever order', async () => {
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 5, maxLength: 25 }),
        fc.boolean(),
        async (steps, rejects) => {
          await using box = await openSandbox(choices);
          await using receiver = await openReceiver({ status: rejects ? 422 : 201 });
          await box.register('MONEY_IN', receiver.url);
          const credits = [box.seeded.transactions.refundableCreditId];
          for (const step of steps) {
            const status = await perform(box, credits, step);
            statuses.add(status);
            expect(status).toBeLessThan(500);
            await checkBooks(box);
          }
          const { accounts } = (await box.call('GET', '/sandbox')).as(explored);
          const clabes = accounts.map(({ clabe }) => clabe);
          expect(new Set(clabes).size).toBe(clabes.length);
          expect(clabes.every(isClabe)).toBe(true);
        },
      ),
      { numRuns: 25, seed: 20261120 },
    );
    // The sequences reach both sides of every refusal.
    expect(statuses).toContain(200);
    expect(statuses).toContain(400);
  });
});
