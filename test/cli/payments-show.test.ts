import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { named } from '../../src/cli/payments/show.ts';
import { recordName } from '../../src/money/intent.ts';
import { JOURNAL_PAGE } from '../../src/money/journal/verify.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
import { type MoneyRecords, PaymentsHeldError, type StoredAnswer } from '../../src/money/record.ts';
import { LOOKED_FOR_MS } from '../../src/money/settling/open-records.ts';
import { openSqliteRecords } from '../../src/money/sqlite/sqlite-record.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS, SHOWN } from '../money/orders.ts';
import { pasarela } from './run.ts';

/** The same records, of which one says that it was put back. */
const putBack = (records: MoneyRecords): MoneyRecords =>
  new Proxy(records, {
    get(target, name) {
      if (name === 'isPutBack') return async () => true;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

it('a payment of one client is found though the record may have forgotten some of another', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-show-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  cleanup.defer(() => records.stop());
  const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
  const ids: string[] = [];
  for (const clientId of [randomUUID(), randomUUID()]) {
    const name = recordName({ clientId, customerId: undefined, key: randomUUID() });
    await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: 'input', leaseMs: 0 });
    await records.markSent(name, 'call', '{}');
    ids.push(await createPayments(records).idOf(name));
  }
  const uncertain = putBack(records);
  for (const id of ids) expect((await named(uncertain, id, undefined)).record.id).toBe(id);
  const none = 'A'.repeat(43);
  const transaction = randomUUID();
  for (const id of [none, transaction])
    await expect(named(uncertain, id, undefined), id).rejects.toThrow(PaymentsHeldError);
  await expect(named(records, none, undefined)).rejects.toThrow(`no payment "${none}"`);
  await expect(named(records, transaction, undefined)).rejects.toThrow(`the transaction "${transaction}"`);
});

it('the steps of a payment are shown that was made after the clock was put back, with thousands of lines before', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-show-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  let now = Date.now();
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'), () => now);
  const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
  const clientId = randomUUID();
  const pay = async () => {
    const name = recordName({ clientId, customerId: undefined, key: randomUUID() });
    await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: 'input', leaseMs: 0 });
    await records.markSent(name, 'call', '{}');
    return name;
  };
  const before = await pay();
  now -= 2 * 60 * 60 * 1_000;
  for (let line = 0; line < JOURNAL_PAGE; line += 1) await records.sentAgain(before);
  const name = await pay();
  await records.answer(name, 'input', { kind: 'done', status: 201, text: '{}' });
  const id = await createPayments(records).idOf(name);
  await records.stop();
  const { stdout } = await pasarela(['payments', 'show', id, '--json'], { DATA_DIR: dataDir });
  const { journal }: { journal: { step: string }[] } = JSON.parse(stdout);
  expect(journal.map(({ step }) => step)).toEqual(['asked', 'sent', 'done']);
});

it('the payments of several clients are listed together, the newest of all first', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-show-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
  const ids: string[] = [];
  const clients = ['1', '2'].map((digit) => `${digit}1111111-2222-4333-8444-555555555555`);
  for (const clientId of [...clients, ...clients]) {
    const before = Date.now();
    await until(() => Date.now() > before);
    const name = recordName({ clientId, customerId: undefined, key: randomUUID() });
    await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: 'input', leaseMs: 0 });
    await records.markSent(name, 'call', '{}');
    ids.unshift(await createPayments(records).idOf(name));
  }
  await records.stop();
  const list = async (...limit: readonly string[]) => {
    const { stdout } = await pasarela(['payments', 'list', '--json', ...limit], { DATA_DIR: dataDir });
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).id);
  };
  expect(await list()).toEqual(ids);
  expect(await list('--limit', '3')).toEqual(ids.slice(0, 3));
});

it('the payments of a customer are listed by its id in any case', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-show-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  const customerId = randomUUID();
  const name = recordName({ clientId: randomUUID(), customerId, key: randomUUID() });
  const asked = { operation: 'createMoneyOut', customerId, ...SHOWN } as const;
  await records.claim(name, {
    ...NOBODYS,
    asked,
    isCustomers: true,
    owner: 'call',
    inputHash: 'input',
    leaseMs: 0,
  });
  await records.markSent(name, 'call', '{}');
  const id = await createPayments(records).idOf(name);
  await records.stop();
  const list = (customer: string) =>
    pasarela(['payments', 'list', '--customer', customer], { DATA_DIR: dataDir });
  for (const customer of [customerId, customerId.toUpperCase()])
    expect(await list(customer)).toMatchObject({ code: 0, stdout: expect.stringContaining(id) });
  expect(await list(randomUUID())).toMatchObject({ code: 0, stdout: '' });
  const { stdout } = await pasarela(['payments', 'show', id], { DATA_DIR: dataDir });
  expect(stdout).toMatch(new RegExp(`^customerId: +${customerId}$`, 'm'));
});

