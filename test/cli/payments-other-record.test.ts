import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { createPayments } from '../../src/money/payment-reads.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { MARKS } from '../../src/money/redis/marks.ts';
import { programOf } from '../helpers/entry.ts';
import { folder as pathOf } from '../helpers/packages.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { NOBODYS } from '../money/orders.ts';
import { pasarela, unread } from './run.ts';

/** The client whose payments the folder of the command counts, and the one of the record. */
const COUNTED = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const CLIENT = '7b1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c22';
const ASKED = /Are REDIS_URL and DATA_DIR those of one gateway\? If so, their record was put back/;

let cleanup: AsyncDisposableStack;
let folder: string;
beforeEach(async () => {
  cleanup = new AsyncDisposableStack();
  folder = await mkdtemp(join(tmpdir(), 'pasarela-other-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
});
afterEach(() => cleanup.disposeAsync());

/** Sends a payment whose outcome stays unknown. @returns its id */
async function send(records: MoneyRecords): Promise<string> {
  const key = randomUUID();
  const name = recordName({ clientId: CLIENT, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', key);
  await records.claim(name, { ...NOBODYS, owner: 'a', inputHash: hash, leaseMs: 0, twin: key });
  expect(await records.markSent(name, 'a', '{}', { upstreamKey: key, original: null })).toBe(true);
  return createPayments(records).idOf(name);
}

async function open(redisUrl: string | undefined, dataDir: string): Promise<MoneyRecords> {
  const records = await openMoneyRecords({ redisUrl, dataDir, logger });
  cleanup.defer(() => records.stop());
  return records;
}

/** All that a Redis has, but for what proves that it is the primary and is gone in a minute. */
async function contentOf({ admin }: RedisServer): Promise<Record<string, string>> {
  const keys = (await admin.keys('*')).filter((key) => !key.endsWith(':probe')).sort();
  const found = await Promise.all(
    keys.map(async (key) => [key, (await admin.dumpBuffer(key)).toString('hex')]),
  );
  return Object.fromEntries(found);
}

/** A Redis with a payment of one client, and a folder that counts payments of another. */
async function strangers() {
  const redis = cleanup.use(await startRedis());
  const records = await open(redis.url, join(folder, 'its own'));
  const id = await send(records);
  await writeFile(join(folder, MARKS), JSON.stringify({ [COUNTED]: { epoch: 1, sent: 3, at: 1 } }));
  const run = (...args: string[]) =>
    pasarela(['payments', ...args], { REDIS_URL: redis.url, DATA_DIR: folder });
  return { redis, records, id, run };
}

it('a command that reads writes nothing into a Redis that is not that of its DATA_DIR, and asks whether it is', async () => {
  const { redis, records, id, run } = await strangers();
  const before = await contentOf(redis);
  const status = await run('status');
  expect(status).toMatchObject({ code: 1, stdout: expect.stringMatching(ASKED) });
  expect(status.stdout).toContain('Missing from it: up to 3, as is counted there.');
  for (const verb of ['list', 'export'])
    expect(await run(verb)).toMatchObject({ code: 0, stderr: expect.stringMatching(ASKED) });
  expect(await run('show', id)).toMatchObject({ code: 0 });
  expect(await run('show', 'A'.repeat(43))).toMatchObject({ code: 1, stderr: expect.stringMatching(ASKED) });
  expect(await run('verify')).toMatchObject({ code: 0 });
  expect(await contentOf(redis)).toEqual(before);
  await send(records);
});

it('a stop with the DATA_DIR of another gateway is a stop alone, and ends with resume --put-back', async () => {
  const { redis, records, run } = await strangers();
  const stop = await run('stop');
  expect(stop).toMatchObject({ code: 0, stdout: expect.stringMatching(ASKED) });
  expect(stop.stdout).toContain('an operator has stopped them');
  expect(await records.held()).toMatchObject([{ why: 'stopped' }]);
  expect(await run('resume')).toMatchObject({ code: 1, stdout: expect.stringMatching(ASKED) });
  expect(await records.held()).toMatchObject([{ why: 'stopped' }]);
  expect(await run('resume', '--put-back')).toMatchObject({ code: 0 });
  expect(await redis.admin.smembers('pasarela:money:held')).toEqual([]);
  await send(records);
  expect(await run('status')).toMatchObject({ code: 0, stdout: 'Payments are not held.\n' });
});

it('a gateway with these counts finds the put-back that a command has told, and resume --put-back ends it for both', async () => {
  const { redis, run } = await strangers();
  expect(await run('status')).toMatchObject({ code: 1, stdout: expect.stringMatching(ASKED) });
  const gateway = await open(redis.url, folder);
  expect(await gateway.held()).toMatchObject([{ why: 'put-back', missing: 3 }]);
  expect((await run('status')).stdout).toMatch(/^Payments have been held since .* their record was put back/);
  expect(await run('resume', '--put-back')).toMatchObject({ code: 0 });
  expect(await gateway.isPutBack(COUNTED)).toBe(false);
  expect(await gateway.held()).toEqual([]);
});

it('payments status and resume do not take for right what DATA_DIR counts of a client whose record cannot be read', async () => {
  const { redis, records, run } = await strangers();
  const unreached = 'The record of payments could not be reached';
  /** All keys but those of the client that the folder counts, as where its node of a Cluster is away. */
  const keys = ['~pasarela:money:[^{]*', `~*{${CLIENT}}*`];
  await redis.admin.call('ACL', 'SETUSER', 'default', 'resetkeys', ...keys);
  expect(await run('status')).toMatchObject({ code: 1, stdout: '', stderr: `${unreached} (held).\n` });
  for (const verb of ['list', 'export'])
    expect(await run(verb, '--client', CLIENT)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(unreached),
    });
  await records.holdPayments();
  expect(await run('resume')).toMatchObject({ code: 1, stderr: `${unreached} (resume).\n` });
  expect(await records.held()).toMatchObject([{ why: 'stopped' }]);
  // What stands in the way of nothing else is told.
  expect(await run('stop')).toMatchObject({ code: 0, stdout: expect.stringMatching(/operator has stopped/) });
  await redis.admin.call('ACL', 'SETUSER', 'default', '~*');
  expect(await run('resume')).toMatchObject({ code: 1, stdout: expect.stringMatching(ASKED) });
  expect(await records.held()).toMatchObject([{ why: 'stopped' }]);
});

it('payments status and resume find a put-back that the record of a client alone tells, also with a DATA_DIR that counts nothing of it', async () => {
  const redis = cleanup.use(await startRedis());
  const records = await open(redis.url, join(folder, 'its own'));
  await send(records);
  // Its gateways have ended, and another node has lost that the client is held.
  await records.stop();
  const ledger = `pasarela:money:{${CLIENT}}:ledger`;
  await redis.admin.hset(ledger, { held: Date.now(), missing: 2 });
  const run = (...args: string[]) =>
    pasarela(['payments', ...args], { REDIS_URL: redis.url, DATA_DIR: folder });
  const before = await contentOf(redis);
  const told = expect.stringMatching(
    /^Payments have been held since .* their record was put back.*: up to 2, as the gateways/,
  );
  expect(await run('status')).toMatchObject({ code: 1, stdout: told });
  expect(await run('resume')).toMatchObject({ code: 1, stdout: told });
  expect(await contentOf(redis)).toEqual(before);
  // It is told as held also where another client is in the set.
  await redis.admin.sadd('pasarela:money:held', COUNTED);
  const both = await run('status');
  expect(both).toMatchObject({ code: 1, stdout: told });
  expect(both.stdout).not.toMatch(ASKED);
  expect(await run('resume', '--put-back')).toMatchObject({ code: 0 });
  expect(await redis.admin.hgetall(ledger)).toEqual({ sent: '1', epoch: '1' });
  expect(await run('status')).toMatchObject({ code: 0, stdout: 'Payments are not held.\n' });
});

it('a command does not take payments for let go where it cannot read which clients there are', async () => {
  const { redis, run } = await strangers();
  await rm(join(folder, MARKS));
  expect(await run('status')).toMatchObject({ code: 0 });
  await redis.admin.call(
    'ACL',
    'SETUSER',
    'default',
    'resetkeys',
    '~pasarela:money:held',
    '~pasarela:money:stopped',
  );
  expect(await run('status')).toMatchObject({
    ...{ code: 1, stdout: '', stderr: 'The record of payments could not be reached (held).\n' },
  });
});

it('a command on a Redis without a payment says so also where its DATA_DIR counts some', async () => {
  const redis = cleanup.use(await startRedis());
  await writeFile(join(folder, MARKS), JSON.stringify({ [COUNTED]: { epoch: 0, sent: 3, at: 1 } }));
  const told = await pasarela(['payments', 'stop'], { REDIS_URL: redis.url, DATA_DIR: folder });
  expect(told.stderr).toMatch(/^This record has no payment\./);
});

/** All rows of the ledger of a file. */
function ledgerIn(dataDir: string): unknown {
  using db = new DatabaseSync(join(dataDir, 'money.sqlite'), { readOnly: true });
  return db.prepare('SELECT * FROM ledger').all();
}

it('a command that reads writes nothing into a copy of a DATA_DIR, and tells that its file is another one', async () => {
  const [first, copy] = [join(folder, 'first'), join(folder, 'copy')];
  const records = await open(undefined, first);
  const id = await send(records);
  await records.stop();
  await cp(first, copy, { recursive: true });
  const run = (...args: string[]) => pasarela(['payments', ...args], { DATA_DIR: copy });
  const before = ledgerIn(copy);
  expect(await run('status')).toMatchObject({ code: 1, stdout: expect.stringMatching(ASKED) });
  expect(await run('list')).toMatchObject({ code: 0, stderr: expect.stringMatching(ASKED) });
  expect(await run('show', id)).toMatchObject({ code: 0 });
  expect(await run('verify')).toMatchObject({ code: 0 });
  expect(ledgerIn(copy)).toEqual(before);
  // The gateway that begins there finds it by itself.
  const moved = await open(undefined, copy);
  expect(await moved.held()).toMatchObject([{ why: 'put-back' }]);
});

it('payments resume --put-back before the gateway of a moved DATA_DIR begins lets its payments go on', async () => {
  const [first, copy] = [join(folder, 'first'), join(folder, 'copy')];
  const records = await open(undefined, first);
  await send(records);
  await records.stop();
  await cp(first, copy, { recursive: true });
  const run = (...args: string[]) => pasarela(['payments', ...args], { DATA_DIR: copy });
  expect(await run('resume')).toMatchObject({ code: 1 });
  expect(await run('resume', '--put-back')).toMatchObject({ code: 0 });
  const moved = await open(undefined, copy);
  expect(await moved.held()).toEqual([]);
  await send(moved);
});

it('payments resume, status and settle do their work and say by their exit code what came of it, also where nobody reads what they print', async () => {
  const redis = cleanup.use(await startRedis());
  const records = await open(redis.url, folder);
  const id = await send(records);
  const environment = { REDIS_URL: redis.url, DATA_DIR: folder };
  await records.holdPayments();
  expect(await unread(['payments', 'status'], environment)).toBe(1);
  expect(await unread(['payments', 'resume'], environment)).toBe(0);
  expect(await records.held()).toEqual([]);
  await redis.admin.hset(`pasarela:money:{${CLIENT}}:ledger`, 'sent', 0);
  expect(await records.isPutBack(CLIENT)).toBe(true);
  expect(await unread(['payments', 'resume'], environment)).toBe(1);
  expect(await unread(['payments', 'settle', id], environment)).toBe(1);
});

it('a user who may not look into DATA_DIR is told so, and not that there is no record', async () => {
  const records = await open(undefined, join(folder, 'data'));
  await records.stop();
  await chmod(join(folder, 'data'), 0o000);
  await chmod(folder, 0o755);
  const told = await new Promise<string>((resolve) => {
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const { PATH = '' } = process.env;
    execFile(
      process.execPath,
      [pathOf(program), ...first, 'payments', 'list'],
      // Root may look into every folder.
      { env: { PATH, DATA_DIR: join(folder, 'data') }, ...(process.getuid?.() === 0 && { uid: 65_534 }) },
      (_error, _stdout, stderr) => resolve(stderr),
    );
  });
  await chmod(join(folder, 'data'), 0o700);
  expect(told).toMatch(
    /^The record of payments cannot be opened: EACCES: permission denied.*as the user of the gateway\.\n$/,
  );
});
