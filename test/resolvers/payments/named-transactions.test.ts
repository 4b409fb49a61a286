import { randomUUID } from 'node:crypto';
import { afterEach, expect, it, vi } from 'vitest';
import { NamedTransactions } from '../../../src/resolvers/payments/named-transactions.ts';
import { MOST_IDS } from '../../../src/resolvers/payments/sightings.ts';
import { errorOfAnswer, UpstreamError } from '../../../src/upstream/call/errors.ts';
import type { Rest } from '../../../src/upstream/call/rest.ts';
import { until } from '../../helpers/until.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = 100 * HOUR;

afterEach(() => {
  vi.restoreAllMocks();
});

/** A service of which each read ends so. Nothing but reads is asked of it. */
const failing = (error: UpstreamError) => ({ get: () => Promise.reject(error) }) as unknown as Rest;
const showing = (body: object) => ({ get: async () => body }) as unknown as Rest;

it('an id at which the service has failed rests for its time, and no longer where the clock was set back', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const rest = failing(new UpstreamError('UPSTREAM_UNAVAILABLE', 'It failed.', { status: 500 }));
  expect(await named.read(id, 0, rest, NOW)).toBe('failed');
  expect([named.isResting(id, NOW), named.isResting(id, NOW + 29_999)]).toEqual([true, true]);
  expect([named.isResting(id, NOW + 30_000), named.isResting(id, NOW - 2 * HOUR)]).toEqual([false, false]);
});

it('an id at which the service has failed rests twice as long each time, until it could be read', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const failed = failing(new UpstreamError('UPSTREAM_UNAVAILABLE', 'It failed.', { status: 500 }));
  const restsFor = async (ms: number) => {
    expect(await named.read(id, 0, failed, NOW)).toBe('failed');
    expect([named.isResting(id, NOW + ms - 1), named.isResting(id, NOW + ms)]).toEqual([true, false]);
  };
  await restsFor(30_000);
  await restsFor(60_000);
  expect(named.hasFailed(id)).toBe(true);
  expect(await named.read(id, 0, showing({ id }), NOW)).toEqual({ transaction: null });
  expect(named.hasFailed(id)).toBe(false);
  await restsFor(30_000);
});

it('an id at which the service has failed has failed no longer once it has been refused again', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const failed = failing(new UpstreamError('UPSTREAM_UNAVAILABLE', 'It failed.', { status: 500 }));
  const refused = failing(new UpstreamError('REFUSED', 'A page.'));
  for (const times of [1, 2])
    expect([times, await named.read(id, 0, failed, NOW)]).toEqual([times, 'failed']);
  expect(await named.read(id, 0, refused, NOW)).toBe('untold');
  expect(named.hasFailed(id)).toBe(true);
  expect(await named.read(id, 0, refused, NOW + 5_000)).toEqual({ transaction: null });
  expect(named.hasFailed(id)).toBe(false);
  expect(await named.read(id, 0, failed, NOW + 5_000)).toBe('failed');
  expect(named.isResting(id, NOW + 5_000 + 30_000)).toBe(false);
});

it('a refusal in another form than the documented one counts once it has come again, also where the clock was set back', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const rest = failing(new UpstreamError('REFUSED', 'A page.'));
  expect(await named.read(id, 0, rest, NOW)).toBe('untold');
  expect(await named.read(id, 0, rest, NOW + 4_999)).toBe('untold');
  expect(await named.read(id, 0, rest, NOW - 2 * HOUR)).toBe('untold');
  expect(await named.read(id, 0, rest, NOW - 2 * HOUR + 4_999)).toBe('untold');
  expect(await named.read(id, 0, rest, NOW - 2 * HOUR + 5_000)).toEqual({ transaction: null });
});

it('an id whose reading was given up on the way again and again is never taken for no transaction', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const error = errorOfAnswer({ kind: 'answered', status: 408, body: '', text: '', retryAfterMs: undefined });
  for (const at of [NOW, NOW + 5_000, NOW + HOUR])
    expect(await named.read(id, 0, failing(error), at)).toBe('failed');
  expect(named.known(id)).toBeUndefined();
});

it('a refusal in another form than the documented one is the first again once the id could be read', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const refused = failing(new UpstreamError('REFUSED', 'A page.'));
  for (const at of [NOW, NOW + HOUR]) {
    expect(await named.read(id, 0, refused, at)).toBe('untold');
    expect(await named.read(id, 0, showing({ id }), at + 5_000)).toEqual({ transaction: null });
  }
});

