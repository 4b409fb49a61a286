import { describe, expect, test } from 'vitest';
import { at, expectRefusal, type Opened, openReceiver, openSandbox, READINGS, transfer } from './harness.ts';
import { tables } from './spec.ts';

const PATH = '/v1/transactions/internal_transaction';
const method = 'InternalTransaction';

/** Internal instruments of the demo client by the owner's place: 0 and 1 are the client's, 2 and 3 one customer's. */
const internal = ({ seeded }: Opened, index: number) => at(seeded.internalInstrumentIds, index);

describe.each(READINGS)('internal transactions, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('money moves at once, and the answer is the debit leg', async () => {
    await using box = await openSandbox(choices);
    const before = await box.ledger();
    const reply = await box.post(PATH, transfer(box, internal(box, 2)));
    expect(reply.status).toBe(200);
    expect(reply.as(spec.newTransaction)).toMatchObject({
      category: 'INTER_TRANS',
      subCategory: 'INT_DEBIT',
      transactionStatus: 'LIQUIDATED',
      amount: '10.00',
      externalReference: '1234567',
      description: 'Pago',
    });
    const after = await box.ledger();
    expect(after.balanced).toBe(true);
    expect(after.movements).toHaveLength(before.movements.length + 1);
    const balance = (state: typeof after, id: string) =>
      Number(state.accounts.find(({ instrumentId }) => instrumentId === id)?.balance);
    const source = box.seeded.centralizingInstrumentId;
    expect(balance(before, source) - balance(after, source)).toBeCloseTo(10);
    expect(balance(after, internal(box, 2)) - balance(before, internal(box, 2))).toBeCloseTo(10);
  });

  test('the debit leg reads with both instruments', async () => {
    await using box = await openSandbox(choices);
    const made = (await box.post(PATH, transfer(box, internal(box, 2)))).as(spec.newTransaction);
    const read = (await box.get(box.of(`/transactions/${made.id}`))).as(spec.transaction);
    expect(read.sourceInstrument.id).toBe(box.seeded.centralizingInstrumentId);
    expect(read.destinationInstrument).toMatchObject({
      id: internal(box, 2),
      instrumentType: 'SENDER_RECEIVER',
      instrumentStatus: 'ACTIVE',
    });
    expect(read).not.toHaveProperty('metadata');
  });

  test.each<[string, Record<string, unknown>, string, string]>([
    [
      'a reference that is not numeric',
      { external_reference: '12a' },
      'DATA_ERROR',
      'External reference should be numeric and have a maximum length of 7 digits.',
    ],
    [
      'a reference of 8 digits',
      { external_reference: '12345678' },
      'DATA_ERROR',
      'External reference should be numeric and have a maximum length of 7 digits.',
    ],
    ['an amount of zero', { amount: '0.00' }, 'DATA_ERROR', 'Transaction Amount must be higher than 0.'],
    ['a negative amount', { amount: '-1.00' }, 'DATA_ERROR', 'Transaction Amount must be higher than 0.'],
    [
      'a description of 40 characters',
      { description: 'x'.repeat(40) },
      'DATA_ERROR',
      'Transaction description must have less than 40 characters length.',
    ],
    ['another currency', { currency: 'USD' }, 'DATA_ERROR', 'Transaction currency unsupported.'],
    [
      'more than there is',
      { amount: '99999999999.00' },
      'FAILED_PRECONDITION',
      'The account does not have sufficient funds.',
    ],
  ])('%s is refused in the words of the spec, and moves nothing', async (_what, change, reason, detail) => {
    await using box = await openSandbox(choices);
    const before = await box.ledger();
    const reply = await box.post(PATH, transfer(box, internal(box, 2), change));
    expectRefusal(reply, { status: 400, reason, detail, method });
    expect(await box.ledger()).toEqual(before);
  });

  test.each([{ amount: 10 }, { amount: '10' }, { amount: '10.0' }, { amount: '1e3' }, { amount: ' 1.00' }])(
    'the amount %o is refused: a string with two decimals is needed',
    async (change) => {
      await using box = await openSandbox(choices);
      const reply = await box.post(PATH, transfer(box, internal(box, 2), change));
      expectRefusal(reply, { status: 400, reason: 'DATA_ERROR', method });
    },
  );

  test('a description of 39 characters and a reference of 7 digits pass', async () => {
    await using box = await openSandbox(choices);
    const change = { description: 'ñ'.repeat(39), external_reference: '0000001' };
    const reply = await box.post(PATH, transfer(box, internal(box, 2), change));
    expect(reply.as(spec.newTransaction)).toMatchObject({
      description: change.description,
      externalReference: '0000001',
    });
  });

  test('a blocked destination and a blocked source are not active', async () => {
    await using box = await openSandbox(choices);
    const blocked = at(box.seeded.blockedInstrumentIds, 0);
    const expected = {
      status: 400,
      reason: 'FAILED_PRECONDITION',
      detail: 'The account is not currently active.',
      method,
    };
    expectRefusal(await box.post(PATH, transfer(box, blocked)), expected);
    expectRefusal(await box.post(PATH, transfer(box, internal(box, 0), {}, blocked)), expected);
  });

  test('a destination that is unknown or another client’s is destination_not_found', async () => {
    await using box = await openSandbox(choices);
    const theirs = at(at(box.seeded.otherClients, 0).internalInstrumentIds, 0);
    for (const id of ['3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111', theirs]) {
      expectRefusal(await box.post(PATH, transfer(box, id)), {
        status: 404,
        reason: 'destination_not_found',
      });
    }
  });

  test('an external destination is external_transfer_not_allowed', async () => {
    await using box = await openSandbox(choices);
    for (const id of [at(box.seeded.cardInstrumentIds, 0), at(box.seeded.clabeInstrumentIds, 0)]) {
      const reply = await box.post(PATH, transfer(box, id));
      expectRefusal(reply, { status: 409, reason: 'external_transfer_not_allowed' });
      expect(reply.contentType).toContain(choices.errorPages === 'html' ? 'text/html' : 'application/json');
    }
  });

  test('an id that is no UUID is a DATA_ERROR', async () => {
    await using box = await openSandbox(choices);
    for (const field of ['client_id', 'source_instrument_id', 'destination_instrument_id']) {
      const body = { ...transfer(box, internal(box, 2)), [field]: 'x' };
      expectRefusal(await box.post(PATH, body), { status: 400, reason: 'DATA_ERROR', method });
    }
  });

  test('a transfer to oneself is accepted, or refused, by choice, and changes no balance', async () => {
    await using box = await openSandbox(choices);
    const before = (await box.ledger()).balances;
    const reply = await box.post(PATH, transfer(box, box.seeded.centralizingInstrumentId));
    expect(reply.status).toBe(choices.sameInstrumentTransfer === 'accepted' ? 200 : 400);
    expect((await box.ledger()).balances).toEqual(before);
  });

  test('a credit to another owner is told, informationally, whatever the receiver answers', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 422, body: { refundReason: 'no' } });
    await box.register('MONEY_IN', receiver.url);
    const debit = (await box.post(PATH, transfer(box, internal(box, 2)))).as(spec.newTransaction);
    await box.step(0);
    expect(receiver.received).toHaveLength(1);
    const { body } = spec.moneyIn.parse(at(receiver.received, 0).json);
    expect(body).toMatchObject({
      sub_category: 'INT_CREDIT',
      amount: '10.00',
      owner_id: at(box.seeded.customerIds, 0),
      payment_concept: 'Pago',
      numeric_reference: '1234567',
      tracking_key: debit.trackingId,
    });
    const credit = (await box.get(box.of(`/transactions/${body.id}`))).as(spec.transaction);
    expect(credit).toMatchObject({
      category: 'INTER_TRANS',
      subCategory: 'INT_CREDIT',
      transactionStatus: 'LIQUIDATED',
    });
    expect(credit.id).not.toBe(debit.id);
  });

  test('a self-transfer, same client and same owner, is told nobody', async () => {
    await using box = await openSandbox(choices);
    await using receiver = await openReceiver({ status: 201 });
    await box.register('MONEY_IN', receiver.url);
    const own = await box.post(PATH, transfer(box, internal(box, 1)));
    expect(own.status).toBe(200);
    const customers = await box.post(PATH, transfer(box, internal(box, 3), {}, internal(box, 2)));
    expect(customers.status).toBe(200);
    await box.step(3600);
    expect(receiver.received).toEqual([]);
  });

  test('it cannot be refunded', async () => {
    await using box = await openSandbox(choices);
    const id = box.seeded.transactions.internalTransactionId;
    const reply = await box.post(box.of(`/transactions/${id}/refund`), { refundReason: 'x' });
    expectRefusal(reply, { status: 400, reason: 'FAILED_PRECONDITION' });
  });
});
