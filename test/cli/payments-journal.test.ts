import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { barOf } from '../../src/cli/payments/progress.ts';
import { silentLogger as logger } from '../../src/common/logger.ts';
import { inputHash, recordName } from '../../src/money/intent.ts';
import { digestOf } from '../../src/money/journal/journal.ts';
import { JOURNAL_PAGE } from '../../src/money/journal/verify.ts';
import { openMoneyRecords } from '../../src/money/open-money.ts';
import type { MoneyRecords } from '../../src/money/record.ts';
import { programOf } from '../helpers/entry.ts';
import { folder } from '../helpers/packages.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { NOBODYS } from '../money/orders.ts';
import { DISK_ORDER } from './disk-order.ts';
import { pasarela } from './run.ts';

const CLIENT = '3f1c7c0e-4a0e-4a6b-9d55-6d0a4a3b2c11';
const PAYMENTS = 1_000;
/** A formula, with characters that a terminal obeys and that end a line. */
const SUBJECT = '=1+1,"x"\u001b\u009b\u2028\u202e\r';
const SOURCE = '0d3a4880-dfa1-46db-80fc-fc28313eef9a';

/** A module for Node's `--import`: says so once the process has done what it does at once behind a write to its standard output. */
const TELLS_WRITES = `data:text/javascript,${encodeURIComponent(`
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  stdout.write = (...said) => {
    setImmediate(() => stderr.write('The process has gone on.'));
    return write(...said);
  };
`)}`;

async function pay(records: MoneyRecords, clientId: string, key: string): Promise<void> {
  const name = recordName({ clientId, customerId: undefined, key });
  const hash = inputHash('createMoneyOut', key);
  const shown = { amount: '12.50', source: SOURCE, destination: randomUUID(), requestedBy: SUBJECT };
  const asked = { operation: 'createMoneyOut', customerId: null, ...shown } as const;
  await records.claim(name, { ...NOBODYS, owner: 'a', inputHash: hash, leaseMs: 0, asked, requestId: key });
  await records.markSent(name, 'a', '{}');
  await records.answer(name, hash, { kind: 'done', status: 201, text: '{}' }, randomUUID());
}

