import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../../../src/events/log.ts';
import { BadInputError } from '../../../src/resolvers/errors.ts';
import { type CepUpdate, Receipt } from '../../../src/resolvers/events/receipt.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import type { Transaction } from '../../../src/upstream/transactions.ts';
import { type Reading, type Shared, settled, share, startWatch, type WatchOptions } from './watching.ts';

const ID = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
const VALIDATION = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
const OTHER = 'f47ac10b-58cc-4372-a567-0e02b2c3d479';
const MINUTE = 60_000;

const transaction = (status: string | null): Transaction => ({
  id: ID,
  amount: '0.01',
  currency: 'MXN',
  category: 'DEBIT_TRANS',
  subCategory: 'SPEI_DEBIT',
  transactionStatus: 'INITIALIZED',
  trackingId: 'TRACK1',
  ...(status === null
    ? {}
    : { metadata: { dataCep: { status, validationId: VALIDATION, cepUrl: 'https://cep.example/1' } } }),
});

let sequence = 0;
/** A CEP message, wrapped as the spec shows it. */
function message(status: string, body: Record<string, unknown> = { id: ID }): StoredEvent {
  sequence += 1;
  return {
    cursor: `c${sequence}`,
    id: `m${sequence}`,
    type: 'CEP',
    receivedAt: '2026-11-20T15:30:00Z',
    payload: { webhook_type: 'CEP', payload: { msg_name: 'CEP', body: { ...body, status } } },
  };
}

const name = ({ kind, cep }: CepUpdate): string => `${kind} ${cep.status}`;

/** A watch whose events, readings and clock the test moves by hand. */
const start = (...readings: [Reading, ...Reading[]]) => startOn(share(), {}, ...readings);

const startOn = (shared: Shared, options: WatchOptions, ...readings: [Reading, ...Reading[]]) =>
  startWatch(shared, { name, states: new Receipt(options.transactionId ?? ID), ...options }, ...readings);

