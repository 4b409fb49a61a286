import { mkdtemp, rename, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { readVariables } from '../../src/app/config.ts';
import { lookAtFolder } from '../../src/cli/doctor/folder.ts';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { SqliteLog } from '../../src/events/sqlite/sqlite-log.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import { otherStoreIn } from '../../src/money/other-store.ts';
import { PaymentsHeldError, RETENTION_MS } from '../../src/money/record.ts';
import { pasarela } from '../cli/run.ts';
import { startProgram } from '../helpers/program.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { NOBODYS } from '../money/orders.ts';

const NAME = { clientId: '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11', hash: 'a-payment' };
const ENVIRONMENT = { UPSTREAM_URL: 'http://127.0.0.1:9', WEBHOOK_SECRET: 'x'.repeat(32) };
const TOO_LONG_AGO = Date.now() - RETENTION_MS - 24 * 60 * 60 * 1_000;

let redis: RedisServer;
let dataDir: string;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-other-store-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
});

/** What a gateway on this store leaves behind that has made a payment, or has only begun one. */
async function leave(redisUrl: string | undefined, step: 'claimed' | 'sent'): Promise<void> {
  const records = await openMoneyRecords({ redisUrl, dataDir, logger });
  await records.claim(NAME, { owner: 'a', inputHash: 'input', leaseMs: 0, ...NOBODYS });
  if (step === 'sent') expect(await records.markSent(NAME, 'a', '{}')).toBe(true);
  await records.stop();
}

const start = (more: Readonly<Record<string, string>>) =>
  startProgram('src/start.js', {
    PORT: '0',
    ...ENVIRONMENT,
    DATA_DIR: dataDir,
    ...more,
  });

it('a gateway that is given a Redis does not forget what it has paid without one', async () => {
  await leave(undefined, 'sent');
  {
    await using program = start({ REDIS_URL: redis.url });
    await program.says(
      /REDIS_URL: is set, and .*money\.sqlite says .* payments without Redis .*move events\.sqlite and each file/,
    );
    expect(await program.exited()).toBe(1);
  }
  await rename(join(dataDir, 'money.sqlite'), join(dataDir, 'money.sqlite.before'));
  await using program = start({ REDIS_URL: redis.url });
  await program.says(/Pasarela is listening/);
});

it('a gateway whose Redis is taken away does not forget what it has paid with it', async () => {
  await leave(redis.url, 'sent');
  await using program = start({});
  await program.says(
    /REDIS_URL: is not set, and .*payments\.marks\.json says .* payments with Redis .*rename that file where .* has run here without Redis since/,
  );
  expect(await program.exited()).toBe(1);
});

it('payments are not stopped in a file beside which the gateway has paid with a Redis', async () => {
  await leave(undefined, 'claimed');
  const stop = () => pasarela(['payments', 'stop'], { DATA_DIR: dataDir });
  expect(await stop()).toMatchObject({ code: 0 });
  expect(await pasarela(['payments', 'resume'], { DATA_DIR: dataDir })).toMatchObject({ code: 0 });
  await leave(redis.url, 'sent');
  const told = /^REDIS_URL is not set, and .*payments\.marks\.json says .* in Redis\./;
  expect(await stop()).toEqual({ code: 1, stdout: '', stderr: expect.stringMatching(told) });
});

it('the doctor tells beforehand that a gateway would not start for the other store', async () => {
  const environment = { ...ENVIRONMENT, DATA_DIR: dataDir };
  const found = () => lookAtFolder(readVariables({ ...environment, REDIS_URL: redis.url }));
  expect(await found()).toMatchObject([{ status: 'ok' }]);
  await leave(undefined, 'sent');
  const message = expect.stringMatching(
    /^the gateway does not start: REDIS_URL: is set, and .*money\.sqlite says/,
  );
  expect(await found()).toMatchObject([{ status: 'failure', message }, { status: 'ok' }]);
});

it('a gateway that is given a Redis tells of the log that its folder still has, and so does the doctor', async () => {
  const log = new SqliteLog({ dataDir, retention: 10, metrics: silentMetrics, now: Date.now });
  await log.stop();
  const told = /events\.sqlite is the log of a gateway without Redis, .* Move it out of the folder/;
  const environment = { ...ENVIRONMENT, DATA_DIR: dataDir };
  const found = (more: Readonly<Record<string, string>>) =>
    lookAtFolder(readVariables({ ...environment, ...more }));
  expect(await found({})).toMatchObject([{ status: 'ok' }]);
  const warning = { status: 'warning', message: expect.stringMatching(told) };
  expect(await found({ REDIS_URL: redis.url })).toMatchObject([warning, { status: 'ok' }]);
  await using program = start({ REDIS_URL: redis.url });
  await program.says(told);
  await program.says(/Pasarela is listening/);
});