describe.each(['node:sqlite', 'Redis'])('pasarela payments, over %s', (kind) => {
  let dataDir: string;
  let redis: RedisServer | undefined;
  let records: MoneyRecords;
  let environment: Record<string, string>;
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
    redis = kind === 'Redis' ? await startRedis() : undefined;
    records = await openMoneyRecords({ redisUrl: redis?.url, dataDir, logger });
    environment = { DATA_DIR: dataDir, ...(redis === undefined ? {} : { REDIS_URL: redis.url }) };
    for (let made = 0; made < PAYMENTS; made += 20) {
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => pay(records, CLIENT, `key-number-${made + index}`)),
      );
    }
  });
  const started: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of started) child.kill('SIGKILL');
    await records.stop();
    await redis?.stop();
    await rm(dataDir, { recursive: true });
  });

  const run = (...args: string[]) => pasarela(['payments', ...args], environment);

  it('exports every line, once and in order, and verifies what it has exported', async () => {
    const { code, stdout, stderr } = await run('export');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(3 * PAYMENTS);
    const read = lines.map((line) => JSON.parse(line));
    const ids = read.map(({ line }) => line.id.split('-').map(Number));
    expect(ids.toSorted(([a, b], [c, d]) => a - c || b - d)).toEqual(ids);
    expect(read.filter(({ step }) => step === 'done')).toHaveLength(PAYMENTS);
    for (const entry of read) {
      expect(entry).toMatchObject({
        ...{ clientId: CLIENT, operation: 'MONEY_OUT', amount: '12.50', sourceInstrumentId: SOURCE },
        requestedBy: SUBJECT,
        paymentId: expect.stringMatching(/^[\w-]{43}$/),
      });
    }
    const file = join(dataDir, 'export.jsonl');
    const verify = async (text: string) => {
      await writeFile(file, text);
      const { code, stdout } = await run('verify', '--file', file);
      return [code, stdout.split('\n').at(-2)];
    };
    const hold = `${lines.length} lines hold.`;
    expect(await verify(stdout)).toEqual([0, hold]);
    const torn = `Line ${lines.length} is the last and is not whole: the end is torn.`;
    expect(await verify(stdout.slice(0, -20))).toEqual([1, torn]);
    const broken = (number: number) =>
      `Line ${number} does not hold: it was changed, or lines before it were taken out.`;
    expect(await verify(lines.toSpliced(41, 1).join('\n'))).toEqual([1, broken(42)]);
    const changed = lines.with(41, lines[41]?.replace('12.50', '12.51') ?? '');
    expect(await verify(changed.join('\n'))).toEqual([1, broken(42)]);
    expect(await verify(lines.with(41, '{"at":').join('\n'))).toEqual([1, broken(42)]);
    // An export that was killed, and went on before what it had written last.
    const again = [...lines.slice(0, 60), ...lines.slice(40)];
    expect(await verify(again.join('\n'))).toEqual([0, `${lines.length + 20} lines hold.`]);
    const changedAgain = again.with(61, again[61]?.replace('12.50', '12.51') ?? '');
    expect(await verify(changedAgain.join('\n'))).toEqual([1, broken(62)]);
    expect(await verify(again.toSpliced(75, 10).join('\n'))).toEqual([1, broken(76)]);
  });

  it('exports a part, by time, for spreadsheets', async () => {
    const all = (await run('export')).stdout.trimEnd().split('\n');
    const at = JSON.parse(all[1_500] ?? '').at;
    const later = (await run('export', '--from', at, '--format', 'csv')).stdout.trimEnd().split('\r\n');
    const sooner = (await run('export', '--to', at, '--client', CLIENT)).stdout.trimEnd().split('\n');
    expect(later[0]).toMatch(/^at,step,client_id,/);
    expect(later.length - 1 + sooner.length).toBe(all.length);
    // Nothing is a formula, and no terminal obeys it.
    expect(later[1]?.split(',').slice(4).join(',')).toMatch(
      /^"'=1\+1,""x""\\u001b\\u009b\\u2028\\u202e\\u000d",MONEY_OUT,/,
    );
    // Two parts, one after the other, hold as the whole does.
    const parts = [...sooner, ...(await run('export', '--from', at)).stdout.trimEnd().split('\n')];
    const file = join(dataDir, 'parts.jsonl');
    const verify = async (lines: readonly string[]) => {
      await writeFile(file, lines.join('\n'));
      return (await run('verify', '--file', file)).stdout.split('\n').at(-2);
    };
    expect(await verify(parts)).toBe(`${all.length} lines hold.`);
    expect(await verify(parts.toSpliced(sooner.length - 1, 1))).toMatch(
      `Line ${sooner.length} does not hold`,
    );
    const early = await run('export', '--from', '1970-01-01');
    expect({ ...early, stdout: early.stdout.trimEnd().split('\n').length }).toEqual({
      ...{ code: 0, stderr: '', stdout: all.length },
    });
  });

  it('verifies the journal, and prints what to note of it', async () => {
    const { code, stdout } = await run('verify');
    expect(code).toBe(0);
    expect(stdout).toContain(`Client ${CLIENT}: ${3 * PAYMENTS} lines hold.`);
    const anchor = /anchor: (\S+)/.exec(stdout)?.[1] ?? '';
    expect(await run('verify', '--client', CLIENT, '--anchor', anchor)).toMatchObject({ code: 0 });
    const forged = anchor.replace(/[\da-f]{8}$/, '00000000');
    expect(await run('verify', '--client', CLIENT, '--anchor', forged)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('The line of --anchor is not there'),
    });
  });

  it('lists as many payments as wanted, each once, however many are read at a time', async () => {
    const { stdout } = await run('list', '--client', CLIENT, '--limit', '250', '--json');
    const ids = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).id);
    expect([ids.length, new Set(ids).size]).toEqual([250, 250]);
  });

  const follow = (clientId: string, state: string, ...more: readonly string[]) => {
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const args = ['payments', 'export', '--follow', '--state', state, '--client', clientId, ...more];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, [folder(program), ...first, ...args], {
      env: { PATH, ...environment },
    });
    started.push(child);
    const [lines, told]: [string[], string[]] = [[], []];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    child.stderr.on('data', (chunk) => told.push(String(chunk)));
    return { child, lines, told };
  };
  const placeOf = (line: string | undefined): string => JSON.parse(line ?? '').line.id;

  it('saves a place once the disk has the lines before it, where they go into a file', async () => {
    const clientId = randomUUID();
    const order = join(dataDir, `order-${clientId}`);
    await pay(records, clientId, 'the first of them');
    await using output = await open(join(dataDir, `export-${clientId}.jsonl`), 'a');
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const state = join(dataDir, `follow-${clientId}.cursor`);
    const args = ['payments', 'export', '--follow', '--state', state, '--client', clientId];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, ['--import', DISK_ORDER, folder(program), ...first, ...args], {
      env: { PATH, ...environment, DISK_ORDER: order },
      stdio: ['ignore', output.fd, 'ignore'],
    });
    started.push(child);
    await until(async () => (await readFile(order, 'utf8').catch(() => '')).includes('place'));
    expect(await readFile(order, 'utf8')).toMatch(/^output sync place/);
  });

  it('follows, and goes on where it ended when it is killed', async () => {
    const clientId = randomUUID();
    const state = join(dataDir, `follow-${clientId}.cursor`);
    await pay(records, clientId, 'the first of them');
    const one = follow(clientId, state);
    await until(() => one.lines.length === 3);
    await pay(records, clientId, 'the second of them');
    await until(() => one.lines.length === 6);
    await until(async () => (await readFile(state, 'utf8')).includes(placeOf(one.lines[5])));
    one.child.kill('SIGKILL');
    await once(one.child, 'close');
    await pay(records, clientId, 'the third of them');
    const two = follow(clientId, state);
    await until(() => two.lines.length === 3);
    two.child.kill('SIGTERM');
    expect(await once(two.child, 'close')).toEqual([0, null]);
    expect(two.lines.map((line) => JSON.parse(line).line.previous)[0]).toBe(
      JSON.parse(one.lines[5] ?? '').line.digest,
    );
    // A journal that was put back does not have the line, or has another of its id.
    const { id } = JSON.parse(one.lines[5] ?? '').line;
    for (const missing of ['1-0', id]) {
      await writeFile(state, `${missing}-${'0'.repeat(24)}\n`);
      expect(await run('export', '--follow', '--state', state, '--client', clientId)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('does not hold the line'),
      });
    }
    // The place of something else, such as an event.
    await writeFile(state, 'AAAAAAAAAAAA\n');
    expect(await run('export', '--follow', '--state', state, '--client', clientId)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${state} holds no place in a journal.`),
    });
  });

  it('begins a file of CSV with its header, and one that it goes on with where it ended, whatever --from says', async () => {
    const clientId = randomUUID();
    const state = join(dataDir, `follow-${clientId}.cursor`);
    const started: string[][] = [];
    for (const count of [4, 3]) {
      await pay(records, clientId, `key ${count} of them`);
      const { child, lines } = follow(clientId, state, '--format', 'csv', '--from', '2020-01-01');
      await until(() => lines.length >= count);
      child.kill('SIGTERM');
      expect(await once(child, 'close')).toEqual([0, null]);
      started.push(lines);
    }
    const [one = [], two = []] = started;
    expect([one.length, two.length]).toEqual([4, 3]);
    expect(one[0]).toMatch(/^at,step,/);
    for (const line of [...one.slice(1), ...two]) expect(line).toMatch(/^20\d\d-/);
  });

  it('saves its place while it writes what there is, and repeats no more than what it wrote last', async () => {
    const state = join(dataDir, 'backlog.cursor');
    const one = follow(CLIENT, state);
    // As many as are read at a time. The rest is more than fits between two processes.
    await until(() => one.lines.length >= JOURNAL_PAGE);
    one.child.stdout.pause();
    const last = one.lines[JOURNAL_PAGE - 1];
    await until(async () => (await readFile(state, 'utf8').catch(() => '')).includes(placeOf(last)));
    one.child.kill('SIGKILL');
    await once(one.child, 'exit');
    const two = follow(CLIENT, state);
    await until(() => two.lines.length === 3 * PAYMENTS - JOURNAL_PAGE);
    expect(JSON.parse(two.lines[0] ?? '').line.previous).toBe(JSON.parse(last ?? '').line.digest);
    two.child.kill('SIGTERM');
    expect(await once(two.child, 'close')).toEqual([0, null]);
  });

  it('saves no place of lines that it has not written', async () => {
    const state = join(dataDir, 'unwritten.cursor');
    const { child } = follow(CLIENT, state);
    // What is read at a time is more than fits between two processes.
    child.stdout.once('data', () => child.kill('SIGKILL'));
    await once(child, 'close');
    await expect(readFile(state)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('saves no place of lines that its own memory has alone, as the pipe is full', async () => {
    const clientId = randomUUID();
    const [pipe, state] = [join(dataDir, `pipe-${clientId}`), join(dataDir, `follow-${clientId}.cursor`)];
    execFileSync('mkfifo', [pipe]);
    await using reader = await open(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = await open(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
    const fill = async () => {
      for (;;) await writer.write('\n'.repeat(4_096));
    };
    await expect(fill()).rejects.toMatchObject({ code: 'EAGAIN' });
    await pay(records, clientId, 'the first of them');
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const args = ['payments', 'export', '--follow', '--state', state, '--client', clientId];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, ['--import', TELLS_WRITES, folder(program), ...first, ...args], {
      env: { PATH, ...environment },
      stdio: ['ignore', writer.fd, 'pipe'],
    });
    started.push(child);
    const told: string[] = [];
    child.stderr?.on('data', (chunk) => told.push(String(chunk)));
    await until(() => told.join('').includes('The process has gone on.'));
    child.kill('SIGKILL');
    await once(child, 'close');
    await writer.close();
    expect((await reader.readFile('utf8')).trim()).toBe('');
    await expect(readFile(state)).rejects.toMatchObject({ code: 'ENOENT' });
    const two = follow(clientId, state);
    await until(() => two.lines.length === 3);
  });

  it('leaves the file of its place to the process that has taken it over', async () => {
    const clientId = randomUUID();
    const state = join(dataDir, `follow-${clientId}.cursor`);
    await pay(records, clientId, 'the first of them');
    const one = follow(clientId, state);
    await until(async () => (await readFile(state, 'utf8').catch(() => '')) !== '');
    const two = follow(clientId, state);
    await until(() => two.told.join('').includes('Following'));
    // The next line that each of them writes tells whose the file is.
    await until(async () => {
      await pay(records, clientId, randomUUID());
      return one.child.exitCode !== null || two.child.exitCode !== null;
    });
    const [ended, left] = one.child.exitCode === null ? [two, one] : [one, two];
    expect(ended.child.exitCode).toBe(1);
    await until(() => ended.told.join('').includes('another process saves its place there'));
    left.child.kill('SIGTERM');
    expect(await once(left.child, 'exit')).toEqual([0, null]);
  });

  it.each([
    [['export', '--format', 'xml'], '--format wants'],
    [['export', '--from', 'yesterday'], '--from wants a date'],
    [['export', '--from', '2026-02-31'], '--from wants a date'],
    [['export', '--from', '2026-02-01T14:05'], '--from wants a date, or a time with its offset'],
    [['export', '--from', '2026-11-30', '--to', '2026-11-30'], 'a day ends with the date of the next one'],
    [['list', '--from', '2026-12-01', '--to', '2026-11-01'], 'nothing is between'],
    [['export', '--follow'], '--follow wants --state'],
    [['verify', 'all'], 'takes no argument'],
    [['verify', '--anchor', '1-0:abc'], '--anchor wants'],
    [['export', '--form', 'csv'], `Unknown option '--form'. Did you mean "--from"?`],
    [['settled'], 'there is no "settled". Did you mean "settle"? It wants status, stop,'],
  ])('does not understand %j', async (args, message) => {
    expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});

it('goes on following when Redis is back', async () => {
  await using cleanup = new AsyncDisposableStack();
  const redis = await startRedis();
  cleanup.defer(() => redis.stop());
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = await openMoneyRecords({ redisUrl: redis.url, dataDir, logger });
  cleanup.defer(() => records.stop());
  await pay(records, CLIENT, 'the first of them');
  const [program = '', ...first] = programOf('src/cli/pasarela.ts');
  const args = ['payments', 'export', '--follow', '--state', join(dataDir, 'state')];
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [folder(program), ...first, ...args], {
    env: { PATH, DATA_DIR: dataDir, REDIS_URL: redis.url },
  });
  cleanup.defer(() => void child.kill('SIGKILL'));
  const [lines, told]: [string[], string[]] = [[], []];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line).step));
  child.stderr.on('data', (chunk) => told.push(String(chunk)));
  await until(() => lines.length === 3);
  // Each outage is told.
  for (const outage of [1, 2]) {
    const before = lines.length;
    await redis.kill();
    await until(() => told.join('').split('could not be reached (journal). Trying again.').length > outage);
    await redis.start();
    await until(() =>
      pay(records, CLIENT, `after outage ${outage}`).then(
        () => true,
        () => false,
      ),
    );
    await until(() => lines.at(-1) === 'done' && lines.length > before);
  }
  child.kill('SIGTERM');
  expect(await once(child, 'close')).toEqual([0, null]);
});

it('saves no place of lines that a full disk has cut short, and ends with 1', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  cleanup.defer(() => records.stop());
  for (let made = 0; made < 50; made += 1) await pay(records, CLIENT, `key-number-${made}`);
  // Without it the command would have to write the store too.
  await records.idKey(CLIENT);
  const [state, file] = [join(dataDir, 'state'), join(dataDir, 'file.jsonl')];
  const [program = '', ...first] = programOf('src/cli/pasarela.ts');
  const exported = async (...more: readonly string[]) => {
    // As on a disk that becomes full: the first write is cut short, and the next one fails.
    const limited = ['-c', `ulimit -f 128; exec "$@" > ${file}`, 'sh', process.execPath, folder(program)];
    const child = spawn('sh', [...limited, ...first, 'payments', 'export', ...more], {
      env: { PATH: process.env['PATH'], DATA_DIR: dataDir },
    });
    cleanup.defer(() => void child.kill('SIGKILL'));
    const told: string[] = [];
    child.stderr.on('data', (chunk) => told.push(String(chunk)));
    const [code] = await once(child, 'close');
    const { length } = await readFile(file);
    return { code, told: told.join(''), length };
  };
  const cut = {
    code: 1,
    told: expect.stringContaining('Standard output cannot be written: EFBIG'),
    length: 128 * 512,
  };
  expect(await exported()).toEqual(cut);
  expect(await exported('--follow', '--state', state)).toEqual(cut);
  await expect(readFile(state)).rejects.toMatchObject({ code: 'ENOENT' });
});

it('ends at a line that it cannot read, also where it is the last', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  await pay(records, CLIENT, 'the only one');
  const [, before, last] = await records.journal.read(CLIENT, undefined, 100);
  await records.stop();
  const db = new DatabaseSync(join(dataDir, 'money.sqlite'));
  const change = (text: string, digest: string) =>
    db
      .prepare('UPDATE journal_line SET text = ?, digest = unhex(?) WHERE ms || ? || number = ?')
      .run(text, digest, '-', last?.id ?? '');
  const run = () => pasarela(['payments', 'export'], { DATA_DIR: dataDir });
  const newer = `z${last?.text}`;
  change(newer, last?.digest ?? '');
  const changed = await run();
  expect(changed).toMatchObject({ code: 1, stderr: expect.stringContaining(`${last?.id} does not follow`) });
  change(newer, digestOf(before?.digest ?? '', { id: last?.id ?? '', text: newer }));
  const unknown = await run();
  expect(unknown).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${last?.id} is of a form that this version does not know`),
  });
  for (const { stdout } of [changed, unknown]) expect(stdout.trimEnd().split('\n')).toHaveLength(2);
  db.close();
  await rm(dataDir, { recursive: true });
});

