import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { alternativeChoices, defaultChoices, startSandbox } from '../../packages/sandbox/src/index.ts';
import { at, expectRefusal, openReceiver, openSandbox, READINGS, transfer } from './harness.ts';
import { explored, tables } from './spec.ts';

const requests = z.object({ total: z.number(), counts: z.record(z.string(), z.number()) });

test('the alternative differs from the default in every choice', () => {
  for (const [name, value] of Object.entries(defaultChoices)) {
    const other = Object.entries(alternativeChoices).find(([key]) => key === name)?.[1];
    expect(other, name).not.toEqual(value);
  }
});

describe.each(READINGS)('the control, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('the same seed yields the same ids and secrets, another seed others', async () => {
    const look = async (seed: number) => {
      await using sandbox = await startSandbox({ port: 0, speed: 0, seed, choices });
      const seeded = explored.parse(await (await fetch(`${sandbox.url}/sandbox`)).json());
      const { accessToken: _token, otherClients, ...rest } = seeded;
      return { ...rest, others: otherClients.map(({ clientId }) => clientId), handle: sandbox.apiKey };
    };
    const [first, second, other] = [await look(3), await look(3), await look(4)];
    expect(second).toEqual(first);
    expect(other.clientId).not.toBe(first.clientId);
    expect(first.handle).toBe(first.apiKey);
  });

  test('what one start makes has its ids again in another run of the same name alone', async () => {
    const firstCredit = async (run: string | undefined) => {
      await using sandbox = await startSandbox({
        port: 0,
        speed: 0,
        seed: 3,
        choices,
        ...(run ? { run } : {}),
      });
      const seeded = explored.parse(await (await fetch(`${sandbox.url}/sandbox`)).json());
      const response = await fetch(`${sandbox.url}/sandbox/spei-credits`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ clabe: at(seeded.accounts, 0).clabe, amount: '1.00' }),
      });
      const { transaction } = (await response.json()) as { transaction: { id: string } };
      return { client: seeded.clientId, transaction: transaction.id };
    };
    const [plain, monday, again, tuesday] = [
      await firstCredit(undefined),
      await firstCredit('monday'),
      await firstCredit('monday'),
      await firstCredit('tuesday'),
    ];
    expect(again).toEqual(monday);
    expect(new Set([plain.transaction, monday.transaction, tuesday.transaction]).size).toBe(3);
    expect(new Set([plain.client, monday.client, tuesday.client]).size).toBe(1);
  });

  test('GET /sandbox names things that exist, by role', async () => {
    await using box = await openSandbox(choices);
    const { seeded } = box;
    const read = async (id: string | null) =>
      (await box.get(box.of(`/instruments/${id}`))).as(spec.instrument);
    expect((await read(at(seeded.cardInstrumentIds, 0))).instrumentDetail).toHaveProperty('cardNumber');
    expect((await read(at(seeded.clabeInstrumentIds, 0))).instrumentDetail).toHaveProperty('clabeNumber');
    expect((await read(at(seeded.internalInstrumentIds, 0))).type).toBe('SENDER_RECEIVER');
    expect((await read(at(seeded.blockedInstrumentIds, 0))).audit.blockedAt).toMatch(/^\d{4}-/);
    expect((await read(seeded.noReceiptInstrumentId)).alias).toBe('No receipt');
    expect((await read(seeded.lateReceiptInstrumentId)).alias).toBe('Late receipt');
    expect((await read(seeded.otherHolderInstrumentId)).alias).toBe('Other holder');
    for (const id of Object.values(seeded.transactions)) {
      const { status } = await box.get(box.of(`/transactions/${id}`));
      expect(status).toBe(200);
    }
    expect(seeded.otherClients).toHaveLength(1);
  });

  test('the history is told in the states that time has brought it to', async () => {
    await using box = await openSandbox(choices);
    const read = async (id: string) => (await box.get(box.of(`/transactions/${id}`))).as(spec.transaction);
    const { transactions } = box.seeded;
    expect(await read(transactions.moneyOutId)).toMatchObject({ transactionStatus: 'LIQUIDATED' });
    expect(await read(transactions.refundableCreditId)).toMatchObject({ transactionStatus: 'LIQUIDATED' });
    expect(await read(transactions.refundedCreditId)).toMatchObject({ transactionStatus: 'REFUNDED' });
    expect(await read(transactions.refundId)).toMatchObject({
      transactionStatus: 'LIQUIDATED',
      originalTransactionId: transactions.refundedCreditId,
    });
    const penny = await read(transactions.pennyValidationId);
    expect(penny.metadata?.dataCep.status).toBe('COMPLETED');
    expect((await box.ledger()).balanced).toBe(true);
  });

  test('requests are counted by method and route, whatever became of them, and zeroed on demand', async () => {
    await using box = await openSandbox(choices);
    const count = async () => (await box.call('GET', '/sandbox/requests')).as(requests);
    await box.get(box.of('/instruments?page=2'));
    await box.get(box.of(`/instruments/${box.seeded.centralizingInstrumentId}`));
    await box.get(box.of('/instruments'));
    await box.call('GET', '/v1/banks', undefined, {});
    await box.get('/v1/nowhere');
    await box.post('/sandbox/faults', { match: { method: 'DELETE' }, fault: 'reset-before' });
    await expect(box.call('DELETE', box.of('/webhooks/x'))).rejects.toThrow('fetch failed');
    expect(await count()).toEqual({
      total: 6,
      counts: {
        'GET /v1/clients/{clientId}/instruments': 2,
        'GET /v1/clients/{clientId}/instruments/{instrumentId}': 1,
        'GET /v1/banks': 1,
        'GET unknown route': 1,
        'DELETE /v1/clients/{clientId}/webhooks/{id}': 1,
      },
    });
    await box.call('DELETE', '/sandbox/requests');
    expect(await count()).toEqual({ total: 0, counts: {} });
  });

  test('stepping the clock delivers before it answers', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 });
    await box.register('MONEY_IN', receiver.url);
    await box.post(
      '/v1/transactions/internal_transaction',
      transfer(box, at(box.seeded.internalInstrumentIds, 2)),
    );
    const before = (await box.call('GET', '/sandbox/clock')).as(z.object({ now: z.string() })).now;
    const after = (await box.step(60)).as(z.object({ now: z.string() })).now;
    expect(receiver.received).toHaveLength(1);
    expect(Date.parse(after) - Date.parse(before)).toBe(60_000);
    expectRefusal(await box.step(-1), { status: 400 });
  });

  test('a delivery or control route that does not exist is 404, in JSON', async () => {
    await using box = await openSandbox(choices);
    const resend = await box.post('/sandbox/deliveries/3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111/resend', {});
    const nowhere = await box.call('GET', '/sandbox/nowhere');
    for (const reply of [resend, nowhere]) {
      expect(reply.status).toBe(404);
      expect(reply.contentType).toContain('application/json');
    }
  });
});

test('stop ends idle and busy connections, timers and deliveries', async () => {
  const box = await openSandbox({}, 60);
  await using receiver = await openReceiver({ status: 503 });
  await box.register('MONEY_IN', receiver.url);
  const { clabe } = at(box.seeded.accounts, 0);
  await box.post('/sandbox/spei-credits', { clabe, amount: '1.00' });
  await box.post('/sandbox/faults', { match: { path: '/v1/banks' }, fault: 'hang' });
  const hanging = box.get('/v1/banks').catch((error: unknown) => error);
  await expect
    .poll(async () => (await box.call('GET', '/sandbox/requests')).text, { interval: 5 })
    .toContain('/v1/banks');
  await box.sandbox.stop();
  expect(await hanging).toBeInstanceOf(TypeError);
  await expect(box.get('/sandbox')).rejects.toThrow('fetch failed');
});

test('a port that is taken is an error of the start', async () => {
  await using box = await openSandbox();
  const port = Number(new URL(box.sandbox.url).port);
  await expect(startSandbox({ port, speed: 0, seed: 1 })).rejects.toThrow('EADDRINUSE');
});
