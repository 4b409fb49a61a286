import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openEventLog } from '../../../src/events/open.ts';
import { inputHash, recordName } from '../../../src/money/intent.ts';
import type { Found, PaymentBook } from '../../../src/money/settling/open-payment.ts';
import type { OpenPayment } from '../../../src/money/settling/open-records.ts';
import { openSqliteRecords } from '../../../src/money/sqlite/sqlite-record.ts';
import { Evidence } from '../../../src/resolvers/payments/evidence.ts';
import { recordsOf } from '../../../src/resolvers/payments/evidence-rivals.ts';
import { Sightings } from '../../../src/resolvers/payments/sightings.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { available, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { CLIENT_ID, json, startUpstream } from '../../helpers/http-stub.ts';
import { until } from '../../helpers/until.ts';
import { NOBODYS } from '../../money/orders.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The service is in one process with the calls to it: none is given up while both stand still, and none because a test lasts. */
const UNHURRIED = { timeoutMs: MINUTE, operationTimeoutMs: 10 * MINUTE };
const [SOURCE, DESTINATION] = [randomUUID(), randomUUID()];
const ASKED = {
  operation: 'createInternalTransaction',
  ...{ customerId: null, amount: '10.00', source: SOURCE, destination: DESTINATION, requestedBy: 'somebody' },
} as const;

/** The error body of docs/upstream-api.md, "Errors". */
const NOT_FOUND = {
  code: 5,
  message: 'API Error',
  details: [{ reason: 'transaction_not_found', domain: 'CORE', metadata: { http_code: '404' } }],
};

let cleanup: AsyncDisposableStack;
/** The transactions that the service shows, by id. Each is what was ordered. */
let shown: Set<string>;
/** Those that it refuses to show. */
let forbidden: Set<string>;
/** Those that it fails at. */
let failing: Set<string>;
/** Those that a proxy on the way has no route for. */
let unrouted: Set<string>;
/** When the service says that it made those that it shows, in ms since the epoch; it says nothing of others. */
let made: Map<string, number>;
/** What else it shows of them. */
let more: Map<string, object>;
/** In ms since the epoch. */
let now: number;
let lost: Awaited<ReturnType<typeof losePayment>>;
beforeEach(async () => {
  cleanup = new AsyncDisposableStack();
  shown = new Set();
  forbidden = new Set();
  failing = new Set();
  unrouted = new Set();
  made = new Map();
  more = new Map();
  now = Date.now();
  lost = await losePayment();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await cleanup.disposeAsync();
});

