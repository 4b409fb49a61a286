import { describe, expect, it } from 'vitest';
import { upstreamIdempotencyKey } from '../../src/money/idempotency-key.ts';
import { inputHash, isIdempotencyKey, type MoneyIntent, recordName } from '../../src/money/intent.ts';
import { SHOWN } from './orders.ts';

const CLIENT = '11111111-2222-4333-8444-555555555555';
const intent: MoneyIntent = {
  mutation: 'createMoneyOut',
  clientId: CLIENT,
  customerId: undefined,
  keyOwner: undefined,
  key: 'order-0001',
  inputHash: 'h',
  shown: SHOWN,
  body: '{}',
};
const variants = [
  intent,
  { ...intent, clientId: '21111111-2222-4333-8444-555555555555' },
  { ...intent, customerId: '31111111-2222-4333-8444-555555555555' },
  { ...intent, customerId: '' },
  { ...intent, key: 'order-0002' },
  { ...intent, key: 'order-0001","x' },
];

describe('an idempotency key', () => {
  it.each(['12345678', 'order 0001', 'x'.repeat(128), 'pago-ñandú-✓', '👍'.repeat(8)])('may be %s', (key) => {
    expect(isIdempotencyKey(key)).toBe(true);
  });

  it.each([
    '',
    '1234567',
    'x'.repeat(129),
    '👍'.repeat(7),
    'order\n0001',
    'order\u00000001',
    'order\u202e0001',
    'order\u20280001',
    'order\ud8000001',
  ])('may not be %j', (key) => {
    expect(isIdempotencyKey(key)).toBe(false);
  });
});

describe('the hash of an input', () => {
  const input = { amount: '1.00', as: { reason: 'x', list: [1, 2] } };

  it('does not depend on the order of fields, nor on fields that are undefined', () => {
    const same = { as: { list: [1, 2], reason: 'x' }, amount: '1.00', description: undefined };
    expect(inputHash('createMoneyOut', same)).toBe(inputHash('createMoneyOut', input));
  });

  it.each([
    ['another amount', { ...input, amount: '1.01' }],
    ['another order in a list', { ...input, as: { reason: 'x', list: [2, 1] } }],
    ['a null where nothing was', { ...input, description: null }],
  ])('differs with %s', (_what, other) => {
    expect(inputHash('createMoneyOut', other)).not.toBe(inputHash('createMoneyOut', input));
  });

  it('differs with the mutation', () => {
    expect(inputHash('createInternalTransaction', input)).not.toBe(inputHash('createMoneyOut', input));
  });
});

describe('the name of a record', () => {
  it('is another for each client, customer and key', () => {
    expect(new Set(variants.map((variant) => JSON.stringify(recordName(variant)))).size).toBe(
      variants.length,
    );
  });

  it('is the same for every input and mutation, so that another use of the key is found', () => {
    const other = { ...intent, inputHash: 'i', mutation: 'refundTransaction', body: '[]' } as const;
    expect(recordName(other)).toEqual(recordName(intent));
  });

  it('does not hold the key', () => {
    expect(JSON.stringify(recordName(intent))).not.toContain(intent.key);
  });
});

describe('the upstream key', () => {
  it('is a UUID v5', () => {
    expect(upstreamIdempotencyKey(intent)).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  it('stays what it is from release to release: payments that are being settled depend on it', () => {
    expect(upstreamIdempotencyKey(intent)).toBe('3a4a3e52-0786-56d7-86d4-ad2f3da30b29');
    expect(upstreamIdempotencyKey({ ...intent, customerId: CLIENT })).toBe(
      'c1a951cb-f5f7-5f5a-8881-9abbba9ebdc3',
    );
  });

  it('is another for each client, customer and key', () => {
    expect(new Set(variants.map((variant) => upstreamIdempotencyKey(variant))).size).toBe(variants.length);
  });
});