it('payments can be stopped in a Redis that no gateway has used yet, so that the first one sends none', async () => {
  await using empty = await startRedis();
  const stopped = await pasarela(['payments', 'stop'], { REDIS_URL: empty.url, DATA_DIR: dataDir });
  expect(stopped).toMatchObject({ code: 0, stdout: expect.stringContaining('an operator has stopped them') });
  const records = await openMoneyRecords({ redisUrl: empty.url, dataDir, logger });
  await records.claim(NAME, { owner: 'a', inputHash: 'input', leaseMs: 0, ...NOBODYS });
  await expect(records.markSent(NAME, 'a', '{}')).rejects.toThrow(PaymentsHeldError);
  await records.stop();
});

it('a record that cannot be read may show payments, and a file of something else shows none', async () => {
  await leave(undefined, 'sent');
  const file = join(dataDir, 'money.sqlite');
  const found = () =>
    lookAtFolder(readVariables({ ...ENVIRONMENT, DATA_DIR: dataDir, REDIS_URL: redis.url }));
  const failed = (why: string) => {
    const message = expect.stringContaining(
      `the gateway does not start: REDIS_URL: is set, and ${file} cannot be read (${why}) and may say that`,
    );
    return [{ status: 'failure', message }, { status: 'ok' }];
  };
  {
    using db = new DatabaseSync(file);
    // As a process that ends.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT');
    expect(await found()).toMatchObject(failed('database is locked'));
  }
  await truncate(file, 8_192);
  expect(await found()).toMatchObject(failed('database disk image is malformed'));
  for (const other of ['', 'no database, but a text']) {
    await writeFile(file, other);
    expect(await found()).toMatchObject([{ status: 'ok' }]);
  }
});

it('marks that cannot be read may show payments, and the file that is to be renamed is theirs', async () => {
  await leave(undefined, 'sent');
  const marks = join(dataDir, 'payments.marks.json');
  // The operating system refuses to follow a link to itself, also for root.
  await symlink(marks, marks);
  const told = `REDIS_URL: is not set, and ${marks} cannot be read (ELOOP`;
  const message = expect.stringContaining(`the gateway does not start: ${told}`);
  expect(await lookAtFolder(readVariables({ ...ENVIRONMENT, DATA_DIR: dataDir }))).toMatchObject([
    { status: 'failure', message },
    { status: 'ok' },
  ]);
  await using program = start({});
  await program.says(/REDIS_URL: is not set, and .*payments\.marks\.json cannot be read \(ELOOP/);
  expect(await program.exited()).toBe(1);
});

it('the doctor says of a folder that it cannot enter nothing else, and has nobody rename a record in use', async () => {
  const folder = join(dataDir, 'loop');
  await symlink(folder, folder);
  for (const more of [{}, { REDIS_URL: redis.url }]) {
    const found = await lookAtFolder(readVariables({ ...ENVIRONMENT, DATA_DIR: folder, ...more }));
    const message = expect.stringContaining(`${folder} cannot be written: ELOOP`);
    expect(found).toMatchObject([{ status: 'failure', message }]);
  }
});

it('what was not sent, or is forgotten anyway, stands in nobody’s way', async () => {
  const found = () => otherStoreIn({ redisUrl: redis.url, dataDir });
  expect(await found()).toBeUndefined();
  await leave(undefined, 'claimed');
  expect(await found()).toBeUndefined();
  await leave(undefined, 'sent');
  const file = join(dataDir, 'money.sqlite');
  expect(await found()).toBe(file);
  using db = new DatabaseSync(file);
  db.prepare('UPDATE intent SET sent_at = ?').run(TOO_LONG_AGO);
  expect(await found()).toBeUndefined();
  const withoutRedis = () => otherStoreIn({ redisUrl: undefined, dataDir });
  expect(await withoutRedis()).toBeUndefined();
  await leave(redis.url, 'sent');
  const marks = join(dataDir, 'payments.marks.json');
  expect(await withoutRedis()).toBe(marks);
  await utimes(marks, new Date(TOO_LONG_AGO), new Date(TOO_LONG_AGO));
  expect(await withoutRedis()).toBeUndefined();
});