it('the credit that a refund returns is shown while it is open and once an answer names it, and of no other payment', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-show-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  const clientId = randomUUID();
  const make = async (
    operation: 'refundTransaction' | 'createMoneyOut',
    answer?: Pick<StoredAnswer, 'kind' | 'text'>,
  ) => {
    const name = recordName({ clientId, customerId: undefined, key: randomUUID() });
    const original = operation === 'refundTransaction' ? randomUUID() : null;
    const asked = { operation, customerId: null, ...SHOWN };
    await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: 'input', leaseMs: 0 });
    await records.markSent(name, 'call', '{}', { upstreamKey: null, original });
    const text = answer?.text.replace('CREDIT', String(original)) ?? '';
    if (answer !== undefined) await records.answer(name, 'input', { kind: answer.kind, status: 201, text });
    return { id: await createPayments(records).idOf(name), original };
  };
  const open = await make('refundTransaction');
  const done = await make('refundTransaction', {
    kind: 'done',
    text: '{"originalTransactionId":"CREDIT"}',
  });
  const silent = await make('refundTransaction', { kind: 'done', text: '{}' });
  const other = await make('createMoneyOut');
  await records.stop();
  const show = async (id: string, ...more: readonly string[]) => {
    const { code, stdout } = await pasarela(['payments', 'show', id, ...more], { DATA_DIR: dataDir });
    expect(code).toBe(0);
    return stdout;
  };
  for (const { id, original } of [open, done]) {
    expect(await show(id)).toMatch(new RegExp(`^originalTransactionId: +${original}$`, 'm'));
    expect(JSON.parse(await show(id, '--json'))).toMatchObject({ id, originalTransactionId: original });
  }
  for (const { id } of [silent, other]) {
    expect(await show(id)).not.toContain('originalTransactionId');
    expect(JSON.parse(await show(id, '--json'))).toMatchObject({ id, originalTransactionId: null });
  }
  const { sentAt, lookedForUntil } = JSON.parse(await show(other.id, '--json'));
  // By the earlier of two clocks, which differ by milliseconds.
  expect(Math.abs(Date.parse(lookedForUntil) - Date.parse(sentAt) - LOOKED_FOR_MS)).toBeLessThan(60_000);
  expect(await show(other.id)).toMatch(
    / send it again until \S+Z, unless payments are held or its record was put back since, and look for it until \S+Z, /,
  );
  expect(await show(open.id)).toContain(' look for it until ');
  expect(await show(open.id)).not.toContain('send it again');
  expect(await show(done.id)).not.toContain('look');
});

it('no gateway is said to look for a payment with a stored refusal that is not recognised, and one is with an unknown answer', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-show-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = openSqliteRecords(join(dataDir, 'money.sqlite'));
  const asked = { operation: 'createMoneyOut', customerId: null, ...SHOWN } as const;
  const ids: string[] = [];
  for (const kind of ['refused', 'unknown'] as const) {
    const name = recordName({ clientId: randomUUID(), customerId: undefined, key: randomUUID() });
    await records.claim(name, { ...NOBODYS, asked, owner: 'call', inputHash: 'input', leaseMs: 0 });
    await records.markSent(name, 'call', '{}');
    await records.answer(name, 'input', { kind, status: 403, text: '<html>Forbidden</html>' });
    ids.push(await createPayments(records).idOf(name));
  }
  await records.stop();
  const shown = await Promise.all(
    ids.map(async (id) => {
      const text = await pasarela(['payments', 'show', id], { DATA_DIR: dataDir });
      const json = await pasarela(['payments', 'show', id, '--json'], { DATA_DIR: dataDir });
      return { text: text.stdout, json: JSON.parse(json.stdout) };
    }),
  );
  const [refused, unknown] = shown;
  expect(refused?.json).toMatchObject({
    state: 'UNKNOWN',
    settledAt: expect.any(String),
    lookedForUntil: null,
  });
  expect(refused?.text).not.toContain('look for it until');
  expect(unknown?.json).toMatchObject({
    state: 'UNKNOWN',
    settledAt: null,
    lookedForUntil: expect.any(String),
  });
  expect(unknown?.text).toContain(' look for it until ');
});
