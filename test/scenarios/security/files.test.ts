import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { Secret } from '../../../src/common/secret.ts';
import { MARKS } from '../../../src/money/redis/marks.ts';
import { buildServer } from '../../helpers/composition.ts';
import { collectingLogger, control, sendQuery } from '../../helpers/gateway.ts';
import { gatewayConfig } from '../../helpers/gateway-config.ts';
import { startRedis } from '../../helpers/redis.ts';

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** Each file and folder beneath one, with its permissions. */
async function modesIn(folder: string): Promise<Map<string, string>> {
  const modes = new Map([['', ((await stat(folder)).mode & 0o777).toString(8)]]);
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    modes.set(path.slice(folder.length + 1), ((await stat(path)).mode & 0o777).toString(8));
  }
  return modes;
}

/** Has every store of a gateway write something: the log or the spool, the record of payments, the quarantine. */
async function workOn(sandbox: Sandbox, dataDir: string, redisUrl?: Secret): Promise<() => Promise<void>> {
  const server = buildServer({ ...gatewayConfig(sandbox.url, dataDir), redisUrl }, collectingLogger([]));
  const url = await server.start();
  const address = server.ingress.url(sandbox.clientId, 'MONEY_IN') ?? '';
  const post = (body: string) =>
    fetch(address, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  await post('{ "id_msg": "1", "body": { "id": "a", "amount": "1.00", "sub_category": "INT_CREDIT" } }');
  await post('no JSON');
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  await sendQuery(
    `${url}/graphql`,
    `mutation ($input: CreateInternalTransactionInput!) { createInternalTransaction(input: $input) { __typename } }`,
    {
      input: {
        idempotencyKey: `key-${Date.now()}`,
        sourceInstrumentId: accounts[0].instrumentId,
        destinationInstrumentId: accounts[1].instrumentId,
        amount: '1.00',
        description: 'modes',
        externalReference: '1',
      },
    },
    { authorization: `Bearer ${sandbox.accessToken}` },
  );
  return () => server.stop();
}

async function newFolder(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'pasarela-modes-'));
  opened.push(() => rm(parent, { recursive: true, force: true }));
  return join(parent, 'data');
}

/** Under the umask that lets most through. */
async function withoutUmask<T>(work: () => Promise<T>): Promise<T> {
  const usual = process.umask(0);
  try {
    return await work();
  } finally {
    process.umask(usual);
  }
}

const allPrivate = (modes: Map<string, string>) =>
  new Map([...modes.keys()].map((name) => [name, name === '' ? '700' : '600']));

it('keeps every file of the data folder to its user, without Redis', async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  opened.push(() => sandbox.stop());
  const dataDir = await newFolder();
  await withoutUmask(async () => {
    const stop = await workOn(sandbox, dataDir);
    const modes = await modesIn(dataDir);
    await stop();
    expect([...modes.keys()].sort()).toEqual(
      expect.arrayContaining([
        'events.sqlite',
        'events.sqlite-wal',
        'money.sqlite',
        'money.sqlite-shm',
        'money.sqlite-wal',
        'quarantine.sqlite',
      ]),
    );
    expect(modes).toEqual(allPrivate(modes));
  });
});

it('keeps every file of the data folder to its user, with Redis away', async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  opened.push(() => sandbox.stop());
  const redis = await startRedis();
  await redis.stop();
  const dataDir = await newFolder();
  await withoutUmask(async () => {
    const stop = await workOn(sandbox, dataDir, new Secret(redis.url));
    const modes = await modesIn(dataDir);
    await stop();
    expect([...modes.keys()].some((name) => name.startsWith('spooled-'))).toBe(true);
    expect(modes).toEqual(allPrivate(modes));
  });
});

it('keeps every file of the data folder to its user, with Redis there', async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  opened.push(() => sandbox.stop());
  const redis = await startRedis();
  opened.push(() => redis.stop());
  const dataDir = await newFolder();
  await withoutUmask(async () => {
    // What is written beside the work is there once the gateway has ended.
    await (await workOn(sandbox, dataDir, new Secret(redis.url)))();
    const modes = await modesIn(dataDir);
    expect([...modes.keys()]).toContain(MARKS);
    expect(modes).toEqual(allPrivate(modes));
  });
});

it('takes the right to read from others where an older release has given it', async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  opened.push(() => sandbox.stop());
  const dataDir = await newFolder();
  await (await workOn(sandbox, dataDir))();
  const path = join(dataDir, 'money.sqlite');
  await chmod(path, 0o644);
  // SQLite itself closes one that is empty.
  await writeFile(`${path}-wal`, 'left by a process that was killed', { mode: 0o644 });
  const stop = await workOn(sandbox, dataDir);
  const modes = await modesIn(dataDir);
  await stop();
  for (const name of ['money.sqlite', 'money.sqlite-wal', 'money.sqlite-shm'])
    expect({ name, mode: modes.get(name) }).toEqual({ name, mode: '600' });
});