/** An internal transaction whose answer was lost, and a log of events. */
async function losePayment(retention = 10_000) {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-evidence-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  // The kernel's clock would not follow.
  const records = openSqliteRecords(
    join(dataDir, 'money.sqlite'),
    () => now,
    () => now,
    undefined,
  );
  cleanup.defer(() => records.stop());
  const log = await openEventLog({ dataDir, retention, logger: recordingLogger() });
  cleanup.defer(() => log.stop());
  await available(log);
  const service = cleanup.use(
    await startUpstream((request, response) => {
      const id = request.url?.split('/').at(-1) ?? '';
      if (forbidden.has(id)) return json(response, {}, 403);
      if (failing.has(id)) return json(response, {}, 500);
      if (unrouted.has(id)) return json(response, { message: 'no Route matched' }, 404);
      if (!shown.has(id)) return json(response, NOT_FOUND, 404);
      const between = { sourceInstrument: { id: SOURCE }, destinationInstrument: { id: DESTINATION } };
      const kind = { category: 'INTER_TRANS', subCategory: 'INT_DEBIT', transactionStatus: 'LIQUIDATED' };
      const time = made.get(id);
      const audit = time === undefined ? {} : { audit: { createdAt: new Date(time).toISOString() } };
      return json(response, {
        id,
        amount: '10.00',
        currency: 'MXN',
        ...kind,
        ...between,
        ...audit,
        ...more.get(id),
      });
    }, UNHURRIED),
  );
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT_ID, customerId: undefined, key });
  const hash = inputHash('createInternalTransaction', key);
  const claim = { ...NOBODYS, asked: ASKED, owner: 'call', inputHash: hash, leaseMs: 0, twin: key };
  await records.claim(name, claim);
  await records.markSent(name, 'call', '{}', { upstreamKey: null, original: null });
  let evidence = new Evidence(new Sightings(log, CLIENT_ID), '-06:00');
  return {
    /** An event names a transaction so long after the payment was sent. */
    async named(id: string, laterMs: number) {
      const receivedAt = new Date(now + laterMs).toISOString();
      const payload = JSON.stringify({ transaction: id });
      await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload, receivedAt }));
    },
    /** So many events that name no transaction. */
    async unnamed(count: number, laterMs: number) {
      const receivedAt = new Date(now + laterMs).toISOString();
      const event = () => moneyIn({ payload: '{"body":{}}', receivedAt });
      await Promise.all(Array.from({ length: count }, () => log.append(CLIENT_ID, event())));
    },
    /** Sends the same order under another key, now. Its answer is lost, too. @param customerId of the caller */
    async another(customerId: string | null = null, body: object = {}, written: object = {}) {
      const other = randomUUID();
      const otherName = recordName({ clientId: CLIENT_ID, customerId: undefined, key: other });
      const asked = { ...ASKED, customerId, ...written };
      await records.claim(otherName, { ...claim, asked, inputHash: other, twin: other });
      const sent = JSON.stringify(body);
      await records.markSent(otherName, 'call', sent, { upstreamKey: null, original: null });
      return otherName;
    },
    /** Another payment, of another amount, that is known to be done, by this transaction. */
    async paid(id: string) {
      const other = randomUUID();
      const otherName = recordName({ clientId: CLIENT_ID, customerId: undefined, key: other });
      const asked = { ...ASKED, amount: '20.00' };
      await records.claim(otherName, { ...claim, asked, inputHash: other, twin: other });
      await records.answer(otherName, other, { kind: 'done', status: 200, text: '{}' }, id);
    },
    /** The payment itself is answered after all, with this transaction. */
    answered: (id: string) => records.answer(name, hash, { kind: 'done', status: 200, text: '{}' }, id),
    /** The payment itself is refused after all. */
    refused: () => records.answer(name, hash, { kind: 'refused', status: 400, text: '{}' }),
    /** The payment itself is answered with a transaction that is not believed to be it. */
    doubted: (id: string) =>
      records.answer(name, hash, { kind: 'unknown', status: 200, text: JSON.stringify({ id }) }),
    /** How often the service was asked for a transaction. */
    reads: (id: string) => service.requests.filter((request) => request.endsWith(id)).length,
    log,
    /** As a process does that begins. */
    forget() {
      evidence = new Evidence(new Sightings(log, CLIENT_ID), '-06:00');
    },
    /**
     * @param onAsked is told each time that the record is asked for a transaction
     * @param beforeSearch happens before the record is searched
     * @param crowded of these payments the record holds more than are compared
     */
    async look(
      onAsked: () => void = () => {},
      which = name,
      beforeSearch: () => Promise<void> = async () => {},
      crowded?: 'open' | 'done',
    ): Promise<Found> {
      await records.hasten(which);
      const payment = await records.takeOpen(which, 'settler', 1);
      if (payment === undefined) throw new Error('it is due');
      now += MINUTE;
      const readByTransactions: typeof records.readByTransactions = (clientId, ids) => {
        for (const _id of ids) onAsked();
        return records.readByTransactions(clientId, ids);
      };
      const search: typeof records.search = async (...asked) => {
        await beforeSearch();
        const [sought] = asked;
        if (crowded === undefined || !sought.classes.includes(crowded)) return records.search(...asked);
        const [one] = (await records.search({ ...sought, classes: ['open'] })).records;
        if (one === undefined) throw new Error('the payment itself is open');
        return { records: Array.from({ length: 2_000 }, () => one), next: one };
      };
      const book = { search, readByTransactions };
      return evidence.look(payment, service.rest, book, now);
    },
  };
}

it('is none while a movement that is alike may still be unread', async () => {
  const ids = Array.from({ length: 55 }, () => randomUUID());
  for (const [index, id] of ids.entries()) await lost.named(id, 1_000 + index);
  shown = new Set([ids[0] ?? '', ids[54] ?? '']);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'unread' });
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'alike' });
});

