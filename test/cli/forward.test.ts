import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CursorFile } from '../../src/cli/cursor-file.ts';
import { lettersFileOf, stateFileOf } from '../../src/cli/forward/forward.ts';
import { receiverId } from '../../src/cli/forward/receivers.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { type Program, startProgram } from '../helpers/program.ts';
import { until } from '../helpers/until.ts';
import { SECRET, startReceiver } from './receiver.ts';
import { pasarela } from './run.ts';

const KILLS = 24;
const EVENTS = 80;

let gateway: RunningGateway;
let folder: string;
let clabe: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-forward-'));
  gateway = await startGateway({ config: { eventsRetention: EVENTS + 20 } });
  clabe = (await control(gateway.sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

const environment = () => ({
  PORT: new URL(gateway.url).port,
  PASARELA_TOKEN: gateway.sandbox.accessToken,
  FORWARD_SECRET: SECRET,
  DATA_DIR: folder,
});
const credit = (amount: string) =>
  control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
const start = (to: string, ...args: string[]): Program =>
  startProgram('src/cli/pasarela.ts', environment(), ['events', 'forward', '--to', to, ...args]);

it('loses nothing, and repeats at most one event for each time that it is killed', async () => {
  const { data } = await gateway.query('{ eventCursor }');
  for (let sent = 0; sent < EVENTS; sent += 1) await credit(`${sent + 1}.00`);
  let program: Program | undefined;
  let kills = 0;
  let next = 1 + Math.floor(Math.random() * 3);
  let seen = 0;
  await using receiver = await startReceiver(async () => {
    seen += 1;
    if (seen % 11 === 5) return 503;
    if (kills === KILLS || seen < next) return 204;
    next = seen + 1 + Math.floor(Math.random() * 3);
    kills += 1;
    const killed = program;
    if (Math.random() < 0.5) await killed?.end('SIGKILL');
    else setTimeout(() => killed?.process.kill('SIGKILL'), Math.random() * 5);
    return 204;
  });
  const isWhole = () => new Set(receiver.taken.map(({ id }) => id)).size === EVENTS;
  while (!isWhole()) {
    program = start(receiver.url, '--from', data.eventCursor);
    const { process } = program;
    await until(() => isWhole() || process.exitCode !== null || process.signalCode !== null);
  }
  await program?.end('SIGTERM');

  expect(kills).toBe(KILLS);
  expect(receiver.unsigned).toEqual([]);
  const firsts = receiver.taken.filter(
    ({ id }, index) => receiver.taken.findIndex((other) => other.id === id) === index,
  );
  expect(firsts.map(({ amount }) => Number(amount.amount))).toEqual(
    Array.from({ length: EVENTS }, (_, index) => index + 1),
  );
  expect(receiver.taken.length - EVENTS).toBeLessThanOrEqual(KILLS);
});

it('begins with what comes from now on, goes on when the receiver is back, and stops when told', async () => {
  let isAway = true;
  await using receiver = await startReceiver(() => (isAway ? 500 : 200));
  const program = start(receiver.url, '--types', 'MONEY_IN');
  await program.says(/Forwarding events of/);
  await credit('7.50');
  await program.says(/was not taken: the receiver answered 500/);
  isAway = false;
  await until(() => receiver.taken.length === 1);
  expect(receiver.taken[0]).toMatchObject({
    __typename: 'MoneyInEvent',
    amount: { amount: '7.50', currency: 'MXN' },
  });
  expect(await program.end('SIGTERM')).toBe(0);
});

it('ends for a receiver whose attempts cannot be kept with a sentence, and goes on for another', async () => {
  await using broken = await startReceiver(() => 200);
  await using whole = await startReceiver(() => 200);
  await writeFile(lettersFileOf(folder, receiverId(broken.url)), 'no database at all '.repeat(100));
  const program = start(broken.url, '--to', whole.url);
  await program.says(/The file of the attempts, .*, cannot be used: file is not a database\./);
  await program.says(/Forwarding events of/);
  await credit('6.50');
  await until(() => whole.taken.length === 1);
  expect(broken.taken).toEqual([]);
  expect(await program.end('SIGTERM')).toBe(1);
});

it('begins where it began before, though it was killed ere the first event', async () => {
  await using receiver = await startReceiver(() => 200);
  const first = start(receiver.url);
  await first.says(/Forwarding events of/);
  await first.end('SIGKILL');
  await credit('8.50');
  await using again = start(receiver.url);
  await again.says(/Forwarding events of/);
  await until(() => receiver.taken.length === 1);
  expect(receiver.taken).toMatchObject([{ amount: { amount: '8.50' } }]);
});

it('names the places of other receivers where one is new, as its address may be what has changed', async () => {
  await using receiver = await startReceiver(() => 200);
  const [former, changed] = [`${receiver.url}?key=1`, `${receiver.url}?key=2`];
  const before = start(former);
  await before.says(/Forwarding events of/);
  await before.end('SIGTERM');
  await credit('9.50');
  const fresh = start(changed);
  await fresh.says(/Forwarding events of/);
  await fresh.end('SIGTERM');
  const [place, files] = [stateFileOf(folder, receiverId(changed)), stateFileOf(folder, receiverId(former))];
  const [, named = '', to] = /move the file of that address \((.*)\) to (\S+),/.exec(fresh.output()) ?? [];
  expect(named.split(', ')).toContain(files);
  expect(to).toBe(place);
  expect(receiver.taken).toEqual([]);
  await rename(files, place);
  const again = start(changed);
  await until(() => receiver.taken.length === 1);
  expect(receiver.taken).toMatchObject([{ amount: { amount: '9.50' } }]);
  await again.end('SIGTERM');
  expect(again.output()).not.toContain('is new');
});

it('ends with EVENTS_GAP, and says how to start again, where the log no longer holds what follows', async () => {
  await using small = await startGateway({ config: { eventsRetention: 3 } });
  const { accounts } = await control(small.sandbox, 'GET', '/sandbox');
  const { data } = await small.query('{ eventCursor }');
  for (let sent = 0; sent < 5; sent += 1) {
    await control(small.sandbox, 'POST', '/sandbox/spei-credits', {
      clabe: accounts[0].clabe,
      amount: '1.00',
    });
  }
  await using receiver = await startReceiver(() => 200);
  const told = {
    ...environment(),
    PORT: new URL(small.url).port,
    PASARELA_TOKEN: small.sandbox.accessToken,
  };
  const forwarded = (...args: string[]) =>
    pasarela(['events', 'forward', '--to', receiver.url, ...args], told);
  const { code, stderr } = await forwarded('--from', data.eventCursor);
  expect(code).toBe(1);
  expect(stderr).toMatch(/EVENTS_GAP.*Start again with --from \S+ .*Delete .*\.cursor first/s);
  expect(receiver.taken).toEqual([]);
});

it('begins at the oldest event, keeps that place before the first is taken, and tells what is trimmed meanwhile', async () => {
  await using small = await startGateway({ config: { eventsRetention: 3 } });
  const { accounts } = await control(small.sandbox, 'GET', '/sandbox');
  const pay = async (...amounts: string[]) => {
    for (const amount of amounts)
      await control(small.sandbox, 'POST', '/sandbox/spei-credits', { clabe: accounts[0].clabe, amount });
  };
  let answer = 500;
  await using receiver = await startReceiver(() => answer);
  const told = { ...environment(), PORT: new URL(small.url).port, PASARELA_TOKEN: small.sandbox.accessToken };
  const run = (...args: string[]) =>
    startProgram('src/cli/pasarela.ts', told, ['events', 'forward', '--to', receiver.url, ...args]);
  const amounts = () => receiver.taken.map(({ amount }) => amount.amount);

  const empty = run('--from', 'oldest');
  await empty.says(/Forwarding events of/);
  await until(
    () => new CursorFile(stateFileOf(folder, receiverId(receiver.url))).cursor?.length !== undefined,
  );
  await empty.end('SIGTERM');
  await rm(stateFileOf(folder, receiverId(receiver.url)));

  await pay('1.01', '1.02');
  const refused = run('--from', 'oldest');
  await refused.says(/was not taken/);
  await refused.end('SIGKILL');
  answer = 200;
  const again = run();
  await until(() => receiver.taken.length === 2);
  expect(amounts()).toEqual(['1.01', '1.02']);
  await again.end('SIGTERM');

  answer = 500;
  await rm(stateFileOf(folder, receiverId(receiver.url)));
  const held = run('--from', 'oldest');
  await held.says(/was not taken/);
  await held.end('SIGKILL');
  await pay('1.03', '1.04', '1.05', '1.06', '1.07');
  const ended = run();
  await ended.says(/EVENTS_GAP.*Start again with --from/s);
  await until(() => ended.process.exitCode !== null);
  expect(ended.process.exitCode).toBe(1);

  answer = 200;
  await rm(stateFileOf(folder, receiverId(receiver.url)));
  const fresh = run('--from', 'oldest');
  await until(() => receiver.taken.length === 5);
  expect(amounts().slice(2)).toEqual(['1.05', '1.06', '1.07']);
  await fresh.end('SIGTERM');
});

it('says what it misses before it posts anything', async () => {
  const run = (args: string[], changes: object = {}) =>
    pasarela(['events', 'forward', ...args], { ...environment(), ...changes });
  expect(await run([])).toMatchObject({ code: 2, stderr: expect.stringContaining('--to') });
  expect(await run(['--to', 'ftp://example.mx'])).toMatchObject({ code: 2 });
  const unsigned = await run(['--to', 'http://127.0.0.1:9'], { FORWARD_SECRET: '' });
  expect(unsigned).toMatchObject({ code: 1, stderr: expect.stringContaining('FORWARD_SECRET is not set') });
  const empty = join(folder, 'empty.cursor');
  await writeFile(empty, '');
  const lost = await run(['--to', 'http://127.0.0.1:9', '--state', empty]);
  expect(lost).toMatchObject({ code: 1, stderr: expect.stringContaining('holds no cursor') });
  const stranger = await run(['--to', 'http://127.0.0.1:9'], { PASARELA_TOKEN: 'nonsense' });
  expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining('UNAUTHENTICATED') });
});
