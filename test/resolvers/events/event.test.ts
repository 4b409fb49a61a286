import { describe, expect, it } from 'vitest';
import type { EventType, StoredEvent } from '../../../src/events/log.ts';
import { decodeEvent } from '../../../src/resolvers/events/event.ts';
import { eventNames } from '../../../src/resolvers/events/event-names.ts';
import { eventFilter } from '../../../src/resolvers/events/event-page.ts';
import type { Viewer } from '../../../src/resolvers/events/visibility.ts';

const stored = (type: EventType, payload: unknown, more: Partial<StoredEvent> = {}): StoredEvent => ({
  cursor: 'c1',
  id: 'm1',
  type,
  receivedAt: '2026-11-20T15:30:00Z',
  payload,
  ...more,
});

const OWNER = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const credit = {
  id_msg: 'm1',
  msg_name: 'MONEY_IN',
  msg_date: '2026-11-20',
  body: {
    id: 't1',
    beneficiary_account: '646180110400000007',
    beneficiary_name: 'ALAMEDA',
    beneficiary_rfc: 'ALA010203AB1',
    payer_account: '012180001234567897',
    payer_name: 'ANA RUIZ',
    payer_rfc: 'ND',
    payer_institution: '40012',
    amount: '1250.00',
    transaction_date: '2026-11-20 09:30:00',
    tracking_key: 'TRACK1',
    payment_concept: 'Renta',
    numeric_reference: '1234567',
    sub_category: 'SPEI_CREDIT',
    registered_at: '2026-11-20T09:30:01-06:00',
    owner_id: OWNER,
    something_new: true,
  },
};

describe('a MONEY_IN message', () => {
  it('has no half of a character, which many readers of JSON refuse with all around it', () => {
    const body = { ...credit.body, payer_name: 'ANA \ud83d', payment_concept: '\udc4d', tracking_key: 'T👍' };
    expect(decodeEvent(stored('MONEY_IN', { ...credit, body }))).toMatchObject({
      payer: { name: 'ANA \ufffd' },
      paymentConcept: '\ufffd',
      trackingKey: 'T👍',
    });
  });

  it('is read under the names of the graph, with its decision', () => {
    const event = decodeEvent(stored('MONEY_IN', credit, { decision: 'REJECTED', refundReason: 'no' }));
    expect(event).toEqual({
      id: 'm1',
      type: 'MONEY_IN',
      cursor: 'c1',
      receivedAt: '2026-11-20T15:30:00Z',
      messageDate: '2026-11-20',
      transactionId: 't1',
      subCategory: 'SPEI_CREDIT',
      amount: '1250.00',
      currency: 'MXN',
      beneficiary: { account: '646180110400000007', name: 'ALAMEDA', rfc: 'ALA010203AB1' },
      payer: { account: '012180001234567897', name: 'ANA RUIZ', rfc: 'ND' },
      payerInstitution: '40012',
      trackingKey: 'TRACK1',
      paymentConcept: 'Renta',
      numericReference: '1234567',
      transactionDate: '2026-11-20 09:30:00',
      registeredAt: '2026-11-20T09:30:01-06:00',
      ownerId: OWNER,
      decision: 'REJECTED',
      refundReason: 'no',
    });
  });

  it('with nothing but what it needs reads as null elsewhere', () => {
    const event = decodeEvent(stored('MONEY_IN', { body: { id: 't1', amount: '5.00' } }));
    expect(event).toMatchObject({
      messageDate: null,
      subCategory: null,
      ownerId: null,
      payer: { account: null, name: null, rfc: null },
      decision: 'INFORMED',
    });
  });

  it.each([
    ['5.00', '5.00'],
    ['1.5', '1.50'],
    [' 5.00', ' 5.00'],
    [1.5, '1.50'],
    [12, '12.00'],
    [1.555, '1.555'],
  ])('of %j has the amount "%s", of which the graph shows those with two decimals', (sent, amount) => {
    expect(decodeEvent(stored('MONEY_IN', { body: { id: 't1', amount: sent } }))).toMatchObject({ amount });
  });

  it('shows no number that has been rounded, and is found by none', () => {
    const payload =
      JSON.parse(`{"body":{"id":9007199254740993,"amount":"5.00","beneficiary_account":646180110400000007,
      "payer_account":123456,"numeric_reference":1234567,"owner_id":"${OWNER}"}}`);
    const event = stored('MONEY_IN', payload);
    expect(decodeEvent(event)).toMatchObject({
      transactionId: null,
      beneficiary: { account: null },
      payer: { account: '123456' },
      numericReference: '1234567',
    });
    expect(eventNames(event)).toEqual([`owner ${OWNER}`]);
  });

  it('whose date is no date shows none', () => {
    expect(decodeEvent(stored('MONEY_IN', { ...credit, msg_date: 'today' }))).toMatchObject({
      messageDate: null,
    });
  });

  it('is decoded once for all who read it', () => {
    const event = stored('MONEY_IN', credit);
    expect(decodeEvent(event)).toBe(decodeEvent(event));
  });
});

