import { expect, it } from 'vitest';
import { compare } from '../../../src/resolvers/payments/payment-answer.ts';
import { CLIENT_ID } from '../../helpers/http-stub.ts';

it('an answer to a refund that is the credit itself is not the refund, in whichever case its id was asked for', () => {
  const id = 'a5e3c1d2-7b64-4f0a-9c3e-5d2f8b6a1e90';
  const body = {
    ...{ id, amount: '1.00', currency: 'MXN' },
    ...{ category: 'CREDIT_TRANS', subCategory: 'SPEI_CREDIT', transactionStatus: 'LIQUIDATED' },
  };
  for (const originalId of [id, id.toUpperCase()]) {
    const ordered = {
      mutation: 'refundTransaction',
      clientId: CLIENT_ID,
      amount: '1.00',
      originalId,
    } as const;
    expect(compare(ordered, { status: 200, body, text: '' })).toEqual({ kind: 'differs', fields: ['id'] });
  }
});

it.each(['REFUNDED', 'REVERSED', 'RETURNED', 'DEVUELTA'])(
  'the answer to an order cannot say that the money has come back, as %s does',
  (transactionStatus) => {
    const body = {
      ...{ id: 'a5e3c1d2-7b64-4f0a-9c3e-5d2f8b6a1e90', amount: '1.00', currency: 'MXN' },
      ...{ category: 'DEBIT_TRANS', subCategory: 'SPEI_DEBIT', transactionStatus },
    };
    const ordered = { mutation: 'createMoneyOut', clientId: CLIENT_ID, amount: '1.00' } as const;
    const differs = { kind: 'differs', fields: ['transactionStatus'] };
    expect(compare(ordered, { status: 200, body, text: '' })).toEqual(differs);
  },
);

it.each([
  ['1.5', '1.50', true],
  ['01.50', '1.50', true],
  ['1.51', '1.50', false],
  ['1.500000', '1.50', true],
  ['1.50', '1.500000', true],
  ['1.501', '1.50', false],
  ['-1.50', '1.50', false],
])('the amount %s answers the order of %s: %s', (amount, wanted, isSame) => {
  const body = {
    ...{ id: 'a5e3c1d2-7b64-4f0a-9c3e-5d2f8b6a1e90', amount, currency: 'MXN' },
    ...{ category: 'DEBIT_TRANS', subCategory: 'SPEI_DEBIT', transactionStatus: 'INITIALIZED' },
  };
  const ordered = { mutation: 'createMoneyOut', clientId: CLIENT_ID, amount: wanted } as const;
  const differs = { kind: 'differs', fields: ['amount'] };
  expect(compare(ordered, { status: 200, body, text: '' })).toEqual(isSame ? { kind: 'same' } : differs);
});
