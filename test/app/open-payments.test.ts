import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import type { Base } from '../../src/app/base.ts';
import { serveOpenPayments, settleLaterOf } from '../../src/app/open-payments.ts';
import type { Stores } from '../../src/app/stores.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import type { PaymentBook, SettlingCalls } from '../../src/money/settling/open-payment.ts';
import type { OpenPayment } from '../../src/money/settling/open-records.ts';
import { Remembered } from '../../src/money/settling/remembered.ts';
import type { SettleLater } from '../../src/operation/services.ts';
import { fixedCredential } from '../../src/upstream/call/credential.ts';
import { PATIENT } from '../helpers/gateway-config.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { SHOWN } from '../money/orders.ts';

const HOUR = 3_600_000;

/** Until the test ends, no time passes but what the test says, and no call is given up, however slow the machine is. */
function useTime(passed: () => number): void {
  const system = clock;
  const [now, monotonic] = [system.now(), system.monotonic()];
  const restore = useClock({
    ...system,
    now: () => now + passed(),
    monotonic: () => monotonic + passed(),
    setTimeout: (callback, ms, ...args) => system.setTimeout(callback, 60 * ms, ...args),
  });
  onTestFinished(restore);
}

it('all tokens of a client read once what its events name, and another client reads its own', async () => {
  const read: string[] = [];
  const events = {
    readAfter: async (clientId: string) => {
      read.push(clientId);
      return { events: [], hasMore: false };
    },
    givenUpTo: async () => undefined,
  };
  const config = { upstreamTimeoutMs: 1_000, upstreamUtcOffset: '-06:00' };
  // What is asked of them as long as the log names nothing.
  const base = { config, restService: {}, metrics: {} } as unknown as Base;
  const settleLater = settleLaterOf(base, { events } as unknown as Stores);
  const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN };
  const payment = { asked, sentAt: Date.now(), closed: null, body: '{}' } as unknown as OpenPayment;
  const look = async (clientId: string) => {
    const caller = { caller: { clientId }, requestedBy: randomUUID() } as Parameters<SettleLater>[0];
    return settleLater?.(caller)
      .calls()
      .look(payment, {} as PaymentBook);
  };
  const [one, other] = [randomUUID(), randomUUID()];
  expect(await look(one)).toMatchObject({ kind: 'open' });
  for (let token = 0; token < 5; token += 1) await look(one);
  await look(other);
  expect(read).toEqual([one, other]);
});

it('a credential that the service has refused once is over, whatever the service answers after that', async () => {
  const statuses = [201, 401, 201];
  await using upstream = await startUpstream((_request, response) => json(response, {}, statuses.shift()));
  const base = {
    config: { upstreamTimeoutMs: 5_000, upstreamUtcOffset: '-06:00' },
    restService: { http: upstream.http },
    metrics: { upstreamCall: () => undefined },
    // What else there is of it, sending a payment again does not need.
  } as unknown as Base;
  const settleLater = settleLaterOf(base, { events: {} } as unknown as Stores);
  const clientId = randomUUID();
  const caller = {
    ...{ caller: { clientId }, requestedBy: 'digest', requester: { caller: 'caller', group: 'caller' } },
    authorize: fixedCredential({ authorization: 'Bearer token' }),
  } as Parameters<SettleLater>[0];
  const calls = settleLater?.(caller).calls();
  const isOver: unknown[] = [];
  while (statuses.length > 0) {
    await calls?.repeat({ body: '{}' } as OpenPayment, randomUUID());
    isOver.push(calls?.isOver());
  }
  expect(isOver).toEqual([false, true, true]);
});