it('what was read of each id that a look may name is kept, so that the looks come to an end', async () => {
  const named = new NamedTransactions();
  const ids = Array.from({ length: MOST_IDS }, (_, at) => `id-${at}`);
  for (const id of ids) await named.read(id, HOUR, showing({ id }), NOW);
  expect(ids.filter((id) => named.known(id) === undefined)).toEqual([]);
});

it('of a movement what payments are compared with is remembered, and of a credit from outside nothing', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const shown = { id, amount: '10.00', currency: 'MXN', trackingId: 'T1', transactionStatus: 'LIQUIDATED' };
  const person = { instrumentAlias: 'Rent', instrumentDetail: { clabeNumber: '646180123456789012' } };
  const instruments = {
    sourceInstrument: { id: 'source', ...person },
    destinationInstrument: { id: 'destination', ...person },
  };
  const debit = { ...shown, category: 'DEBIT_TRANS', subCategory: 'SPEI_DEBIT' };
  const known = {
    transaction: {
      ...debit,
      sourceInstrument: { id: 'source' },
      destinationInstrument: { id: 'destination' },
    },
  };
  const rest = showing({ ...debit, ...instruments, metadata: { dataCep: null } });
  expect(await named.read(id, HOUR, rest, NOW)).toEqual(known);
  expect(named.known(id)).toEqual(known);
  const credit = { ...shown, category: 'CREDIT_TRANS', subCategory: 'SPEI_CREDIT', ...instruments };
  const other = randomUUID();
  expect(await named.read(other, HOUR, showing({ ...credit, id: other }), NOW)).toEqual({
    transaction: null,
  });
  expect(named.known(other)).toEqual({ transaction: null });
});

it('of a penny validation what its answer would show of the CEP is remembered, and no name or account', async () => {
  const named = new NamedTransactions();
  const id = randomUUID();
  const cep = { cepUrl: 'https://cep', validationId: 'V1', status: 'COMPLETED', createdAt: '2026-11-26' };
  const person = { beneficiaryName: 'Ana', beneficiaryAccount: '646180123456789012' };
  const kind = { category: 'DEBIT_TRANS', subCategory: 'SPEI_DEBIT', transactionStatus: 'LIQUIDATED' };
  const debit = { id, amount: '0.01', currency: 'MXN', ...kind };
  const rest = showing({ ...debit, metadata: { dataCep: { ...cep, ...person } } });
  expect(await named.read(id, HOUR, rest, NOW)).toEqual({
    transaction: { ...debit, metadata: { dataCep: cep } },
  });
});

it('a penny validation whose receipt the service does not show yet is read again after a minute, other money out is not', async () => {
  const named = new NamedTransactions();
  let leapMs = 0;
  const measured = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => measured() + leapMs);
  const kind = { category: 'DEBIT_TRANS', subCategory: 'SPEI_DEBIT', transactionStatus: 'INITIALIZED' };
  const [validation, other] = [randomUUID(), randomUUID()];
  for (const [id, amount] of [
    [validation, '0.01'],
    [other, '10.00'],
  ] as const) {
    await named.read(id, 1_000, showing({ id, amount, currency: 'MXN', ...kind }), NOW);
    expect(named.known(id)).toBeDefined();
  }
  leapMs = MINUTE + 1;
  // The cache takes a moment to ask for the time again.
  await until(async () => named.known(validation) === undefined);
  expect(named.known(other)).toBeDefined();
});

it('an id whose read no answer ends says that the service is away: only one that has left may be at fault', async () => {
  const [unsent, silent] = [randomUUID(), randomUUID()];
  const named = new NamedTransactions();
  for (const [id, code, dispatched] of [
    [unsent, 'UPSTREAM_UNAVAILABLE', false],
    [unsent, 'UPSTREAM_TIMEOUT', false],
    [silent, 'UPSTREAM_TIMEOUT', true],
  ] as const) {
    const error = new UpstreamError(code, 'No answer came.', { dispatched });
    await expect(named.read(id, 0, failing(error), NOW)).rejects.toBe(error);
  }
  expect([named.isResting(unsent, NOW), named.isResting(silent, NOW)]).toEqual([false, true]);
});
