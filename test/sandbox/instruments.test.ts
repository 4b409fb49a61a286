import { describe, expect, test } from 'vitest';
import { makeClabe } from '../../packages/sandbox/src/clabe.ts';
import { at, expectRefusal, type Opened, openSandbox, READINGS } from './harness.ts';
import { tables } from './spec.ts';

function card(
  { seeded }: Opened,
  change: Record<string, unknown> = {},
  cardChange: Record<string, unknown> = {},
) {
  return {
    source_bank_id: at(seeded.bankIds, 0),
    client_id: seeded.clientId,
    type: 'RECEIVER',
    rfc: 'ND',
    alias: 'Proveedor',
    instrumentKind: 'debit_card',
    debit_card: {
      destination_bank_id: at(seeded.bankIds, 5),
      card_number: '4152310000000001',
      holder_name: 'Nombre de Cuarenta Caracteres Exactos Ok',
      ...cardChange,
    },
    ...change,
  };
}

describe.each(READINGS)('registering instruments, %s choices', (name, choices) => {
  const spec = tables(name === 'default');

  test('a debit card becomes a RECEIVER instrument of the client', async () => {
    await using box = await openSandbox(choices);
    const reply = await box.post(box.of('/instruments'), card(box));
    expect(reply.status).toBe(choices.instrumentCreated);
    const instrument = reply.as(spec.instrument);
    expect(instrument).toMatchObject({
      type: 'RECEIVER',
      bankId: at(box.seeded.bankIds, 5),
      ownerId: box.seeded.clientId,
      rfc: 'ND',
      instrumentDetail: { cardNumber: '4152310000000001', expirationDate: choices.absentTimestamp },
    });
    expect(instrument).not.toHaveProperty('customerId');
    const read = (await box.get(box.of(`/instruments/${instrument.id}`))).as(spec.instrument);
    expect(read).toEqual(instrument);
  });

  test('with customer_id the customer owns it', async () => {
    await using box = await openSandbox(choices);
    const customer_id = at(box.seeded.customerIds, 0);
    const reply = await box.post(box.of('/instruments'), card(box, { customer_id }));
    expect(reply.as(spec.instrument)).toMatchObject({ customerId: customer_id, ownerId: customer_id });
  });

  test('a virtual CLABE with a true check digit becomes a CLABE instrument', async () => {
    await using box = await openSandbox(choices);
    const names = choices.virtualClabeFields;
    const clabe = makeClabe('012', '180', '00012345678');
    const { debit_card: _card, instrumentKind: _kind, ...rest } = card(box);
    const body = (number: string) => ({
      ...rest,
      virtual_clabe: {
        [names.bank]: at(box.seeded.bankIds, 9),
        [names.clabe]: number,
        [names.holder]: 'Titular',
      },
    });
    const reply = await box.post(box.of('/instruments'), body(clabe));
    expect(reply.status).toBe(choices.instrumentCreated);
    expect(reply.as(spec.instrument).instrumentDetail).toEqual(
      expect.objectContaining({ accountNumber: clabe.slice(6), clabeNumber: clabe, holderName: 'Titular' }),
    );
    const wrongDigit = clabe.slice(0, 17) + ((Number(clabe[17]) + 1) % 10);
    expectRefusal(await box.post(box.of('/instruments'), body(wrongDigit)), { status: 400 });
  });

  test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
    ['another type', { type: 'SENDER' }, {}],
    ['no alias', { alias: undefined }, {}],
    ['no rfc', { rfc: undefined }, {}],
    ['no source bank', { source_bank_id: undefined }, {}],
    ['neither card nor CLABE', { debit_card: undefined }, {}],
    ['both a card and a CLABE', { virtual_clabe: {} }, {}],
    ['a card number of 15 digits', {}, { card_number: '415231000000000' }],
    ['a card number with letters', {}, { card_number: '415231000000000x' }],
    ['a holder of 41 characters', {}, { holder_name: 'x'.repeat(41) }],
    ['no destination bank', {}, { destination_bank_id: undefined }],
  ])('a registration with %s is refused with the spec’s body', async (_what, change, cardChange) => {
    await using box = await openSandbox(choices);
    const reply = await box.post(box.of('/instruments'), card(box, change, cardChange));
    expectRefusal(reply, { status: 400, reason: 'DATA_ERROR' });
  });

  test('a bank or customer that does not exist, or is another client’s, is 404', async () => {
    await using box = await openSandbox(choices);
    const unknown = '3f0c1a52-6d1c-4c1e-9a53-0f3fb1a1c111';
    const theirs = at(at(box.seeded.otherClients, 0).customerIds, 0);
    for (const change of [{ source_bank_id: unknown }, { customer_id: unknown }, { customer_id: theirs }]) {
      expectRefusal(await box.post(box.of('/instruments'), card(box, change)), { status: 404 });
    }
  });

  test('instrumentKind is required with a card, or not, by choice', async () => {
    await using box = await openSandbox(choices);
    const reply = await box.post(box.of('/instruments'), card(box, { instrumentKind: undefined }));
    expect(reply.status).toBe(choices.instrumentKindRequired ? 400 : choices.instrumentCreated);
  });
});