it('is none until the log has been read to its end', async () => {
  const ids = [randomUUID(), randomUUID()];
  shown = new Set(ids);
  await lost.named(ids[0] ?? '', 1_000);
  await lost.unnamed(5_200, 2_000);
  await lost.named(ids[1] ?? '', 3_000);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'unread' });
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'alike' });
});

it('is not certain where the movement was named before the payment was sent, by the clocks that say so', async () => {
  const id = randomUUID();
  shown.add(id);
  await lost.named(id, -90_000);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'early' });
});

it('is no movement that was named before, where it is named again after the payment was sent', async () => {
  const id = randomUUID();
  shown.add(id);
  await lost.named(id, -10 * MINUTE);
  await lost.named(id, MINUTE);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'nothing' });
  lost.forget();
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'nothing' });
});

it('is found where the log has given up what came before the payment was sent', async () => {
  lost = await losePayment(2);
  const id = randomUUID();
  for (let minutes = 30; (await lost.log.givenUpTo(CLIENT_ID)) === null; minutes -= 1)
    await lost.named(randomUUID(), -minutes * MINUTE);
  await lost.named(id, 1_000);
  shown.add(id);
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is found behind many ids that lead to no transaction, however seldom it is looked for', async () => {
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  const id = randomUUID();
  for (let index = 0; index < 105; index += 1) await lost.named(randomUUID(), 1_000 + index);
  await lost.named(id, 5_000);
  shown.add(id);
  now += HOUR;
  const found: Found[] = [];
  for (let looks = 0; looks < 4; looks += 1) {
    found.push(await lost.look());
    leapMs += HOUR;
  }
  expect(found.filter(({ kind }) => kind === 'done')).not.toEqual([]);
});

it('is none while the service refuses to show one that may match, and the look does not fail', async () => {
  const [id, refused] = [randomUUID(), randomUUID()];
  shown.add(id);
  forbidden.add(refused);
  await lost.named(refused, 1_000);
  await lost.named(id, 2_000);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'unreadable' });
  forbidden.clear();
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is found where the gateway was away for most of a day since the event came', async () => {
  const id = randomUUID();
  await lost.named(id, 1_000);
  shown.add(id);
  now += 20 * HOUR;
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is found a minute later where an event has outrun what the service shows', async () => {
  const id = randomUUID();
  await lost.named(id, 1_000);
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'nothing' });
  shown.add(id);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'nothing' });
  leapMs = MINUTE + 1;
  // The cache takes a moment to ask for the time again.
  const found = await until(async () => {
    const look = await lost.look();
    return look.kind === 'done' && look;
  });
  expect(found).toMatchObject({ transactionId: id });
});

it('is none while the service fails at one that may match; the others are read, and that one ever more seldom', async () => {
  const [id, failed] = [randomUUID(), randomUUID()];
  shown.add(id);
  failing.add(failed);
  await lost.named(failed, 1_000);
  await lost.named(id, 2_000);
  for (let minutes = 0; minutes < 12; minutes += 1)
    expect(await lost.look()).toEqual({ kind: 'open', seen: 'unreadable' });
  expect(lost.reads(id)).toBe(1);
  expect(lost.reads(failed)).toBeLessThan(7);
  failing.clear();
  const found = await until(async () => {
    const look = await lost.look();
    return look.kind === 'done' && look;
  });
  expect(found).toMatchObject({ transactionId: id });
});

it('is not looked for where the service fails at whatever is read', async () => {
  failing = new Set([randomUUID(), randomUUID(), randomUUID(), randomUUID()]);
  for (const id of failing) await lost.named(id, 1_000);
  await expect(lost.look()).rejects.toThrow('fails at each transaction');
});

it('is none while the service fails at three that may match, and the look does not fail where it has shown another', async () => {
  const id = randomUUID();
  shown.add(id);
  failing = new Set([randomUUID(), randomUUID(), randomUUID()]);
  await lost.named(id, 1_000);
  for (const failed of failing) await lost.named(failed, 2_000);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'unreadable' });
});

