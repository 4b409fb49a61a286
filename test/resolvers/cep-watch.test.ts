import { describe, expect, it } from 'vitest';
import type { StoredEvent } from '../../src/events/log.ts';
import { type CepWatch, watchCep } from '../../src/resolvers/cep-watch.ts';
import { BadInputError } from '../../src/resolvers/errors.ts';
import { UpstreamError } from '../../src/upstream/errors.ts';
import type { Transaction } from '../../src/upstream/transactions.ts';

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

/** Readings answered one by one; the last one is repeated. */
type Reading = Transaction | null | Error;

/** A watch whose events, readings and clock the test moves by hand. */
function start(...readings: [Reading, ...Reading[]]) {
  const queue: StoredEvent[] = [];
  let wake: (() => void) | undefined;
  let ended = false;
  const slept: number[] = [];
  let ring: (() => void) | undefined;
  let asleep: (() => void) | undefined;
  const failures: UpstreamError[] = [];
  const leave = new AbortController();
  const watch: CepWatch = {
    transactionId: ID,
    events: {
      async next() {
        while (queue.length === 0 && !ended) await new Promise<void>((resolve) => (wake = resolve));
        const value = queue.shift();
        return value === undefined ? { done: true, value: undefined } : { done: false, value };
      },
      async return() {
        ended = true;
        wake?.();
        return { done: true, value: undefined };
      },
    },
    read: async () => {
      const [reading] = readings;
      if (readings.length > 1) readings.shift();
      if (reading instanceof Error) throw reading;
      return reading ?? null;
    },
    renew: () => undefined,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        slept.push(ms);
        ring = resolve;
        asleep?.();
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    onFailedRead: (error) => failures.push(error),
    signal: leave.signal,
  };
  const updates = watchCep(watch);
  return {
    updates,
    slept,
    failures,
    leave: () => leave.abort(),
    get ended() {
      return ended;
    },
    send(...events: StoredEvent[]) {
      queue.push(...events);
      wake?.();
    },
    /** Lets the time pass that is being waited for, once something waits. */
    async ring() {
      if (ring === undefined) await new Promise<void>((resolve) => (asleep = resolve));
      const current = ring;
      ring = undefined;
      current?.();
    },
    async next() {
      const step = await updates.next();
      return step.done ? 'completed' : `${step.value.kind} ${step.value.cep.status}`;
    },
  };
}

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
  ])('knows a message whose id is that of %s', async (_what, body) => {
    const watch = start(transaction('PENDING'));
    await watch.next();
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
    watch.send(message('DELAYED'));
    const first = watch.next();
    await watch.ring();
    await watch.ring();
    expect(await first).toBe('SNAPSHOT PENDING');
    expect(await watch.next()).toBe('CHANGE DELAYED');
    expect(watch.slept.slice(0, 2)).toEqual([250, 500]);
  });

  it('shows what messages say where the transaction stays unreadable', async () => {
    const watch = start(null);
    watch.send(message('DELAYED'));
    const first = watch.next();
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    expect(await first).toBe('SNAPSHOT DELAYED');
  });

  it('is refused for a transaction that stays unknown', async () => {
    const watch = start(null);
    const first = watch.next();
    for (let lag = 0; lag < 5; lag += 1) await watch.ring();
    await expect(first).rejects.toThrow(BadInputError);
    expect(watch.ended).toBe(true);
  });

  it('is refused at once for a transaction without a receipt', async () => {
    await expect(start(transaction(null)).next()).rejects.toThrow(/only penny validations/);
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
    const next = watch.next();
    await watch.ring();
    await expect(next).rejects.toThrow('Expired.');
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
});
