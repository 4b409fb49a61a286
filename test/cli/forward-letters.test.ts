import { existsSync } from 'node:fs';
import {
  appendFile,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { createDayFiles } from '../../src/cli/forward/day-files.ts';
import { lettersFileOf, stateFileOf } from '../../src/cli/forward/forward.ts';
import { Letters } from '../../src/cli/forward/letters.ts';
import { receiverId } from '../../src/cli/forward/receivers.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { type Program, startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';
import { SECRET, startReceiver } from './receiver.ts';
import { pasarela } from './run.ts';

let gateway: RunningGateway;
let folder: string;
let clabe: string;
let cursor: string;
const folders: string[] = [];
beforeAll(async () => {
  gateway = await startGateway();
  clabe = (await control(gateway.sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-letters-'));
  folders.push(folder);
  cursor = (await gateway.query('{ eventCursor }')).data.eventCursor;
});
afterAll(async () => {
  await gateway.stop();
  for (const one of folders) await rm(one, { recursive: true, force: true });
});

const environment = () => ({
  PORT: new URL(gateway.url).port,
  PASARELA_TOKEN: gateway.sandbox.accessToken,
  FORWARD_SECRET: SECRET,
  DATA_DIR: folder,
});
const credit = (amount: string) =>
  control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
const start = (...args: string[]): Program =>
  startProgram('src/cli/pasarela.ts', environment(), ['events', 'forward', '--from', cursor, ...args]);
const operator = (...args: string[]) => pasarela(['events', 'forward', ...args], environment());
const status = async () => JSON.parse((await operator('status', '--json')).stdout);

it('puts an event aside that its receiver refuses, shows it, and brings it when an operator asks', async () => {
  let refuses = true;
  await using receiver = await startReceiver(({ amount }) =>
    refuses && amount.amount === '2.00' ? 422 : 200,
  );
  for (const amount of ['1.00', '2.00', '3.00']) await credit(amount);
  await using program = start('--to', receiver.url, '--schedule', '0s,0s');
  await program.says(/was given up after 3 attempts: the receiver answered 422/);
  await until(() => receiver.taken.length === 2);
  expect(receiver.taken.map(({ amount }) => amount.amount)).toEqual(['1.00', '3.00']);

  const [{ receiver: id, letters }] = await status();
  expect(letters).toMatchObject([{ attempts: 3, isDead: true, problem: 'the receiver answered 422' }]);
  const told = await operator('status');
  expect(told.stdout).toContain('dead letters: 1');
  expect(told.stdout).not.toContain('/hook');

  // Refused once more: it stays where it is.
  expect((await operator('retry', receiver.url)).stdout).toContain('1 event to be tried again');
  await program.says(/was not taken again: the receiver answered 422/);
  expect((await status())[0].letters).toMatchObject([{ attempts: 4, isDead: true, isWanted: false }]);

  refuses = false;
  expect(await operator('retry', id, letters[0].id)).toMatchObject({ code: 0 });
  await program.says(/was taken at last/);
  expect(receiver.taken.map(({ amount }) => amount.amount)).toEqual(['1.00', '3.00', '2.00']);
  expect((await status())[0].letters).toEqual([]);
  expect(await operator('retry', id)).toMatchObject({ code: 1 });
  expect(await operator('retry', 'http://127.0.0.1:9/other')).toMatchObject({ code: 1 });
});

it('shows and brings each digit of a status update, also once it was put aside', async () => {
  const payload = '{"folio":9007199254740993,"e":1e400,"amount":1250.5}';
  await fetch(gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: payload,
  });
  const ask = (query: string, accept: string) =>
    fetch(gateway.graphql, {
      method: 'POST',
      headers: {
        accept,
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ query, variables: { after: cursor } }),
    });
  const shown = '... on StatusUpdateEvent { payload }';
  const page = `query ($after: Cursor) { events(after: $after) { nodes { ${shown} } } }`;
  expect(await (await ask(page, 'application/json')).text()).toContain(`{"payload":${payload}}`);
  const stream = await ask(
    `subscription ($after: Cursor) { events(after: $after) { ${shown} } }`,
    'text/event-stream',
  );
  let heard = '';
  for await (const chunk of stream.body ?? []) {
    heard += Buffer.from(chunk).toString();
    if (heard.includes('event: next')) break;
  }
  expect(heard).toContain(`{"payload":${payload}}`);

  let refuses = true;
  await using receiver = await startReceiver(() => (refuses ? 422 : 200));
  await using program = start('--to', receiver.url, '--types', 'STATUS_UPDATE', '--schedule', '0s');
  await program.says(/was given up after 2 attempts/);
  refuses = false;
  expect(await operator('retry', receiver.url)).toMatchObject({ code: 0 });
  await program.says(/was taken at last/);
  expect(receiver.bodies).toHaveLength(3);
  for (const body of receiver.bodies) expect(body).toContain(`"payload":${payload}`);
});

it('tries a dead letter that an operator asks for, though no gateway answers', async () => {
  let answer = 422;
  await using receiver = await startReceiver(() => answer);
  await credit('2.50');
  const first = start('--to', receiver.url, '--schedule', '0s');
  await first.says(/was given up/);
  await until(async () => (await status())[0].cursor !== undefined);
  await first.end('SIGTERM');
  answer = 200;
  await using again = startProgram('src/cli/pasarela.ts', { ...environment(), PORT: '9' }, [
    ...['events', 'forward', '--to', receiver.url],
  ]);
  await again.says(/No gateway answers/);
  expect(await operator('retry', receiver.url)).toMatchObject({ code: 0 });
  await until(() => receiver.taken.length === 1);
});

it('names in its status what keeps events from coming now, though something else did first', async () => {
  let isBack = false;
  await using graph = await startUpstream((request, response) => {
    request.resume();
    const refused = { message: 'The token has ended.', extensions: { code: 'UNAUTHENTICATED' } };
    json(response, isBack ? { errors: [refused] } : { message: 'Bad gateway' });
  });
  await using receiver = await startReceiver(() => 200);
  const token = join(folder, 'token');
  await writeFile(token, 'stale');
  const { PASARELA_TOKEN: _, ...others } = environment();
  await using program = startProgram('src/cli/pasarela.ts', { ...others, PASARELA_TOKEN_FILE: token }, [
    ...['events', 'forward', '--from', cursor, '--to', receiver.url, '--url', graph.url],
  ]);
  await program.says(/is not GraphQL.* Trying again/);
  const trouble = async () => (await status())[0].trouble;
  const { since, problem } = await trouble();
  expect(problem).toContain('is not GraphQL');
  isBack = true;
  await program.says(/UNAUTHENTICATED: The token has ended\. Trying again/);
  await until(async () => (await trouble()).problem.startsWith('UNAUTHENTICATED'));
  expect(await trouble()).toMatchObject({ since, hasEnded: false });
});

it('gives nothing up while the receiver is away, and counts on where it was killed', async () => {
  let answer = 503;
  let asked = 0;
  await using receiver = await startReceiver(() => {
    asked += 1;
    return answer;
  });
  await credit('4.00');
  const first = start('--to', receiver.url, '--schedule', '1h');
  await until(() => asked >= 3);
  answer = 400;
  await until(async () => (await status())[0].letters[0]?.refusals === 1);
  await first.end('SIGKILL');
  const [{ letters }] = await status();
  expect(letters).toMatchObject([{ isDead: false, problem: 'the receiver answered 400' }]);

  // It has been refused once, and the schedule allows one more.
  await using again = start('--to', receiver.url, '--schedule', '1h');
  await again.says(/was given up after \d+ attempts/);
  expect((await status())[0].letters[0].attempts).toBeGreaterThan(letters[0].attempts);
});

it('waits no longer for the next attempt once an operator asks for it', async () => {
  let answer = 500;
  await using receiver = await startReceiver(() => answer);
  await credit('5.00');
  await using program = start('--to', receiver.url, '--schedule', '1h');
  await program.says(/was not taken/);
  await until(async () => (await status())[0].letters.length === 1);
  answer = 200;
  expect(await operator('retry', receiver.url)).toMatchObject({ code: 0 });
  await until(() => receiver.taken.length === 1);
});

it('keeps a place for each receiver, also where it is named twice, and lets none wait for another', async () => {
  let isAway = true;
  await using slow = await startReceiver(() => (isAway ? 503 : 200));
  await using quick = await startReceiver(() => 200);
  await using program = start('--to', slow.url, '--to', quick.url, '--to', quick.url);
  for (const amount of ['6.00', '7.00', '8.00']) await credit(amount);
  await until(() => quick.taken.length === 3);
  expect(slow.taken).toEqual([]);
  isAway = false;
  await until(() => slow.taken.length === 3);
  expect(await program.end('SIGTERM')).toBe(0);
  expect(quick.taken.map(({ id }) => id)).toEqual(slow.taken.map(({ id }) => id));
  expect(new Set((await readdir(folder)).filter((name) => name.endsWith('.cursor'))).size).toBe(2);
});

it('goes on after a receiver that answers at length', async () => {
  await using receiver = await startReceiver(() => 200, {}, 'taken '.repeat(100_000));
  for (const amount of ['5.60', '5.70', '5.80']) await credit(amount);
  await using _program = start('--to', receiver.url);
  await until(() => receiver.taken.length === 3);
});

it('leaves a receiver alone for as long as it asks', async () => {
  await using receiver = await startReceiver(() => 429, { 'retry-after': '600' });
  await credit('5.50');
  await using program = start('--to', receiver.url, '--schedule', '1s');
  await program.says(/was not taken: the receiver answered 429/);
  const [{ letters }] = await status();
  expect(Date.parse(letters[0].nextAt) - Date.parse(letters[0].lastAt)).toBe(600_000);
});

it('keeps its place after events of other types, which the log may let go of', async () => {
  await using receiver = await startReceiver(() => 200);
  await using program = start('--to', receiver.url, '--types', 'CEP');
  await program.says(/Forwarding events of/);
  for (const amount of ['9.00', '9.01']) await credit(amount);
  const head = (await gateway.query('{ eventCursor }')).data.eventCursor;
  await until(async () => (await status())[0].cursor === head);
  expect(receiver.taken).toEqual([]);
  expect(await program.end('SIGTERM')).toBe(0);
});

it('ends with 1 where it could not forward to one of several receivers', async () => {
  await using receiver = await startReceiver(() => 200);
  const lost = pathToFileURL(join(folder, 'lost')).href;
  await writeFile(stateFileOf(folder, receiverId(lost)), 'no-cursor-of-this-log');
  await using program = start('--to', receiver.url, '--to', lost);
  await program.says(/CURSOR_INVALID/);
  await credit('9.50');
  await until(() => receiver.taken.length === 1);
  expect(await program.end('SIGTERM')).toBe(1);
});

it('opens a file anew that could not be written', { skip: !existsSync('/dev/full') }, async () => {
  const { take, close } = createDayFiles(folder);
  const file = join(folder, 'events-2026-11-22.jsonl');
  const event = { id: 'one', type: 'CEP', cursor: 'c', receivedAt: '2026-11-22T10:00:00.000Z' };
  await symlink('/dev/full', file);
  expect(await take(event)).toMatchObject({ isAway: true });
  // There is room again.
  await rm(file);
  expect(await take(event)).toBeUndefined();
  expect(await readFile(file, 'utf8')).toBe(`${JSON.stringify(event)}\n`);
  await close();
});

/** How often this process has a file open; 0 where the operating system does not tell. */
async function openFilesOf(path: string): Promise<number> {
  const links = (await readdir('/proc/self/fd').catch(() => [])).map((name) =>
    readlink(`/proc/self/fd/${name}`).catch(() => ''),
  );
  return (await Promise.all(links)).filter((link) => link === path).length;
}

it('names a file whose last line is no event, does not keep it open, and goes on in it once that line is out', async () => {
  const { take, close } = createDayFiles(folder);
  const file = join(folder, 'events-2026-11-22.jsonl');
  const event = { id: 'one', type: 'CEP', cursor: 'c', receivedAt: '2026-11-22T10:00:00.000Z' };
  for (const line of ['', 'a note', 'null']) {
    await writeFile(file, `${line}\n`);
    const text = `the last line of ${file} is no event: take it out, or move the file away`;
    expect(await take(event)).toEqual({ text, isAway: true });
  }
  expect(await openFilesOf(file)).toBe(0);
  await writeFile(file, '');
  expect(await take(event)).toBeUndefined();
  expect(await readFile(file, 'utf8')).toBe(`${JSON.stringify(event)}\n`);
  await close();
});

/** Notes in which order this process writes and syncs files. */
async function noteDisk() {
  await using file = await open(join(folder, 'any'), 'w');
  const handle: typeof file = Object.getPrototypeOf(file);
  const order: string[] = [];
  const { appendFile: append, datasync } = handle;
  vi.spyOn(handle, 'appendFile').mockImplementation(function (this: typeof file, ...args) {
    order.push('write');
    return append.apply(this, args);
  });
  const sync = vi.spyOn(handle, 'datasync').mockImplementation(function (this: typeof file) {
    order.push('sync');
    return datasync.apply(this);
  });
  onTestFinished(() => void vi.restoreAllMocks());
  return { order, sync };
}

it('writes an event anew that the disk did not take, and takes none for taken before the disk has it', async () => {
  const { take, close } = createDayFiles(folder);
  const [first, second] = ['one', 'two'].map((id) => ({
    ...{ id, type: 'CEP', cursor: `of ${id}`, receivedAt: '2026-11-22T10:00:00.000Z' },
  }));
  if (first === undefined || second === undefined) throw new Error('two events');
  expect(await take(first)).toBeUndefined();
  const { order, sync } = await noteDisk();
  // As a disk without room on NFS: the line is whole, and only the sync tells. Linux then takes its pages for written.
  sync.mockRejectedValueOnce(new Error('ENOSPC: no space left on device, fdatasync'));
  expect(await take(second)).toMatchObject({ isAway: true });
  order.length = 0;
  expect(await take(second)).toBeUndefined();
  expect(order.slice(order.indexOf('write'))).toEqual(['write', 'sync']);
  const lines = [first, second].map((event) => `${JSON.stringify(event)}\n`).join('');
  const file = join(folder, 'events-2026-11-22.jsonl');
  expect(await readFile(file, 'utf8')).toBe(lines);
  await close();
  // A command that was killed between the writing and the sync.
  order.length = 0;
  const again = createDayFiles(folder);
  expect(await again.take(second)).toBeUndefined();
  expect(order).toEqual(['sync']);
  expect(await readFile(file, 'utf8')).toBe(lines);
  await again.close();
});

it('writes two events of one id that follow each other, and none of them again after a start', async () => {
  const events = ['PENDING', 'COMPLETED'].map((status) => ({
    ...{ id: 'one', type: 'CEP', cursor: `of ${status}`, receivedAt: '2026-11-22T10:00:00.000Z' },
    status,
  }));
  for (const sent of [events, events.slice(-1)]) {
    const { take, close } = createDayFiles(folder);
    for (const event of sent) expect(await take(event)).toBeUndefined();
    await close();
  }
  const written = await readFile(join(folder, 'events-2026-11-22.jsonl'), 'utf8');
  expect(written).toBe(events.map((event) => `${JSON.stringify(event)}\n`).join(''));
});

it('shows what an earlier command was trying as a dead letter, where another place is begun at', async () => {
  let answer = 500;
  await using receiver = await startReceiver(() => answer);
  await credit('3.10');
  const first = start('--to', receiver.url);
  await until(async () => (await status())[0]?.letters.length === 1);
  await first.end('SIGKILL');
  await rm(stateFileOf(folder, receiverId(receiver.url)), { force: true });
  cursor = (await gateway.query('{ eventCursor }')).data.eventCursor;
  await credit('3.20');
  answer = 200;
  await using _again = start('--to', receiver.url);
  await until(() => receiver.taken.length === 1);
  expect((await status())[0].letters).toMatchObject([{ isDead: true, nextAt: null }]);
  await operator('retry', receiver.url);
  await credit('3.30');
  await until(() => receiver.taken.length === 3);
  expect(receiver.taken.map(({ amount }) => amount.amount)).toEqual(['3.20', '3.10', '3.30']);
});

it('shows since when no token can be had and for which receiver it has ended, until it has read the log again', async () => {
  await using receiver = await startReceiver(() => 200);
  const tokenFile = join(folder, 'token');
  const { PASARELA_TOKEN: token, ...rest } = environment();
  const run = (...args: string[]) =>
    startProgram('src/cli/pasarela.ts', { ...rest, PASARELA_TOKEN_FILE: tokenFile }, [
      ...['events', 'forward', '--to', receiver.url],
      ...args,
    ]);
  const trouble = async () => (await status())[0]?.trouble;
  const program = run();
  await program.says(/Trying again/);
  await until(async () => (await trouble()) != null);
  const { since, ...told } = await trouble();
  expect(told).toEqual({ problem: expect.stringContaining('PASARELA_TOKEN_FILE'), hasEnded: false });
  expect(Math.abs(Date.parse(since) - Date.now())).toBeLessThan(60_000);
  expect((await operator('status')).stdout).toContain(`tries since ${since}: PASARELA_TOKEN_FILE`);

  await writeFile(tokenFile, token);
  await until(async () => (await trouble()) === null);
  await program.end('SIGTERM');

  await rm(stateFileOf(folder, receiverId(receiver.url)));
  const lost = run('--from', 'no-cursor');
  await lost.says(/CURSOR_INVALID/);
  await until(() => lost.process.exitCode !== null);
  expect(await trouble()).toMatchObject({
    problem: expect.stringContaining('CURSOR_INVALID'),
    hasEnded: true,
  });
  await using _again = run('--from', 'oldest');
  await until(async () => (await trouble()) === null);
});

it('writes a file for each day, each event once, whatever is killed and cut short', async () => {
  const days = join(folder, 'days');
  const to = pathToFileURL(days).href;
  const lines = async () => {
    const names = await readdir(days).catch(() => []);
    const texts = await Promise.all(names.map((name) => readFile(join(days, name), 'utf8')));
    return texts.flatMap((text) =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    );
  };
  const amounts: string[] = [];
  for (const round of [1, 2, 3]) {
    for (const cents of ['01', '02', '03']) {
      amounts.push(`${round}.${cents}`);
      await credit(`${round}.${cents}`);
    }
    const program = start('--to', to);
    await until(async () => (await lines()).length >= amounts.length);
    await program.end('SIGKILL');
    for (const name of await readdir(days)) {
      expect(name).toMatch(/^events-\d{4}-\d\d-\d\d\.jsonl$/);
      expect((await stat(join(days, name))).mode & 0o077).toBe(0);
      await appendFile(join(days, name), '{"id":"a line that a crash has cut sh');
    }
  }
  const program = start('--to', to);
  await credit('9.99');
  await until(async () => (await lines()).length > amounts.length);
  await program.end('SIGTERM');
  expect((await lines()).map(({ amount }) => amount.amount)).toEqual([...amounts, '9.99']);
});

it('says in one sentence that a full disk takes no wish for another attempt', async () => {
  const to = 'http://127.0.0.1:9/hook';
  const path = lettersFileOf(folder, receiverId(to));
  const letters = new Letters(path, to);
  const event = { id: 'one', type: 'CEP', cursor: 'c', receivedAt: '2026-11-22T10:00:00.000Z' };
  const times = { firstAt: 1, lastAt: 1, nextAt: null };
  letters.put({ event, attempts: 1, refusals: 1, ...times, problem: 'refused', isDead: true });
  letters.close();
  {
    using database = new DatabaseSync(path);
    database.exec(`CREATE TRIGGER full BEFORE UPDATE ON attempts
      BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`);
  }
  expect(await operator('retry', to)).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^The file of the attempts, .*\.sqlite, cannot be used: .* is full\.\n$/),
  });
});

it('refuses a schedule, a folder or a place that it does not understand', async () => {
  for (const args of [
    ['--to', 'http://127.0.0.1:9', '--schedule', 'soon'],
    ['--to', 'file://elsewhere/folder'],
    ['--to', 'http://ana:secret@127.0.0.1:9'],
    ['--to', 'http://127.0.0.1:9', '--to', 'http://127.0.0.1:8', '--state', 'one.cursor'],
    ['retry'],
  ]) {
    expect(await operator(...args), args.join(' ')).toMatchObject({ code: 2 });
  }
});