it.each(['open', 'done'] as const)(
  'is none where the record holds more payments that are %s than are compared',
  async (crowded) => {
    const id = randomUUID();
    shown.add(id);
    await lost.named(id, 1_000);
    expect(await lost.look(undefined, undefined, undefined, crowded)).toEqual({
      kind: 'open',
      seen: 'too-many',
    });
    expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
  },
);

it('is none where another payment turns out to be done by the movement while open ones are compared', async () => {
  const id = randomUUID();
  shown.add(id);
  await lost.named(id, 1_000);
  let settled = false;
  const settleOnce = async () => {
    if (!settled) await lost.paid(id);
    settled = true;
  };
  expect(await lost.look(undefined, undefined, settleOnce)).toEqual({ kind: 'open', seen: 'nothing' });
  expect(settled).toBe(true);
});

it('is none where the log has given up events since the payment was sent', async () => {
  lost = await losePayment(2);
  const id = randomUUID();
  shown.add(id);
  await lost.named(randomUUID(), 1_000);
  await lost.named(id, 2_000);
  while ((await lost.log.givenUpTo(CLIENT_ID)) === null) await lost.named(id, 3_000);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'out-of-reach' });
});

it('is found in a log that has begun after the payment was sent', async () => {
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'nothing' });
  const id = randomUUID();
  shown.add(id);
  await lost.named(id, 0);
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is looked for over several looks where the record answers slowly: none outlasts its lease', async () => {
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  const id = randomUUID();
  for (let others = 0; others < 200; others += 1) {
    const other = randomUUID();
    await lost.paid(other);
    await lost.named(other, 1_000);
  }
  await lost.named(id, 2_000);
  shown.add(id);
  const began = leapMs;
  const found = await lost.look(() => {
    leapMs += 100;
  });
  expect(found).toEqual({ kind: 'open', seen: 'unread' });
  expect(leapMs - began).toBeLessThan(15_000);
  const next = await lost.look(() => {
    leapMs += 100;
  });
  expect(next).toMatchObject({ kind: 'done', transactionId: id });
});

it.each([
  ['whole client’s', null],
  ['customer’s', 'customer'],
])(
  'is none where another open payment is alike, of a %s caller, however late it is looked for',
  async (_whose, customerId) => {
    now += 5 * MINUTE;
    const second = await lost.another(customerId);
    const id = randomUUID();
    shown.add(id);
    made.set(id, now - 5 * MINUTE);
    await lost.named(id, 90_000);
    now += 4 * 24 * HOUR;
    expect(await lost.look(undefined, second)).toEqual({ kind: 'open', seen: 'alike' });
    expect(await lost.look()).toEqual({ kind: 'open', seen: 'alike' });
  },
);

it.each([
  ['ids in capitals', {}, { source: SOURCE.toUpperCase(), destination: DESTINATION.toUpperCase() }],
  ['a reference with zeros before it', { transaction_request: { external_reference: '0000123' } }, {}],
])(
  'is none where another open payment has %s, which the transaction does not show',
  async (_what, body, written) => {
    const id = randomUUID();
    const own = await lost.another(null, { transaction_request: { external_reference: '123' } });
    await lost.refused();
    await lost.another(null, body, written);
    shown.add(id);
    more.set(id, { externalReference: '123' });
    await lost.named(id, 1_000);
    expect(await lost.look(undefined, own)).toEqual({ kind: 'open', seen: 'alike' });
  },
);

it('is a transaction that shows the reference as a number', async () => {
  const id = randomUUID();
  await lost.refused();
  const own = await lost.another(null, { transaction_request: { external_reference: '0000123' } });
  shown.add(id);
  more.set(id, { externalReference: 123 });
  await lost.named(id, 1_000);
  expect(await lost.look(undefined, own)).toMatchObject({ kind: 'done', transactionId: id });
});

it('is none where the event came late, and by the service’s clock another open payment could be the one', async () => {
  now += 10 * MINUTE;
  await lost.another();
  const id = randomUUID();
  shown.add(id);
  made.set(id, now);
  await lost.named(id, 50 * MINUTE);
  now += HOUR;
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'alike' });
});