describe('cepStatus', () => {
  it('shows the state now, then each change, and completes on a final state', async () => {
    const watch = start(transaction('INITIALIZED'));
    expect(await watch.next()).toBe('SNAPSHOT INITIALIZED');
    watch.send(message('DELAYED'), message('COMPLETED'));
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(await watch.next()).toBe('CHANGE COMPLETED');
    expect(await watch.next()).toBe('completed');
    expect(watch.ended).toBe(true);
  });

  it.each(['COMPLETED', 'FAILED'])('completes at once where the state now is %s', async (status) => {
    const watch = start(transaction(status));
    expect(await watch.next()).toBe(`SNAPSHOT ${status}`);
    expect(await watch.next()).toBe('completed');
  });

  it('never goes backwards and never repeats a state, in whatever order messages arrive', async () => {
    const watch = start(transaction('PENDING'));
    expect(await watch.next()).toBe('SNAPSHOT PENDING');
    watch.send(
      message('PENDING'),
      message('DELAYED'),
      message('PENDING'),
      message('DELAYED'),
      message('COMPLETED'),
      message('DELAYED'),
      message('FAILED'),
    );
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(await watch.next()).toBe('CHANGE COMPLETED');
    expect(await watch.next()).toBe('completed');
  });

  it('shows a state that is not documented once, and goes on from it', async () => {
    const watch = start(transaction('PENDING'));
    await watch.next();
    watch.send(message('REVIEWING'), message('REVIEWING'), message('PENDING'), message('COMPLETED'));
    expect(await watch.next()).toBe('CHANGE REVIEWING');
    expect(await watch.next()).toBe('CHANGE COMPLETED');
  });

  it.each([
    ['the transaction', { id: ID }],
    ['the transaction in capitals', { id: ID.toUpperCase() }],
    ['the validation', { id: VALIDATION }],
    ['something else, with the tracking key', { id: OTHER, tracking_key: 'TRACK1' }],
  ])('knows a message whose id is that of %s, also once a reading has not said it', async (_what, body) => {
    const watch = start(transaction('PENDING'), { ...transaction(null), trackingId: '' });
    await watch.next();
    await watch.ring();
    expect(watch.reads).toBe(2);
    watch.send(message('FAILED', { id: OTHER, tracking_key: 'TRACK2' }), message('COMPLETED', body));
    expect(await watch.next()).toBe('CHANGE COMPLETED');
  });

  it('keeps what the message does not say from the reading, and takes the rest from the message', async () => {
    const watch = start(transaction('PENDING'));
    await watch.next();
    watch.send(
      message('COMPLETED', {
        id: ID,
        beneficiary_name: 'ANA RUIZ',
        processed_at: '2026-11-20 09:31:30-06:00',
      }),
    );
    const { value } = await watch.updates.next();
    expect(value).toMatchObject({
      transactionId: ID,
      cep: {
        status: 'COMPLETED',
        validationId: VALIDATION,
        cepUrl: 'https://cep.example/1',
        beneficiaryName: 'ANA RUIZ',
        processedAt: '2026-11-20 09:31:30-06:00',
      },
    });
  });

  it('hides no message behind a reading that lags: not known yet, then older than the message', async () => {
    const watch = start(null, transaction(null), transaction('PENDING'));
    const first = watch.next();
    await settled();
    watch.send(message('DELAYED'));
    await watch.ring();
    await watch.ring();
    expect(await first).toBe('SNAPSHOT PENDING');
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(watch.slept.slice(0, 2)).toEqual([250, 500]);
  });

  it('keeps the newest of many messages that come before it has been read', async () => {
    const unnamed = { metadata: { dataCep: { status: 'PENDING' } }, trackingId: '' };
    const watch = start(null, { ...transaction(null), ...unnamed });
    const first = watch.next();
    await settled();
    watch.send(...Array.from({ length: 64 }, () => message('PENDING')), message('COMPLETED'));
    await watch.ring();
    expect(await first).toBe('SNAPSHOT PENDING');
    expect(await Promise.race([watch.next(), settled()])).toBe('CHANGE COMPLETED');
  });

  it('shows what messages say where the transaction stays unreadable', async () => {
    const watch = start(null);
    const first = watch.next();
    await settled();
    watch.send(message('DELAYED'));
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    expect(await first).toBe('SNAPSHOT DELAYED');
  });

  it('is refused for a transaction that stays unknown', async () => {
    const watch = start(null);
    const refused = expect(watch.next()).rejects.toThrow(
      new BadInputError(
        `There is no transaction ${ID} whose receipt you may follow. A caller narrowed to a customer follows receipts of what it has paid.`,
      ),
    );
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    await refused;
    expect(watch.ended).toBe(true);
  });

  it.each([
    ['another amount', { amount: '0.02' }],
    ['an internal transaction of 0.01', { category: 'INTER_TRANS', subCategory: 'INT_DEBIT' }],
    ['a credit of 0.01', { subCategory: 'SPEI_CREDIT' }],
  ])('is refused at once for a transaction that is no penny validation: %s', async (_, fields) => {
    const watch = start({ ...transaction(null), ...fields });
    await expect(watch.next()).rejects.toThrow(/ has no receipt: only penny validations/);
    expect(watch.reads).toBe(1);
  });

  it('waits for the receipt of a penny validation that the service shows without it at first', async () => {
    const watch = start(transaction(null), transaction(null), transaction('PENDING'));
    const first = watch.next();
    await watch.ring();
    await watch.ring();
    expect(await first).toBe('SNAPSHOT PENDING');
    expect(watch.slept.slice(0, 2)).toEqual([250, 500]);
  });

  it('then hears messages that name it in a way which only the receipt tells', async () => {
    const watch = start(transaction(null), transaction('PENDING'));
    const first = watch.next();
    await settled();
    watch.send(message('DELAYED', { id: VALIDATION }));
    await watch.ring();
    expect(await first).toBe('SNAPSHOT PENDING');
    expect(await watch.next()).toBe('CHANGE DELAYED');
    watch.send(message('COMPLETED', { id: VALIDATION }));
    expect(await watch.next()).toBe('CHANGE COMPLETED');
  });

  it('is refused for a penny validation whose receipt is still not shown after five readings more', async () => {
    const watch = start(transaction(null));
    const refused = expect(watch.next()).rejects.toThrow(/shows no receipt .*, or not yet/);
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    await refused;
    expect(watch.reads).toBe(6);
  });

  it('reads again on the documented schedule where no webhook comes', async () => {
    const watch = start(
      transaction('PENDING'),
      transaction('PENDING'),
      transaction('PENDING'),
      transaction('PENDING'),
      transaction('DELAYED'),
      transaction('DELAYED'),
      transaction('DELAYED'),
      transaction('DELAYED'),
      transaction('COMPLETED'),
    );
    await watch.next();
    const delayed = watch.next();
    for (let poll = 0; poll < 4; poll += 1) await watch.ring();
    expect(await delayed).toBe('CHANGE DELAYED');
    const completed = watch.next();
    for (let poll = 0; poll < 4; poll += 1) await watch.ring();
    expect(await completed).toBe('CHANGE COMPLETED');
    expect(watch.slept).toEqual([1.5, 1.5, 1.5, 5, 5, 5, 15, 15].map((minutes) => minutes * MINUTE));
  });

  it('outlives a reading that fails once something has been shown', async () => {
    const failure = new UpstreamError('UPSTREAM_UNAVAILABLE', 'It is away.');
    const watch = start(transaction('PENDING'), failure, transaction('COMPLETED'));
    await watch.next();
    const next = watch.next();
    await watch.ring();
    await watch.ring();
    expect(await next).toBe('CHANGE COMPLETED');
    expect(watch.failures).toEqual([failure]);
  });

  it('ends with the error when the caller may no longer read', async () => {
    const watch = start(transaction('PENDING'), new UpstreamError('UNAUTHENTICATED', 'Expired.'));
    await watch.next();
    const refused = expect(watch.next()).rejects.toThrow('Expired.');
    await watch.ring();
    await refused;
  });

  it('ends with the error when the first reading fails', async () => {
    await expect(start(new UpstreamError('UPSTREAM_TIMEOUT', 'Late.')).next()).rejects.toThrow('Late.');
  });

  it('stops waiting when its reader leaves', async () => {
    const watch = start(transaction('PENDING'));
    await watch.next();
    const next = watch.next();
    watch.leave();
    expect(await next).toBe('completed');
    expect(watch.ended).toBe(true);
  });

  it('hears what came while it was being read, by a name that only the reading tells', async () => {
    const watch = start(transaction('PENDING'));
    const first = watch.next();
    watch.send(
      message('FAILED', { id: OTHER, tracking_key: 'TRACK2' }),
      message('DELAYED', { id: OTHER, tracking_key: 'TRACK1' }),
    );
    expect(await first).toBe('SNAPSHOT PENDING');
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(watch.reads).toBe(1);
  });

  it('is read again where the feed no longer remembers what came meanwhile', async () => {
    const watch = startOn(share(), { remembers: false }, transaction('PENDING'), transaction('DELAYED'));
    expect(await watch.next()).toBe('SNAPSHOT PENDING');
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(watch.reads).toBe(2);
  });

  it('shows a narrowed caller no message about a transaction that it has not read as its own', async () => {
    const watch = startOn(share(), { seesMessages: false }, null);
    const refused = expect(watch.next()).rejects.toThrow(BadInputError);
    await settled();
    watch.send(message('COMPLETED'));
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    await refused;
  });
});