it('makes no record where the gateway has none: what is stopped in it would go on', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
  for (const verb of ['stop', 'status', 'list', 'verify']) {
    expect(await pasarela(['payments', verb], { DATA_DIR: dataDir })).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`There is no record of payments in ${dataDir}.`),
    });
  }
  expect(await readdir(dataDir)).toEqual([]);
  await rm(dataDir, { recursive: true });
});

it('says of a record without a payment that it may be that of another gateway', async () => {
  await using cleanup = new AsyncDisposableStack();
  const redis = await startRedis();
  cleanup.defer(() => redis.stop());
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const environment = { DATA_DIR: dataDir, REDIS_URL: redis.url };
  for (const verb of ['stop', 'resume', 'list', 'export']) {
    expect(await pasarela(['payments', verb], environment)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Run this with the REDIS_URL or DATA_DIR of the gateway.'),
    });
  }
  const records = await openMoneyRecords({ redisUrl: redis.url, dataDir, logger });
  cleanup.defer(() => records.stop());
  await pay(records, CLIENT, 'the first of them');
  expect(await pasarela(['payments', 'stop'], environment)).toMatchObject({ code: 0, stderr: '' });
});

it('names the line of the store that does not hold', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-journal-'));
  const records = await openMoneyRecords({ redisUrl: undefined, dataDir, logger });
  for (let made = 0; made < 5; made += 1) await pay(records, CLIENT, `key-number-${made}`);
  // Its journal holds, and is verified last.
  await pay(records, 'later client', 'key-number-1');
  const lines = await records.journal.read(CLIENT, undefined, 100);
  await records.stop();
  const db = new DatabaseSync(join(dataDir, 'money.sqlite'));
  const id = lines[7]?.id ?? '';
  db.prepare('DELETE FROM journal_line WHERE ms = ? AND number = ?').run(...id.split('-').map(Number));
  const environment = {
    DATA_DIR: dataDir,
    UPSTREAM_URL: 'http://127.0.0.1:1',
    WEBHOOK_SECRET: 'x'.repeat(32),
  };
  const verdict = await pasarela(['payments', 'verify'], environment);
  expect(verdict).toMatchObject({ code: 1, stdout: expect.stringContaining(`Line 8 (${lines[8]?.id}`) });
  const exported = await pasarela(['payments', 'export'], environment);
  expect(exported).toMatchObject({ code: 1, stderr: expect.stringContaining(lines[8]?.id ?? 'none') });
  expect(exported.stdout.trimEnd().split('\n')).toHaveLength(7);
  const listed = await pasarela(['payments', 'list', '--limit', '2', '--json'], environment);
  const clients = listed.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).clientId);
  expect(clients.toSorted()).toEqual([CLIENT, 'later client']);
  db.close();
  await rm(dataDir, { recursive: true });
});

it('draws a bar of what is done', () => {
  expect(barOf(250_000, 1_000_000, 'lines', 2_000)).toBe(
    '[######                  ] 25 %  250,000 of 1,000,000 lines, 125,000 a second',
  );
  expect(barOf(0, 0, 'lines', 0)).toContain('100 %');
});