it('is none where an older payment could have moved it, and the service does not say when it was made', async () => {
  now += 3 * HOUR;
  const second = await lost.another();
  const id = randomUUID();
  shown.add(id);
  await lost.named(id, MINUTE);
  expect(await lost.look(undefined, second)).toEqual({ kind: 'open', seen: 'alike' });
  made.set(id, now);
  lost.forget();
  expect(await lost.look(undefined, second)).toMatchObject({ kind: 'done', transactionId: id });
});

it('is none where the event of a payment that was done hours before comes late, with its other leg', async () => {
  const [debit, credit] = [randomUUID(), randomUUID()];
  await lost.answered(debit);
  now += 3 * HOUR;
  const second = await lost.another();
  shown.add(credit);
  await lost.named(credit, MINUTE);
  expect(await lost.look(undefined, second)).toEqual({ kind: 'open', seen: 'nothing' });
});

it('is not certain where a movement that has come back shows no time: what names it hours later may tell of its return', async () => {
  for (const transactionStatus of ['REFUNDED', 'RETURNED', 'REVERSED', 'DEVUELTA']) {
    lost = await losePayment();
    const id = randomUUID();
    shown.add(id);
    more.set(id, { transactionStatus });
    // Made elsewhere, and named before the part of the log that is read.
    await lost.named(id, -5 * HOUR);
    await lost.named(id, MINUTE);
    expect(await lost.look()).toEqual({ kind: 'open', seen: 'undated' });
  }
});

it('is found in a movement that has come back, where the service dates it', async () => {
  const id = randomUUID();
  shown.add(id);
  more.set(id, { transactionStatus: 'REFUNDED' });
  made.set(id, now + 1_000);
  await lost.named(id, MINUTE);
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is not certain where one leg of the movement was named before the payment was sent', async () => {
  const [debit, credit] = [randomUUID(), randomUUID()];
  for (const id of [debit, credit]) {
    shown.add(id);
    more.set(id, { trackingId: 'one movement' });
  }
  await lost.named(debit, -10_000);
  await lost.named(credit, 1_000);
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'early' });
});

it('is found in an answer that was not believed, also where no event names it', async () => {
  const id = randomUUID();
  shown.add(id);
  await lost.doubted(id);
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is found beside an open payment that differs in its description alone', async () => {
  now += 2 * HOUR;
  const [one] = [
    await lost.another(null, { description: 'one' }),
    await lost.another(null, { description: 'two' }),
  ];
  const id = randomUUID();
  shown.add(id);
  more.set(id, { description: 'one' });
  made.set(id, now + 1_000);
  await lost.named(id, 1_000);
  expect(await lost.look(undefined, one)).toMatchObject({ kind: 'done', transactionId: id });
});

it('is none while a proxy has no route for one that may match, and is found once it has', async () => {
  const [id, hidden] = [randomUUID(), randomUUID()];
  shown.add(id);
  unrouted.add(hidden);
  await lost.named(id, 1_000);
  await lost.named(hidden, 2_000);
  now += HOUR;
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'unreadable' });
  unrouted.clear();
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is found where the route comes back after the proxy has refused it again and again', async () => {
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  const id = randomUUID();
  unrouted.add(id);
  await lost.named(id, 1_000);
  now += HOUR;
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'unreadable' });
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'nothing' });
  unrouted.clear();
  shown.add(id);
  leapMs = MINUTE + 1;
  // The cache takes a moment to ask for the time again.
  const found = await until(async () => {
    const look = await lost.look();
    return look.kind === 'done' && look;
  });
  expect(found).toMatchObject({ transactionId: id });
});

it('is found in an event that came hours after the payment, long before it is looked for', async () => {
  const id = randomUUID();
  shown.add(id);
  made.set(id, now);
  await lost.named(id, 8 * HOUR);
  now += 23 * HOUR;
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: id });
});

it('is not certain where the service dates the movement before the sending, by more than its clock may be wrong', async () => {
  const [made2h, madeNow] = [randomUUID(), randomUUID()];
  shown.add(made2h);
  // The same transfer was made by hand; its webhook comes after this payment, which never reached the service.
  made.set(made2h, now - 140 * MINUTE);
  await lost.named(made2h, 10 * MINUTE);
  now += 20 * MINUTE;
  expect(await lost.look()).toEqual({ kind: 'open', seen: 'early' });
  lost = await losePayment();
  shown.add(madeNow);
  made.set(madeNow, now - 110_000);
  await lost.named(madeNow, MINUTE);
  expect(await lost.look()).toMatchObject({ kind: 'done', transactionId: madeNow });
});