describe('receipts that are waited for together', () => {
  const UUIDS = Array.from(
    { length: 100 },
    (_, index) => `3f2b1c9e-8d4a-4f6b-9a57-${String(index).padStart(12, '0')}`,
  );
  const [NINETY_SECONDS, TICK] = [90_000, 10];

  it('share one reading where they are of one transaction, by each caller in turn', async () => {
    const shared = share();
    const watches = UUIDS.map(() => startOn(shared, {}, transaction('PENDING')));
    for (const watch of watches) expect(await watch.next()).toBe('SNAPSHOT PENDING');
    for (let poll = 1; poll <= 3; poll += 1) {
      await shared.time.ring();
      expect(watches.map(({ reads }) => reads)).toEqual(watches.map((_, index) => (index < poll ? 2 : 1)));
    }
  });

  it('are all shown what one reading tells', async () => {
    const shared = share();
    const watches = UUIDS.map(() => startOn(shared, {}, transaction('PENDING'), transaction('COMPLETED')));
    for (const watch of watches) await watch.next();
    await shared.time.ring();
    for (const watch of watches) expect(await watch.next()).toBe('CHANGE COMPLETED');
    expect(watches.reduce((sum, { reads }) => sum + reads, 0)).toBe(watches.length + 1);
    for (const watch of watches) expect(await watch.next()).toBe('completed');
  });

  it('are read by the next caller where one is refused, which alone ends', async () => {
    const shared = share();
    const refused = startOn(shared, {}, transaction('PENDING'), new UpstreamError('FORBIDDEN', 'No more.'));
    const other = startOn(shared, {}, transaction('PENDING'), transaction('DELAYED'));
    for (const watch of [refused, other]) await watch.next();
    const ends = expect(refused.next()).rejects.toThrow('No more.');
    await shared.time.ring();
    await ends;
    expect(await other.next()).toBe('CHANGE DELAYED');
    expect(other.ended).toBe(false);
  });

  it('keep to the rate, the one that has waited longest first, and none is forgotten', async () => {
    const perSecond = 5;
    const shared = share(perSecond);
    const order: string[] = [];
    const watches = [];
    for (const transactionId of UUIDS) {
      const watch = startOn(shared, { transactionId }, transaction('PENDING'));
      await watch.next();
      watches.push({ transactionId, watch });
      shared.time.pass(TICK);
    }
    const begun = shared.time.clock.now();
    while (order.length < UUIDS.length) {
      await shared.time.ring();
      for (const { transactionId, watch } of watches) {
        if (watch.reads > 1 && !order.includes(transactionId)) order.push(transactionId);
      }
      const seconds = Math.max(0, shared.time.clock.now() - begun - NINETY_SECONDS) / 1_000;
      expect(order.length).toBeLessThanOrEqual(perSecond + Math.ceil((seconds + 1) * perSecond));
    }
    expect(order).toEqual(UUIDS);
  });

  it('are put off by a message that tells of them', async () => {
    const shared = share();
    const [told, other] = [
      startOn(shared, {}, transaction('PENDING')),
      startOn(shared, { transactionId: OTHER }, transaction('PENDING')),
    ];
    for (const watch of [told, other]) await watch.next();
    shared.time.pass(NINETY_SECONDS / 2);
    told.send(message('DELAYED'));
    expect(await told.next()).toBe('CHANGE DELAYED');
    await shared.time.ring();
    expect([told.reads, other.reads]).toEqual([1, 2]);
  });

  it('hold no alarm once they are over', async () => {
    const shared = share();
    const watch = startOn(shared, {}, transaction('PENDING'));
    await watch.next();
    watch.send(message('COMPLETED'));
    expect(await watch.next()).toBe('CHANGE COMPLETED');
    expect(await watch.next()).toBe('completed');
    expect(shared.time.isAsleep).toBe(false);
  });
});
