import { expect, it } from 'vitest';
import type { EventType } from '../../src/events/log.ts';
import { decode } from '../../src/ingress/decode.ts';

const CLIENT = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const LONG = 'x'.repeat(60_000);

function identityOf(type: EventType, id: string | undefined, more: object = {}): string {
  const message = { id_msg: id, body: { id: 'a', amount: '1.00', status: 'PENDING', ...more } };
  const body = type === 'CEP' ? { client_id: CLIENT, payload: message } : message;
  const decoded = decode(type, CLIENT, Buffer.from(JSON.stringify(body)));
  if ('problem' in decoded) throw new Error(decoded.problem);
  return decoded.delivery.identity ?? '';
}

it.each<EventType>(['MONEY_IN', 'CEP', 'STATUS_UPDATE'])(
  'a %s with a long message id is remembered by a short text, which is its own',
  (type) => {
    const identity = identityOf(type, LONG);
    expect(identity.length).toBeLessThan(100);
    expect(identityOf(type, LONG)).toBe(identity);
    expect(identityOf(type, `${LONG}y`)).not.toBe(identity);
    expect(identityOf(type, 'm-1')).toContain('m-1');
  },
);

it('a MONEY_IN without a message id is remembered by its transaction, however long', () => {
  const body = { body: { id: LONG, amount: '1.00' } };
  const decoded = decode('MONEY_IN', CLIENT, Buffer.from(JSON.stringify(body)));
  expect('delivery' in decoded && decoded.delivery.identity?.length).toBeLessThan(100);
});

it('a MONEY_IN without a message id is not taken for one whose message id is that of its transaction', () => {
  expect(identityOf('MONEY_IN', undefined, { id: 'one' })).not.toBe(identityOf('MONEY_IN', 'one'));
});

it('the text `None` is no message id: two credits are two messages, and two receipts two events', () => {
  const one = identityOf('MONEY_IN', 'None', { id: 'one' });
  expect(one).toBe(identityOf('MONEY_IN', undefined, { id: 'one' }));
  expect(identityOf('MONEY_IN', 'None', { id: 'two' })).not.toBe(one);
  expect(identityOf('CEP', 'None')).toBe('');
  expect(identityOf('STATUS_UPDATE', ' None ')).toBe('');
});
