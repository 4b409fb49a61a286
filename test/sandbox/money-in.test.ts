import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { at, expectRefusal, type Opened, openReceiver, openSandbox, READINGS, transfer } from './harness.ts';
import { delivery, tables } from './spec.ts';

const deliveries = z.object({ deliveries: z.array(delivery) });
const arrived = z.object({
  transaction: z.object({ id: z.uuid(), transactionStatus: z.string(), amount: z.string() }),
  deliveries: z.array(delivery),
});

async function credit(box: Opened, change: Record<string, unknown> = {}) {
  const { clabe } = at(box.seeded.accounts, 0);
  const body = { clabe, amount: '250.00', payerName: 'Ana', concept: 'Renta', ...change };
  return (await box.post('/sandbox/spei-credits', body)).as(arrived);
}

async function balance(box: Opened) {
  return Number(at((await box.ledger()).accounts, 0).balance);
}

describe.each(READINGS)('incoming SPEI credits, %s choices', (name, choices) => {
  const spec = tables(name === 'default');
  const read = async (box: Opened, id: string) =>
    (await box.get(box.of(`/transactions/${id}`))).as(spec.transaction);

  test('a credit answered 201 is accepted; the message is as documented', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 });
    await box.register('MONEY_IN', receiver.url, 'the registered token');
    const before = await balance(box);
    const { transaction, deliveries: sent } = await credit(box);
    expect(transaction).toMatchObject({ transactionStatus: 'LIQUIDATED', amount: '250.00' });
    expect(at(sent, 0)).toMatchObject({ state: 'ANSWERED', attempts: [{ status: 201 }] });
    expect((await balance(box)) - before).toBeCloseTo(250);
    const got = at(receiver.received, 0);
    const { header, prefix } = choices.deliveryToken;
    expect(got.headers[header]).toBe(`${prefix}the registered token`);
    const { body, id_msg } = spec.moneyIn.parse(got.json);
    expect(id_msg).toBe(at(sent, 0).idMsg);
    expect(body).toMatchObject({
      id: transaction.id,
      beneficiary_account: at(box.seeded.accounts, 0).clabe,
      payer_name: 'Ana',
      payer_rfc: 'ND',
      payer_institution: expect.stringMatching(/^\d{5}$/),
      amount: '250.00',
      payment_concept: 'Renta',
      sub_category: 'SPEI_CREDIT',
      owner_id: box.seeded.clientId,
    });
    const stored = await read(box, transaction.id);
    expect(stored).toMatchObject({ subCategory: 'SPEI_CREDIT', trackingId: body.tracking_key });
  });

  test('a credit answered 422 is refunded by itself, with the reason given', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 422, body: { refundReason: 'No lo conozco' } });
    await box.register('MONEY_IN', receiver.url);
    const before = await balance(box);
    const { transaction } = await credit(box);
    expect(transaction.transactionStatus).toBe('REFUNDED');
    expect(await balance(box)).toBeCloseTo(before);
    const { balanced, movements } = await box.ledger();
    expect(balanced).toBe(true);
    const refund = await read(box, at(movements, -1).transactionId);
    expect(refund).toMatchObject({
      originalTransactionId: transaction.id,
      transactionStatus: 'LIQUIDATED',
      subCategory: 'SPEI_DEBIT',
      description: 'No lo conozco',
    });
    const again = await box.post(box.of(`/transactions/${transaction.id}/refund`), { refundReason: 'x' });
    expect(again.status).toBe(choices.repeatedRefund === 'refused' ? 400 : choices.refundCreated);
  });

  test('422 with no body, or one that is no JSON object, rejects as well', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 422 }, { status: 422, body: 'no' });
    await box.register('MONEY_IN', receiver.url);
    for (const _turn of [1, 2]) {
      expect((await credit(box)).transaction.transactionStatus).toBe('REFUNDED');
    }
  });

  test('without a webhook the credit is accepted', async () => {
    await using box = await openSandbox(choices);
    const { transaction, deliveries: sent } = await credit(box);
    expect(transaction.transactionStatus).toBe('LIQUIDATED');
    expect(sent).toEqual([]);
  });

  test('a receiver that fails is tried again with the same bytes until it answers', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 503 }, { status: 200 }, { status: 201 });
    await box.register('MONEY_IN', receiver.url);
    const before = await balance(box);
    const { transaction, deliveries: sent } = await credit(box);
    expect(transaction.transactionStatus).toBe('INITIALIZED');
    expect(at(sent, 0)).toMatchObject({ state: 'PENDING', attempts: [{ status: 503 }] });
    expect(await balance(box)).toBeCloseTo(before);
    await box.step(120);
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ text }) => text)).size).toBe(1);
    expect((await read(box, transaction.id)).transactionStatus).toBe('LIQUIDATED');
    expect((await balance(box)) - before).toBeCloseTo(250);
  });

  test('a receiver that never answers is given up, and the credit accepted', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 500 });
    await box.register('MONEY_IN', receiver.url);
    const { transaction } = await credit(box);
    await box.step(24 * 3600);
    expect(receiver.received).toHaveLength(1 + choices.deliveryRetries);
    expect((await read(box, transaction.id)).transactionStatus).toBe('LIQUIDATED');
    const all = (await box.call('GET', '/sandbox/deliveries')).as(deliveries);
    const { state, attempts } = at(all.deliveries, 0);
    expect(state).toBe('GIVEN_UP');
    const times = attempts.map((attempt) => Date.parse(attempt.at) / 1000);
    const waits = times.slice(1).map((time, index) => time - at(times, index));
    expect(waits).toEqual(waits.map((_wait, index) => 10 * 2 ** index));
  });

  test('a webhook that is switched off gets no more attempts', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 500 });
    const made = (await box.register('MONEY_IN', receiver.url)).as(spec.webhook);
    const { transaction } = await credit(box);
    await box.call('PATCH', box.of(`/webhooks/${made.id}`), { webhook_status: 'INACTIVE' });
    await box.step(24 * 3600);
    expect(receiver.received).toHaveLength(1);
    expect((await read(box, transaction.id)).transactionStatus).toBe('LIQUIDATED');
  });

  test('a credit is held while one receiver may still answer, though another is given up', async () => {
    await using box = await openSandbox(choices);
    await using off = await openReceiver({ status: 500 });
    await using rejecting = await openReceiver({ status: 503 }, { status: 422 });
    const made = (await box.register('MONEY_IN', off.url)).as(spec.webhook);
    await box.register('MONEY_IN', rejecting.url);
    const { transaction } = await credit(box);
    await box.call('PATCH', box.of(`/webhooks/${made.id}`), { webhook_status: 'INACTIVE' });
    await box.step(60);
    expect([off.received.length, rejecting.received.length]).toEqual([1, 2]);
    expect((await read(box, transaction.id)).transactionStatus).toBe('REFUNDED');
  });

  test('a receiver that is gone is recorded with the error', async () => {
    await using box = await openSandbox(choices);
    const receiver = await openReceiver({ status: 201 });
    await box.register('MONEY_IN', receiver.url);
    await receiver.close();
    const { deliveries: sent } = await credit(box);
    expect(at(sent, 0).attempts).toMatchObject([{ status: null, body: null, error: expect.any(String) }]);
    expect(at(at(sent, 0).attempts, 0).error).not.toBe('');
  });

  test('of several receivers the first to answer decides', async () => {
    await using box = await openSandbox(choices);
    await using down = await openReceiver({ status: 500 });
    await using rejecting = await openReceiver({ status: 422 });
    await using accepting = await openReceiver({ status: 201 });
    for (const { url } of [down, rejecting, accepting]) await box.register('MONEY_IN', url);
    const { transaction, deliveries: sent } = await credit(box);
    expect(sent.map(({ state }) => state)).toEqual(['PENDING', 'ANSWERED', 'ANSWERED']);
    expect(transaction.transactionStatus).toBe('REFUNDED');
    expect((await box.ledger()).balanced).toBe(true);
  });

  test('a resend has the same id_msg and body, and moves nothing a second time', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 }, { status: 503 }, { status: 422 });
    await box.register('MONEY_IN', receiver.url);
    const { transaction, deliveries: sent } = await credit(box);
    // Held money of another credit, which a second decision would wrongly take.
    await credit(box);
    const before = await box.ledger();
    const reply = await box.post(`/sandbox/deliveries/${at(sent, 0).id}/resend`, {});
    expect(reply.as(delivery).attempts.map(({ status }) => status)).toEqual([201, 422]);
    expect(at(receiver.received, 2).text).toBe(at(receiver.received, 0).text);
    expect(await box.ledger()).toEqual(before);
    expect((await read(box, transaction.id)).transactionStatus).toBe('LIQUIDATED');
  });

  test('a message whose resend was answered is tried no more', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 503 }, { status: 201 });
    await box.register('MONEY_IN', receiver.url);
    const { transaction, deliveries: sent } = await credit(box);
    const reply = await box.post(`/sandbox/deliveries/${at(sent, 0).id}/resend`, {});
    expect(reply.as(delivery)).toMatchObject({
      state: 'ANSWERED',
      attempts: [{ status: 503 }, { status: 201 }],
    });
    await box.step(24 * 3600);
    expect(receiver.received).toHaveLength(2);
    expect((await read(box, transaction.id)).transactionStatus).toBe('LIQUIDATED');
  });

  test('what somebody has sent again puts off no retry', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 503 });
    await box.register('MONEY_IN', receiver.url);
    const { deliveries: sent } = await credit(box);
    for (let times = 3; times > 0; times -= 1)
      await box.post(`/sandbox/deliveries/${at(sent, 0).id}/resend`, {});
    await box.step(10);
    expect(receiver.received).toHaveLength(5);
    await box.step(20);
    expect(receiver.received).toHaveLength(6);
  });

  test('an inactive, deleted or other client’s webhook gets nothing', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 });
    const made = (await box.register('MONEY_IN', receiver.url)).as(spec.webhook);
    const other = at(box.seeded.otherClients, 0);
    const body = { clabe: at(other.accounts, 0).clabe, amount: '1.00' };
    expect((await box.post('/sandbox/spei-credits', body)).as(arrived).deliveries).toEqual([]);
    const path = box.of(`/webhooks/${made.id}`);
    await box.call('PATCH', path, { webhook_status: 'INACTIVE' });
    expect((await credit(box)).deliveries).toEqual([]);
    await box.call('PATCH', path, { webhook_status: 'ACTIVE' });
    expect((await credit(box)).deliveries).toHaveLength(1);
    await box.call('DELETE', path);
    expect((await credit(box)).deliveries).toEqual([]);
  });

  test('a CLABE that is unknown is 404, an amount that is none 400', async () => {
    await using box = await openSandbox(choices);
    const { clabe } = at(box.seeded.accounts, 0);
    const post = (body: unknown) => box.post('/sandbox/spei-credits', body);
    expectRefusal(await post({ clabe: '012180000000000000', amount: '1.00' }), { status: 404 });
    for (const wrong of ['0.00', '-1.00', '1', 'x', 1]) {
      expectRefusal(await post({ clabe, amount: wrong }), { status: 400 });
    }
  });

  describe('refunds', () => {
    test('in the shape of amount and description, a refund returns the whole credit', async () => {
      await using box = await openSandbox(choices);
      const { transaction } = await credit(box);
      const path = box.of(`/transactions/${transaction.id}/refund`);
      const reply = await box.post(path, { amount: '250.00', description: 'Devolución' });
      expect(reply.status).toBe(choices.refundCreated);
      const refund = reply.as(spec.newTransaction);
      expect(refund).toMatchObject({
        originalTransactionId: transaction.id,
        transactionStatus: 'LIQUIDATED',
        amount: '250.00',
        description: 'Devolución',
        subCategory: 'SPEI_DEBIT',
      });
      expect((await read(box, transaction.id)).transactionStatus).toBe('REFUNDED');
      expect((await read(box, refund.id)).originalTransactionId).toBe(transaction.id);
      expect((await box.ledger()).balanced).toBe(true);
    });

    test('in the earlier shape, the reason is the description', async () => {
      await using box = await openSandbox(choices);
      const path = box.of(`/transactions/${box.seeded.transactions.refundableCreditId}/refund`);
      const reply = await box.post(path, { refundReason: 'Duplicado' });
      expect(reply.as(spec.newTransaction).description).toBe('Duplicado');
    });

    test('a part of the amount, or no shape at all, is refused', async () => {
      await using box = await openSandbox(choices);
      const { transaction } = await credit(box);
      const path = box.of(`/transactions/${transaction.id}/refund`);
      for (const amount of ['249.99', '250.01', '250']) {
        expectRefusal(await box.post(path, { amount, description: 'x' }), { status: 400 });
      }
      for (const body of [{}, { amount: '250.00' }, { description: 'x' }, { refundReason: 7 }, []]) {
        expectRefusal(await box.post(path, body), { status: 400, reason: 'DATA_ERROR' });
      }
      expect((await read(box, transaction.id)).transactionStatus).toBe('LIQUIDATED');
    });

    test('a credit that was refunded before, or whose money is gone, is refused', async () => {
      await using box = await openSandbox({ ...choices, repeatedRefund: 'refused' });
      const refunded = box.of(`/transactions/${box.seeded.transactions.refundedCreditId}/refund`);
      expectRefusal(await box.post(refunded, { refundReason: 'x' }), {
        status: 400,
        reason: 'FAILED_PRECONDITION',
      });
      const { transaction } = await credit(box);
      const all = (await balance(box)).toFixed(2);
      const elsewhere = at(box.seeded.internalInstrumentIds, 2);
      const moved = transfer(box, elsewhere, { amount: all });
      expect((await box.post('/v1/transactions/internal_transaction', moved)).status).toBe(200);
      expectRefusal(await box.post(box.of(`/transactions/${transaction.id}/refund`), { refundReason: 'x' }), {
        status: 400,
        detail: 'The account does not have sufficient funds.',
      });
    });

    test('only external SPEI credits can be refunded', async () => {
      await using box = await openSandbox(choices);
      const { moneyOutId, pennyValidationId, internalTransactionId } = box.seeded.transactions;
      for (const id of [moneyOutId, pennyValidationId, internalTransactionId]) {
        const reply = await box.post(box.of(`/transactions/${id}/refund`), { refundReason: 'x' });
        expectRefusal(reply, { status: 400, reason: 'FAILED_PRECONDITION' });
      }
    });
  });

  describe('reading a transaction', () => {
    test('the query narrows the look-up', async () => {
      await using box = await openSandbox(choices);
      const path = box.of(`/transactions/${box.seeded.transactions.moneyOutId}`);
      const stored = (await box.get(path)).as(spec.transaction);
      const fitting = [
        `transaction_status=${stored.transactionStatus}`,
        `tracking_id=${stored.trackingId}`,
        `transaction_category=${stored.category}`,
        `bank_id=${stored.bankId}`,
      ];
      const all = await box.get(`${path}?${fitting.join('&')}`);
      expect(all.as(spec.transaction).id).toBe(stored.id);
      for (const query of fitting) {
        expectRefusal(await box.get(`${path}?${query}X`), { status: 404 });
      }
    });

    test('one that does not exist is 404', async () => {
      await using box = await openSandbox(choices);
      const path = box.of('/transactions/3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111');
      expectRefusal(await box.get(path), { status: 404 });
    });
  });
});
