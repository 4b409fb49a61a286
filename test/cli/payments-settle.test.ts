import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from '../money/orders.ts';
import { pasarela, type Ran } from './run.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';

it.each([
  ['was put off for good', true],
  ['a gateway has taken', false],
])('a payment that %s is due again as soon as an operator has it settled', async (_what, isPutOff) => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-settle-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  cleanup.defer(() => records.stop());
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', key);
  const shown = { amount: '12.50', source: randomUUID(), destination: randomUUID(), requestedBy: 'alma' };
  const asked = { operation: 'createMoneyOut', customerId: null, ...shown } as const;
  await records.claim(name, { ...NOBODYS, owner: 'a', inputHash: hash, leaseMs: 0, asked, requestId: key });
  await records.markSent(name, 'a', '{}', { upstreamKey: key, original: null });
  await records.hasten(name);
  const taken = await records.takeOpen(name, 'gateway', 60_000);
  if (taken === undefined) throw new Error('it is due');
  if (isPutOff) await records.putOff(taken, undefined, 'nothing');
  expect(await records.due(CLIENT, 1)).toEqual([]);

  const id = await createPayments(records).idOf(name);
  let ended: Ran | undefined;
  const command = pasarela(['payments', 'settle', String(id), '--json'], { DATA_DIR: dataDir }).then(
    (ran) => {
      ended = ran;
      return ran;
    },
  );
  // No gateway runs here: what one finds due, it settles.
  const due = await until(async () => {
    const names = await records.due(CLIENT, 1);
    return (names.length > 0 || ended !== undefined) && names;
  });
  expect({ due, ended }).toEqual({ due: [name], ended: undefined });
  await records.answer(name, hash, { kind: 'done', status: 201, text: '{}' }, randomUUID());
  const { code, stdout } = await command;
  expect(JSON.parse(stdout)).toMatchObject({ id, state: 'DONE' });
  expect(code).toBe(0);
});

it('says of a payment whose key is given back meanwhile what that means, and not that there is none', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-settle-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  cleanup.defer(() => records.stop());
  const name = recordName({ clientId: CLIENT, customerId: undefined, key: randomUUID() });
  const shown = { amount: '12.50', source: randomUUID(), destination: randomUUID(), requestedBy: 'alma' };
  const asked = { operation: 'createMoneyOut', customerId: null, ...shown } as const;
  await records.claim(name, { ...NOBODYS, owner: 'a', inputHash: 'input', leaseMs: 0, asked });
  await records.markSent(name, 'a', '{}', { upstreamKey: randomUUID(), original: null });
  await records.hasten(name);
  await records.takeOpen(name, 'gateway', 60_000);
  const id = await createPayments(records).idOf(name);

  const command = pasarela(['payments', 'settle', id], { DATA_DIR: dataDir });
  // Only the command makes it due again.
  await until(async () => (await records.due(CLIENT, 1)).length > 0);
  await records.release(name, 'gateway');

  const told = expect.stringMatching(/^The payment "\S+" is no longer in the record\. .*nothing_moved/);
  expect(await command).toEqual({ code: 1, stdout: '', stderr: told });
});

it('settle of a payment whose record was put back says that nobody asks before resume --put-back, and leaves it as it is', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-settle-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const first = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  const name = recordName({ clientId: CLIENT, customerId: undefined, key: randomUUID() });
  await first.claim(name, { ...NOBODYS, owner: 'a', inputHash: 'input', leaseMs: 0 });
  await first.markSent(name, 'a', '{}', { upstreamKey: randomUUID(), original: null });
  await first.hasten(name);
  const taken = await first.takeOpen(name, 'gateway', 60_000);
  if (taken === undefined) throw new Error('it is due');
  await first.putOff(taken, undefined, 'nothing');
  const id = await createPayments(first).idOf(name);
  await first.stop();
  // Less is counted in the record than outside.
  await writeFile(join(dataDir, 'money.sqlite-mark-0-1000'), '');
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  cleanup.defer(() => records.stop());
  expect(await records.held()).toMatchObject([{ why: 'put-back' }]);

  const { code, stdout, stderr } = await pasarela(['payments', 'settle', id, '--json'], {
    DATA_DIR: dataDir,
  });
  expect({ code, told: JSON.parse(stdout) }).toMatchObject({ code: 1, told: { id, state: 'UNKNOWN' } });
  expect(stderr).toMatch(/no gateway asks .* Run this again after pasarela payments resume --put-back\./);
  expect(stderr).not.toContain('asks the service');
  expect(await records.due(CLIENT, 1)).toEqual([]);
});

it('a command waits for another process that writes the record, longer than a gateway does', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-busy-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  cleanup.defer(() => records.stop());
  const other = new DatabaseSync(join(dataDir, 'money.sqlite'));
  cleanup.defer(() => other.close());

  other.exec('BEGIN IMMEDIATE');
  const command = pasarela(['payments', 'list', '--json'], { DATA_DIR: dataDir });
  // A gateway gives up after half a second, and the command takes less than one to begin.
  await pause(3_000);
  other.exec('COMMIT');

  expect(await command).toEqual({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(/^This record has no payment\./),
  });
});

it('a payment is found whose id begins with a dash, as an option does', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-dash-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  cleanup.defer(() => records.stop());
  const payments = createPayments(records);
  // One id in 64 does.
  const { id, name } = await until(async () => {
    const other = recordName({ clientId: CLIENT, customerId: undefined, key: randomUUID() });
    const found = await payments.idOf(other);
    return found.startsWith('-') && { id: found, name: other };
  });
  await records.claim(name, { ...NOBODYS, owner: 'a', inputHash: 'input', leaseMs: 0 });
  await records.markSent(name, 'a', '{}', { upstreamKey: null, original: null });
  const run = (...args: string[]) => pasarela(['payments', ...args], { DATA_DIR: dataDir });
  for (const args of [
    [id, '--json'],
    ['--json', id],
    ['--json', '--', id],
  ]) {
    const { code, stdout } = await run('show', ...args);
    expect({ code, told: JSON.parse(stdout) }).toMatchObject({ code: 0, told: { id, state: 'UNKNOWN' } });
  }
  await records.answer(name, 'input', { kind: 'done', status: 201, text: '{}' }, randomUUID());
  expect(await run('settle', id)).toMatchObject({ code: 0 });
  expect(await run('show', '-x')).toMatchObject({ code: 2 });
});