it('each payment is sent again under its own caller’s credential, and under the new one once the caller has renewed it', async () => {
  useTime(() => 0);
  const sent: string[] = [];
  await using upstream = await startUpstream((request, response) => {
    sent.push(`${request.headers['idempotency-key']} under ${request.headers.authorization}`);
    json(response, {}, 201);
  });
  const base = {
    config: { ...PATIENT, upstreamUtcOffset: '-06:00' },
    restService: { http: upstream.http },
    metrics: { upstreamCall: () => undefined },
    // What else there is of it, sending a payment again does not need.
  } as unknown as Base;
  const settleLater = settleLaterOf(base, { events: {} } as unknown as Stores);
  const clientId = randomUUID();
  const now = clock.now();
  const remembered = new Remembered();
  const add = (payment: string, token: string, until: number): void => {
    const caller = { clientId, expiresAt: until };
    const requester = { caller: token, group: 'client' };
    const authorize = fixedCredential({ authorization: token });
    const requestedBy = `digest of ${token}`;
    const later = settleLater?.({ caller, requester, authorize, requestedBy } as Parameters<SettleLater>[0]);
    if (later !== undefined) remembered.add({ clientId, hash: payment }, later, now);
  };
  add('hers', 'Bearer ana', now + HOUR);
  add('his', 'Bearer ben', now + HOUR);
  add('his', 'Bearer ben, renewed', now + 4 * HOUR);
  for (const { name, calls } of remembered.due(clientId, now + HOUR / 2))
    await calls.repeat({ body: '{}' } as OpenPayment, name.hash);
  expect(sent.sort()).toEqual(['hers under Bearer ana', 'his under Bearer ben, renewed']);
});

it('a look reads what events name for its own time, also where each call has little', async () => {
  let passed = 0;
  useTime(() => passed);
  const reason = { reason: 'transaction_not_found', domain: 'CORE', metadata: { http_code: '404' } };
  await using upstream = await startUpstream((_request, response) => {
    passed += 100;
    json(response, { code: 5, message: 'API Error', details: [reason] }, 404);
  });
  const sentAt = clock.now();
  const receivedAt = new Date(sentAt).toISOString();
  const named = Array.from({ length: 30 }, (_, number) => {
    const event = { id: `${number}`, cursor: `${number}`, type: 'STATUS_UPDATE', receivedAt };
    return { ...event, payload: { transaction: randomUUID() } };
  });
  const events = {
    readAfter: async (_clientId: string, cursor: string | null) => ({
      events: cursor === null ? named : [],
      hasMore: false,
    }),
    givenUpTo: async () => undefined,
  };
  const base = {
    config: { upstreamTimeoutMs: 1_000, upstreamUtcOffset: '-06:00' },
    restService: { http: upstream.http },
    metrics: { upstreamCall: () => undefined },
    // What else there is of it, looking for a payment does not need.
  } as unknown as Base;
  const clientId = randomUUID();
  const caller = {
    ...{ caller: { clientId }, requestedBy: 'digest', requester: { caller: 'caller', group: 'caller' } },
    authorize: fixedCredential({ authorization: 'Bearer token' }),
  } as Parameters<SettleLater>[0];
  const asked = { operation: 'createInternalTransaction', customerId: null, ...SHOWN };
  const payment = { name: { clientId }, asked, sentAt, closed: null, body: '{}' } as unknown as OpenPayment;
  const book = { readByTransactions: async (_: string, ids: readonly string[]) => ids.map(() => undefined) };
  const calls = settleLaterOf(base, { events } as unknown as Stores)?.(caller).calls();
  expect(await calls?.look(payment, book as unknown as PaymentBook)).toEqual({
    kind: 'open',
    seen: 'nothing',
  });
  expect(upstream.requests).toHaveLength(named.length);
});

it('each look of the gateway itself has the whole time for its REST calls, however long after the start it is made', async () => {
  let passed = 0;
  const system = clock;
  // No time passes but what the test lets pass.
  const [now, monotonic] = [system.now(), system.monotonic()];
  onTestFinished(useClock({ ...system, now: () => now + passed, monotonic: () => monotonic + passed }));
  await using upstream = await startUpstream((_request, response) => json(response, {}, 201));
  const clientId = randomUUID();
  const base = {
    config: {
      upstreamTimeoutMs: 5_000,
      upstreamUtcOffset: '-06:00',
      service: { clients: [{ clientId }] },
    },
    restService: { http: upstream.http },
    metrics: { upstreamCall: () => undefined },
    // What else there is of it, sending a payment again does not need.
  } as unknown as Base;
  const served = new Map<string, SettlingCalls>();
  const money = { serve: (id: string, calls: SettlingCalls) => served.set(id, calls) };
  const auth = { authorize: () => fixedCredential({ authorization: 'Bearer token' }) };
  serveOpenPayments(base, { events: {}, money, auth } as unknown as Stores, () => undefined);
  for (let day = 0; day < 3; day += 1) {
    const attempt = await served.get(clientId)?.repeat({ body: '{}' } as OpenPayment, randomUUID());
    expect(attempt).toMatchObject({ kind: 'answered', status: 201 });
    passed += 86_400_000;
  }
  expect(upstream.requests).toHaveLength(3);
});