describe('a CEP message', () => {
  const message = {
    id_msg: 'm1',
    msg_name: 'CEP',
    msg_date: '2026-11-20',
    body: {
      id: 'b1',
      tracking_key: 'TRACK1',
      external_reference: '201126',
      payment_concept: 'Validacion de cuenta',
      beneficiary_account: '646180110400000007',
      beneficiary_name: 'ANA RUIZ',
      beneficiary_rfc: 'RUIA800101AB1',
      status: 'COMPLETED',
      processed_at: '2026-11-20 09:31:30-06:00',
    },
  };
  const read = {
    messageDate: '2026-11-20',
    bodyId: 'b1',
    status: 'COMPLETED',
    trackingKey: 'TRACK1',
    externalReference: '201126',
    paymentConcept: 'Validacion de cuenta',
    beneficiary: { account: '646180110400000007', name: 'ANA RUIZ', rfc: 'RUIA800101AB1' },
    processedAt: '2026-11-20 09:31:30-06:00',
  };

  it('is read out of its wrapper', () => {
    expect(
      decodeEvent(stored('CEP', { client_id: 'c', payload: message, webhook_type: 'CEP' })),
    ).toMatchObject(read);
  });

  it('is read bare just as well', () => {
    expect(decodeEvent(stored('CEP', message))).toMatchObject(read);
  });

  it('not processed yet has no date of it', () => {
    const body = { ...message.body, processed_at: null };
    expect(decodeEvent(stored('CEP', { ...message, body }))).toMatchObject({ processedAt: null });
  });
});

describe('a STATUS_UPDATE message', () => {
  it.each([{ any: 'thing' }, 'text', 7, [1], false])('is passed on whole: %j', (payload) => {
    expect(decodeEvent(stored('STATUS_UPDATE', payload))).toMatchObject({ payload });
  });
});

it('an event of a type that a later version has stored is no event of this one', () => {
  expect(decodeEvent({ ...stored('MONEY_IN', credit), type: 'REFUND' })).toBeUndefined();
});

describe('a filter of events', () => {
  /** Somebody who may see everything, so that nothing needs to be read. */
  const wholeClient: Viewer = {
    identity: { caller: { clientId: OWNER, customerId: undefined } },
    services: {
      receiptOwner() {
        throw new Error('nothing is read');
      },
    },
    budget: { signal: new AbortController().signal },
  };
  const known = (event: StoredEvent) => {
    const decoded = decodeEvent(event);
    if (decoded === undefined) throw new Error(`${event.type} is known`);
    return decoded;
  };
  const moneyIn = known(stored('MONEY_IN', credit));
  const update = known(stored('STATUS_UPDATE', {}));

  it('lets everything through that it does not ask about', () => {
    expect([moneyIn, update].filter(eventFilter({}, wholeClient))).toEqual([moneyIn, update]);
  });

  it('by type lets only those through', () => {
    expect([moneyIn, update].filter(eventFilter({ types: ['STATUS_UPDATE'] }, wholeClient))).toEqual([
      update,
    ]);
  });

  it('by owner lets only its credits through, however its id is written', () => {
    expect([moneyIn, update].filter(eventFilter({ ownerId: OWNER.toUpperCase() }, wholeClient))).toEqual([
      moneyIn,
    ]);
    expect(
      [moneyIn].filter(eventFilter({ ownerId: '7c9e6679-7425-40de-944b-e07fc1f90ae7' }, wholeClient)),
    ).toEqual([]);
  });

  it('refuses a list of no types, and an owner that is no id', () => {
    expect(() => eventFilter({ types: [] }, wholeClient)).toThrow(/"types"/);
    expect(() => eventFilter({ ownerId: '../x' }, wholeClient)).toThrow(/"ownerId" must be a UUID/);
  });
});