it('is looked for behind many that the service does not let be read, and those are left alone for a while', async () => {
  const id = randomUUID();
  forbidden = new Set(Array.from({ length: 120 }, () => randomUUID()));
  for (const [index, refused] of [...forbidden].entries()) await lost.named(refused, 1_000 + index);
  await lost.named(id, 2_000);
  shown.add(id);
  const found: Found[] = [];
  // Seldom, as for a payment that is a day old.
  for (let looks = 0; looks < 4; looks += 1) {
    found.push(await lost.look());
    now += HOUR;
  }
  expect(lost.reads(id)).toBe(1);
  expect(found.at(-1)).toEqual({ kind: 'open', seen: 'unreadable' });
  const countReads = () => [...forbidden].reduce((sum, refused) => sum + lost.reads(refused), 0);
  await lost.look();
  const before = countReads();
  now -= MINUTE;
  await lost.look();
  expect(countReads() - before).toBeLessThanOrEqual(50);
  forbidden.clear();
  for (let looks = 0; looks < 3; looks += 1) {
    now += HOUR;
    found.push(await lost.look());
  }
  expect(found.at(-1)).toMatchObject({ kind: 'done', transactionId: id });
});

it('is looked for to the end although new receipts lead to no transaction each minute', async () => {
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  const found: Found[] = [];
  for (let minutes = 0; minutes < 25; minutes += 1) {
    for (let receipts = 0; receipts < 7; receipts += 1) await lost.named(randomUUID(), 0);
    found.push(await lost.look());
    leapMs += MINUTE;
  }
  // At first each look has all; from then on, where each is read again each minute, none would.
  expect(found.slice(12)).toContainEqual({ kind: 'open', seen: 'nothing' });
});

it('tens of thousands of transactions that are known already are gone through in turns', async () => {
  const named = Array.from({ length: 5_000 }, () => ({ id: randomUUID(), at: now }));
  const sightings = { since: async () => named } as unknown as Sightings;
  const evidence = new Evidence(sightings, '-06:00');
  // The service shows each as something else than what was ordered, without a wait.
  const get = async (_: unknown, { params }: { params: { transactionId: string } }) => ({
    id: params.transactionId,
  });
  const rest = { get } as unknown as Rest;
  const book = { readByTransactions: async (_: string, ids: readonly string[]) => ids.map(() => undefined) };
  const payment = { name: { clientId: CLIENT_ID, hash: 'hash' }, asked: ASKED, body: '{}' };
  const times = { sentAt: now, ageMs: 0, closed: null };
  const look = () =>
    evidence.look({ ...payment, ...times } as OpenPayment, rest, book as unknown as PaymentBook, now);
  const untilAllAreKnown = async (): Promise<Found> => {
    const found = await look();
    return found.kind === 'open' && found.seen === 'unread' ? untilAllAreKnown() : found;
  };
  await untilAllAreKnown();
  let isOver = false;
  let turns = 0;
  const everyTurn = () => {
    turns += 1;
    if (!isOver) setImmediate(everyTurn);
  };
  setImmediate(everyTurn);
  expect(await look()).toEqual({ kind: 'open', seen: 'nothing' });
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(2);
});

it('the record is read in turns, page by page', async () => {
  const pages = 8;
  let read = 0;
  const search = async () => {
    read += 1;
    return { records: [], next: read < pages ? { createdAt: read, hash: 'hash' } : undefined };
  };
  let turns = 0;
  const everyTurn = () => {
    turns += 1;
    if (read < pages) setImmediate(everyTurn);
  };
  setImmediate(everyTurn);
  const book = { search } as unknown as PaymentBook;
  const payment = { name: { clientId: CLIENT_ID, hash: 'hash' }, asked: ASKED } as OpenPayment;
  expect(await recordsOf(book, payment, 'open', 0, undefined)).toEqual([]);
  expect(turns).toBeGreaterThanOrEqual(pages - 1);
});
