import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { OpenPayment } from '../../../src/money/settling/open-records.ts';
import { createSettlingCalls } from '../../../src/resolvers/payments/settling-calls.ts';
import { Sightings } from '../../../src/resolvers/payments/sightings.ts';
import type { AuthHeaders } from '../../../src/upstream/call/credential.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';

const KEY = randomUUID();
const BODY = '{"amount":"1.00"}';

it('a repeat of money out is sent again with the next credential, whoever on the way has refused the one before', async () => {
  const sent: unknown[] = [];
  await using service = await startUpstream(async (request, response) => {
    const { authorization, 'idempotency-key': key } = request.headers;
    sent.push([authorization, key, String(Buffer.concat(await request.toArray()))]);
    // A proxy says no, in words that are not the service's.
    if (authorization === 'old') response.writeHead(401).end('no');
    else json(response, { id: 'done' });
  });
  const authorize = (refused?: AuthHeaders): AuthHeaders => ({
    authorization: refused === undefined ? 'old' : 'new',
  });
  const calls = createSettlingCalls({
    ...{ clientId: CLIENT_ID, utcOffset: '-06:00', isOver: () => false, now: () => Date.now() },
    // It is not looked for what events name.
    sightings: new Sightings({ readAfter: unread, givenUpTo: unread }, CLIENT_ID),
    rest: () => service.restOf({ authorize }),
    // What was read before may be older than the money that has moved.
    onSent: () => void sent.push('told'),
  });
  // Of the payment its text alone is sent.
  const payment = { body: BODY } as OpenPayment;
  expect(await calls.repeat(payment, KEY)).toMatchObject({ kind: 'answered', status: 200 });
  expect(sent).toEqual([['old', KEY, BODY], ['new', KEY, BODY], 'told']);
});

it('a repeat whose answer is lost is told of as well: it may have moved money', async () => {
  let told = 0;
  await using service = await startUpstream((request) => {
    expect(told).toBe(0);
    request.socket.destroy();
  });
  const calls = createSettlingCalls({
    ...{ clientId: CLIENT_ID, utcOffset: '-06:00', isOver: () => false, now: () => Date.now() },
    sightings: new Sightings({ readAfter: unread, givenUpTo: unread }, CLIENT_ID),
    rest: () => service.restOf({}),
    onSent: () => {
      told += 1;
    },
  });
  // Of the payment its text alone is sent.
  expect(await calls.repeat({ body: BODY } as OpenPayment, KEY)).toMatchObject({ kind: 'failed' });
  expect(told).toBe(1);
});

const unread = (): never => {
  throw new Error('is not read');
};
