import { describe, expect, test } from 'vitest';
import { at, expectRefusal, type Opened, openReceiver, openSandbox, READINGS } from './harness.ts';
import { tables } from './spec.ts';

const PATH = '/v1/transactions/penny_validation';

function penny({ seeded }: Opened, change: Record<string, unknown> = {}) {
  return {
    client_id: seeded.clientId,
    source_instrument_id: seeded.centralizingInstrumentId,
    destination_instrument_id: at(seeded.clabeInstrumentIds, 0),
    ...change,
  };
}

/** Seconds from the start of each attempt (Events, Retrieval schedule). */
const MINUTES = [0, 1.5, 3, 8, 13, 18, 33, 48, 63, 78, 93, 108, 123, 138, 153, 168, 183];

describe.each(READINGS)('penny validations, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  async function withWebhook() {
    const box = await openSandbox(choices);
    const receiver = await openReceiver({ status: 200 });
    await box.register('CEP', receiver.url);
    return {
      box,
      start: async (change: Record<string, unknown> = {}) =>
        (await box.post(PATH, penny(box, change))).as(spec.newTransaction),
      read: async (id: string) => (await box.get(box.of(`/transactions/${id}`))).as(spec.transaction),
      messages: () => receiver.received.map(({ json }) => spec.cep.parse(json)),
      async [Symbol.asyncDispose]() {
        await box.sandbox.stop();
        await receiver.close();
      },
    };
  }

  test('the answer carries 0.01 MXN and a PENDING dataCep', async () => {
    await using run = await withWebhook();
    const reply = await run.box.post(PATH, penny(run.box));
    expect(reply.status).toBe(200);
    const made = reply.as(spec.newTransaction);
    expect(made).toMatchObject({
      amount: '0.01',
      currency: 'MXN',
      subCategory: 'SPEI_DEBIT',
      transactionStatus: 'INITIALIZED',
      description: 'Validacion de cuenta',
      metadata: { dataCep: { status: 'PENDING' } },
    });
    const [, year, month, day] = made.audit.createdAt.match(/^\d\d(\d\d)-(\d\d)-(\d\d)/) ?? [];
    expect(made.externalReference).toBe(`${day}${month}${year}`);
  });

  test('reads show INITIALIZED for seconds, then PENDING, then COMPLETED with the holder', async () => {
    await using run = await withWebhook();
    const { id } = await run.start();
    expect((await run.read(id)).metadata?.dataCep.status).toBe('INITIALIZED');
    await run.box.step(choices.cepInitializedSeconds);
    expect((await run.read(id)).metadata?.dataCep.status).toBe('PENDING');
    await run.box.step(180);
    const done = (await run.read(id)).metadata?.dataCep;
    expect(done).toMatchObject({ status: 'COMPLETED', beneficiaryRfc: 'EBA090511TR3' });
    expect(done?.beneficiaryName).toMatch(/^EMPAQUES/);
    expect(done?.processedAt).toBeDefined();
  });

  test('messages go from PENDING to COMPLETED, never INITIALIZED, with description and reference', async () => {
    await using run = await withWebhook();
    const made = await run.start({ description: 'Cuenta de Ñandu 7', external_reference: '0042' });
    await run.box.step(3 * 3600);
    const messages = run.messages();
    const statuses = messages.map(({ payload }) => payload.body.status);
    expect(statuses.at(-1)).toBe('COMPLETED');
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set(['PENDING']));
    const first = at(messages, 0).payload.body;
    const last = at(messages, -1).payload.body;
    expect(first).toMatchObject({ processed_at: null, payment_concept: 'Cuenta de Ñandu 7' });
    expect(first).not.toHaveProperty('external_reference');
    expect(last).toMatchObject({
      external_reference: '0042',
      tracking_key: made.trackingId,
      id: choices.cepBodyId === 'transaction' ? made.id : made.metadata?.dataCep.validationId,
    });
    const ids = new Set(messages.map(({ payload }) => payload.id_msg));
    expect(ids.size).toBe(choices.cepSharesMessageId ? 1 : messages.length);
  });

  test('a receipt names somebody else where the receiver was registered with a wrong holder', async () => {
    await using run = await withWebhook();
    const { otherHolderInstrumentId: destination_instrument_id } = run.box.seeded;
    const made = await run.start({ destination_instrument_id });
    await run.box.step(3600);
    expect((await run.read(made.id)).metadata?.dataCep).toMatchObject({
      status: 'COMPLETED',
      beneficiaryName: 'FERNANDO LUGO ARRIAGA',
      beneficiaryRfc: 'LUAF790430KX2',
    });
    expect(at(run.messages(), -1).payload.body).toMatchObject({
      beneficiary_name: 'FERNANDO LUGO ARRIAGA',
    });
  });

  test('a receipt that never comes follows the 17 attempts to FAILED', async () => {
    await using run = await withWebhook();
    const { noReceiptInstrumentId: destination_instrument_id } = run.box.seeded;
    const { id } = await run.start({ destination_instrument_id });
    const statuses: string[] = [];
    let elapsed = 0;
    for (const [index, minutes] of MINUTES.entries()) {
      await run.box.step(minutes * 60 - elapsed - (minutes === 0 ? 0 : 1));
      if (index > 0) expect(run.messages()).toHaveLength(index);
      await run.box.step(minutes === 0 ? 0 : 1);
      elapsed = minutes * 60;
      statuses.push(at(run.messages(), index).payload.body.status);
      const read = (await run.read(id)).metadata?.dataCep.status;
      expect(read).toBe(index === 0 ? 'INITIALIZED' : statuses[index]);
    }
    expect(statuses).toEqual([
      ...Array<string>(3).fill('PENDING'),
      ...Array<string>(13).fill('DELAYED'),
      'FAILED',
    ]);
    await run.box.step(24 * 3600);
    expect(run.messages()).toHaveLength(17);
  });

  test('time that runs by itself brings the receipt as well', async () => {
    await using box = await openSandbox({ ...choices, pennyValidationNeedsWebhook: false }, 3_600);
    const { id } = (await box.post(PATH, penny(box))).as(spec.newTransaction);
    const status = async () =>
      (await box.get(box.of(`/transactions/${id}`))).as(spec.transaction).metadata?.dataCep.status;
    await expect.poll(status, { interval: 5 }).toBe('COMPLETED');
  });

  test('a receipt that comes late completes after DELAYED', async () => {
    await using run = await withWebhook();
    await run.start({ destination_instrument_id: run.box.seeded.lateReceiptInstrumentId });
    await run.box.step(4 * 3600);
    expect(run.messages().map(({ payload }) => payload.body.status)).toEqual([
      ...['PENDING', 'PENDING', 'PENDING', 'DELAYED', 'DELAYED', 'COMPLETED'],
    ]);
  });

  test('a receipt that was completed before its time stays so, and nothing more is told of it', async () => {
    await using run = await withWebhook();
    const { id } = await run.start({ destination_instrument_id: run.box.seeded.lateReceiptInstrumentId });
    await run.box.post('/sandbox/receipts', { transactionId: id, receipt: 'now' });
    // The message of the first attempt may still be under way.
    await run.box.step(0);
    const told = run.messages().length;
    await run.box.step(4 * 3600);
    expect((await run.read(id)).metadata?.dataCep.status).toBe('COMPLETED');
    expect(run.messages()).toHaveLength(told);
  });

  test.each<[string, Record<string, unknown>]>([
    ['a description of 41 characters', { description: 'x'.repeat(41) }],
    ['a description with a comma', { description: 'a, b' }],
    ['a description with an accent other than ñ', { description: 'validación' }],
    ['a reference of 8 digits', { external_reference: '12345678' }],
    ['a reference with letters', { external_reference: '12a' }],
    ['a description that is no string', { description: 7 }],
  ])('%s is refused', async (_what, change) => {
    await using run = await withWebhook();
    expectRefusal(await run.box.post(PATH, penny(run.box, change)), {
      status: 400,
      reason: 'DATA_ERROR',
      method: 'PennyValidation',
    });
  });

  test('a card cannot be validated', async () => {
    await using run = await withWebhook();
    const card = at(run.box.seeded.cardInstrumentIds, 0);
    expectRefusal(await run.box.post(PATH, penny(run.box, { destination_instrument_id: card })), {
      status: 400,
      reason: 'FAILED_PRECONDITION',
    });
  });

  test('a registered CEP webhook is required, or not, by choice', async () => {
    await using box = await openSandbox(choices);
    const reply = await box.post(PATH, penny(box));
    expect(reply.status).toBe(choices.pennyValidationNeedsWebhook ? 400 : 200);
  });
});
