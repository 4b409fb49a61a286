import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { Secret } from '../../src/common/secret.ts';
import { epochOf } from '../../src/events/cursor.ts';
import { SEAL_KEY_BYTES, sealCursor } from '../../src/events/seal.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { startNetwork } from '../client/network.ts';
import { programOf } from '../helpers/entry.ts';
import { readMetric } from '../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { json, startUpstream } from '../helpers/http-stub.ts';
import { SECRET } from '../helpers/ingress.ts';
import { folder } from '../helpers/packages.ts';
import { startProgram } from '../helpers/program.ts';
import { freePort } from '../helpers/restartable.ts';
import { until } from '../helpers/until.ts';
import { pasarela } from './run.ts';

let gateway: RunningGateway;
let environment: Record<string, string>;
let clabe: string;

beforeAll(async () => {
  gateway = await startGateway({ config: { eventsRetention: 3 } });
  environment = { PORT: new URL(gateway.url).port, PASARELA_TOKEN: gateway.sandbox.accessToken };
  clabe = (await control(gateway.sandbox, 'GET', '/sandbox')).accounts[0].clabe;
});
afterAll(() => gateway.stop());

const credit = (amount: string) =>
  control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount, payerName: 'Ana Torres' });
const events = (...args: string[]) => pasarela(['events', ...args], environment);
interface Printed {
  readonly amount: { readonly amount: string };
  readonly cursor: string;
  readonly receivedAt: string;
  readonly registeredAt: string;
  readonly transactionDate: string;
  readonly transactionId: string;
  readonly trackingKey: string;
}
const printed = (text: string): Printed[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

describe('pasarela events', () => {
  it('replays what the log holds, since a cursor too, and says how far', async () => {
    await credit('1.00');
    await credit('2.00');
    const { stdout, stderr, code } = await events('replay', '--json');
    expect(code).toBe(0);
    const [first, second] = printed(stdout);
    expect(first?.amount.amount).toBe('1.00');
    // How late a credit came, and where it was: its moment of registration beside that of its arrival.
    for (const moment of [first?.transactionDate, first?.registeredAt])
      expect(moment).toMatch(/^\d{4}-\d\d-\d\dT/);
    expect(stderr).toContain(`2 events, up to ${second?.cursor}`);
    const since = await events('replay', '--json', '--after', first?.cursor ?? '');
    expect(printed(since.stdout)).toEqual([second]);
    expect((await events('replay', '--types', 'CEP')).stdout).toBe('');
    const none = await events('replay', '--after', second?.cursor ?? '');
    expect([none.stdout, none.stderr]).toEqual(['', `0 events, up to ${second?.cursor}.\n`]);
  });

  it('shows the transaction of a credit, and no name and no account', async () => {
    const { stdout } = await events('replay');
    const [first] = printed((await events('replay', '--json')).stdout);
    expect(stdout).toMatch(
      new RegExp(
        `MONEY_IN +1\\.00 MXN SPEI_CREDIT ACCEPTED +\\S+ +${first?.transactionId} +${first?.cursor}$`,
        'm',
      ),
    );
    for (const personal of ['Ana Torres', clabe]) expect(stdout).not.toContain(personal);
  });

  it('colours the type of an event on a terminal, and nothing else', async () => {
    // A terminal's own word for it, where a test has none.
    const onTerminal = (...args: string[]) =>
      pasarela(['events', 'replay', ...args], { ...environment, FORCE_COLOR: '1' });
    expect((await onTerminal()).stdout).toContain('\u001b[32mMONEY_IN\u001b[39m');
    for (const { stdout } of [await onTerminal('--json'), await events('replay')])
      expect(stdout).not.toContain('\u001b');
  });

  it('follows the log until it is ended', async () => {
    await using program = startProgram('src/cli/pasarela.ts', environment, ['events', 'tail', '--json']);
    await program.says(/Following http/);
    await credit('3.00');
    await program.says(/"amount":"3.00"/);
    expect(program.output()).not.toContain('"amount":"2.00"');
    expect(await program.end('SIGINT')).toBe(0);
    await using other = startProgram('src/cli/pasarela.ts', environment, ['events', 'tail']);
    await other.says(/Following http/);
    // A terminal that is closed.
    expect(await other.end('SIGHUP')).toBe(0);
  });

  it('says why no stream comes about, as behind a proxy that passes no upgrade on', async () => {
    await using cleanup = new AsyncDisposableStack();
    const server = createServer((_, response) => void response.end('{"data":{"eventCursor":"c"}}'));
    cleanup.defer(() => void server.close());
    server.on('upgrade', (_, socket) => {
      socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const own = { ...environment, PORT: String(port) };
    const program = cleanup.use(startProgram('src/cli/pasarela.ts', own, ['events', 'tail']));
    await program.says(/The WebSocket cannot be opened: .* 400\. Trying again\./);
  });

  it('searches by time, transaction and tracking key, and replays by them too', async () => {
    const all = printed((await events('replay', '--json')).stdout);
    const [first, second] = all;
    const own = (args: string[]) => events('search', '--json', ...args);
    for (const filter of [
      ['--transaction', second?.transactionId ?? ''],
      ['--tracking-key', second?.trackingKey ?? ''],
    ]) {
      const found = await own(filter);
      expect(printed(found.stdout)).toEqual([second]);
      expect(found.stderr).toContain(`1 event. The log reaches back to ${first?.receivedAt}. It began at `);
      expect(printed((await events('replay', '--json', ...filter)).stdout)).toEqual([second]);
    }
    expect(printed((await own(['--from', first?.receivedAt ?? '', '--types', 'MONEY_IN'])).stdout)).toEqual(
      all,
    );
    expect(printed((await own(['--from', first?.receivedAt ?? '', '--types', 'CEP'])).stdout)).toEqual([]);
    expect(printed((await own(['--to', first?.receivedAt ?? ''])).stdout)).toEqual([]);
    expect(printed((await own(['--from', '2000-01-01', '--to', '2000-01-02'])).stdout)).toEqual([]);
    const unknown = await own(['--tracking-key', 'nobody']);
    expect(unknown).toMatchObject({ code: 0, stdout: '' });
    const [account, other] = (await control(gateway.sandbox, 'GET', '/sandbox')).accounts;
    const credits = await own(['--account', account.id]);
    expect(printed(credits.stdout)).toEqual(all);
    expect(credits.stderr).toContain(
      `Account ${account.id}: CLABE ${clabe}, instrument ${account.instrumentId}.`,
    );
    expect(await own(['--account', other.id])).toMatchObject({ code: 0, stdout: '' });
    expect(await own(['--account', '0b7c2f5e-8d1a-4c43-9a36-5e2f1d7c9b10'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no account'),
    });
    expect(await events('search')).toMatchObject({ code: 2, stderr: expect.stringContaining('--from') });
    for (const time of ['Tuesday', '2026-11-17T09:30:00']) {
      expect(await own(['--from', time])).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('wants a day'),
      });
    }
    expect(await own(['--from', '2026-02-30T00:00:00Z'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('receivedFrom'),
    });
  });

  it('says when the log began and which it is, as its cursors do, which a sealed one does not', async () => {
    const [first] = printed((await events('replay', '--json')).stdout);
    const [, epoch = ''] = Buffer.from(first?.cursor ?? '', 'base64url')
      .toString()
      .split('|');
    const { stderr } = await events('search', '--from', '2000-01-01');
    const [, began = ''] = /It began at (\S+) \(epoch (\w+)\)\.$/m.exec(stderr) ?? [];
    expect(stderr).toContain(`(epoch ${epoch}).`);
    expect(Date.parse(began)).toBeLessThanOrEqual(Date.parse(first?.receivedAt ?? ''));
    expect(began).toBe(new Date(Number.parseInt(epoch.slice(0, 9), 36)).toISOString());
    expect(epochOf(first?.cursor ?? '')).toBe(epoch);
    const holder = { key: Buffer.alloc(SEAL_KEY_BYTES), clientId: gateway.sandbox.clientId, customerId: 'c' };
    expect(epochOf(sealCursor(holder, first?.cursor ?? '', 'stable'))).toBeUndefined();
  });

  it('says from where to start again when events are missing', async () => {
    const [oldest] = printed((await events('replay', '--json')).stdout);
    for (const amount of ['4.00', '5.00', '6.00']) await credit(amount);
    for (const verb of ['replay', 'tail']) {
      const { stderr, code } = await events(verb, '--after', oldest?.cursor ?? '');
      expect(stderr).toContain('EVENTS_GAP');
      expect(stderr).not.toMatch(/^ +at /m);
      const [, again = ''] = /--after (\S+)/.exec(stderr) ?? [];
      expect(printed((await events('replay', '--json', '--after', again)).stdout)).toHaveLength(3);
      expect(code).toBe(1);
    }
  });

  it('of types that seldom come keeps its place by bookmarks, and meets no gap where nothing of them is missing', async () => {
    await using network = await startNetwork();
    network.route(Number(new URL(gateway.url).port));
    const own = ['events', 'tail', '--types', 'STATUS_UPDATE', '--url', network.graphql];
    await using program = startProgram('src/cli/pasarela.ts', environment, own);
    await program.says(/Following http/);
    const places = () => [...program.output().matchAll(/(?:Following \S+|going on) after ([\w-]+)/g)];
    const comeBack = async () => {
      await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === 1);
      const before = places().length;
      network.cut();
      await until(() => places().length > before);
      return places().at(-1)?.[1];
    };
    for (const amounts of [['7.00'], ['8.00', '9.00', '10.00']]) {
      for (const amount of amounts) await credit(amount);
      const newest = printed((await events('replay', '--json')).stdout).at(-1);
      // The bookmark may come after it was cut off: then it is there the next time.
      await until(async () => (await comeBack()) === newest?.cursor);
    }
    await fetch(gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '', {
      method: 'POST',
      body: '{}',
    });
    await program.says(/STATUS_UPDATE {2}/);
    expect(program.output()).not.toContain('EVENTS_GAP');
    expect(await program.end('SIGINT')).toBe(0);
  });

  it('says so when no gateway answers, or the token is not accepted', async () => {
    const away = await events('tail', '--url', 'http://127.0.0.1:9/graphql');
    expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining('No gateway answers') });
    for (const url of ['localhost:4000/graphql', 'ws://127.0.0.1:9/graphql', 'http://u:hunter2@127.0.0.1:9/'])
      expect(await events('replay', '--url', url)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(
          /^(?!.*hunter2).*--url got .*, wants the http or https address of a graph/s,
        ),
      });
    const stranger = await pasarela(['events', 'replay'], { ...environment, PASARELA_TOKEN: 'nonsense' });
    expect(stranger).toMatchObject({ code: 1, stderr: expect.stringContaining('UNAUTHENTICATED') });
    const nobody = await pasarela(['events', 'tail'], { PORT: environment['PORT'] ?? '' });
    expect(nobody).toMatchObject({ code: 1, stderr: expect.stringContaining('PASARELA_TOKEN') });
  });
});

it('a stream that is ended before its reader has taken all of it leaves whole lines alone', async () => {
  const event = (count: number) => ({
    ...{ id: `e${count}`, type: 'CEP', cursor: `c${count}`, receivedAt: '2026-11-17T09:30:00.000Z' },
    bodyId: 'x'.repeat(900),
  });
  await using cleanup = new AsyncDisposableStack();
  const server = createServer((request, response) => {
    request.resume();
    json(response, { data: { eventCursor: 'c0' } });
  });
  const sockets = new WebSocketServer({ server, handleProtocols: () => 'graphql-transport-ws' });
  cleanup.defer(() => {
    for (const connection of sockets.clients) connection.terminate();
    server.close();
  });
  const heard = Promise.withResolvers<void>();
  sockets.on('connection', (connection) => {
    connection.on('message', (data) => {
      const { type, id } = JSON.parse(String(data));
      if (type === 'connection_init') connection.send('{"type":"connection_ack"}');
      // It comes once the command has all that was sent before the ping.
      if (type === 'pong') heard.resolve();
      if (type !== 'subscribe') return;
      for (let count = 1; count <= 1_000; count += 1)
        connection.send(JSON.stringify({ type: 'next', id, payload: { data: { events: event(count) } } }));
      connection.send('{"type":"ping"}');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const [program = '', ...first] = programOf('src/cli/pasarela.ts');
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [folder(program), ...first, 'events', 'tail', '--json'], {
    env: { PATH, ...environment, PORT: String((server.address() as AddressInfo).port) },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  cleanup.defer(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  await heard.promise;
  child.kill('SIGTERM');
  const lines = (await text(child.stdout)).split('\n');
  expect(lines.pop()).toBe('');
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.map((line) => JSON.parse(line).cursor)).toEqual(lines.map((_, index) => `c${index + 1}`));
  expect((await ended)[0]).toBe(0);
});

it('a replay and a search go on behind a page without an event, where the gateway says that more may follow', async () => {
  const event = { id: 'e1', type: 'CEP', cursor: 'c3', receivedAt: '2026-11-17T09:30:00.000Z' };
  for (const verb of [['replay'], ['search', '--tracking-key', 'key']]) {
    const asked: (string | null)[] = [];
    await using graph = await startUpstream(async (request, response) => {
      const { variables } = JSON.parse(await text(request));
      asked.push(variables.after);
      if (asked.length > 2) {
        json(response, { errors: [{ message: 'asked for a page again' }] });
        return;
      }
      const isFirst = variables.after === null;
      const pageInfo = { hasNextPage: isFirst, endCursor: isFirst ? 'c2' : 'c3' };
      const page = { nodes: isFirst ? [] : [event], pageInfo, reachesBackTo: null };
      json(response, { data: { eventCursor: null, events: page } });
    });
    const { stdout, code } = await events(...verb, '--json', '--url', graph.url);
    expect({ asked, told: printed(stdout), code }).toEqual({ asked: [null, 'c2'], told: [event], code: 0 });
  }
});

it('goes on where it was after the gateway has been away', async () => {
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 7 });
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-events-'));
  const arrives = async (amount: string) => {
    const { accounts } = await control(sandbox, 'GET', '/sandbox');
    await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe: accounts[0].clabe, amount });
  };
  const webhookSecrets = [new Secret(SECRET)] as const;
  // Nobody else is given it between the two.
  const own = await freePort();
  const before = await startGateway({ sandbox, config: { dataDir, webhookSecrets, port: own } });
  const { port } = new URL(before.url);
  const told = { PORT: port, PASARELA_TOKEN: sandbox.accessToken };
  await using program = startProgram('src/cli/pasarela.ts', told, ['events', 'tail']);
  await program.says(/Following http/);
  await arrives('1.00');
  await program.says(/ 1\.00 MXN/);
  await before.stop();
  // The same address, so that the webhook of the first one leads to the second.
  await using _after = await startGateway({
    sandbox,
    webhooks: false,
    config: { dataDir, port: Number(port), webhookSecrets },
  });
  await arrives('2.00');
  await program.says(/ 2\.00 MXN/);
  expect(program.output().match(/ 1\.00 MXN/g)).toHaveLength(1);
  await using ofOneType = startProgram('src/cli/pasarela.ts', told, [
    ...['events', 'tail', '--types', 'STATUS_UPDATE'],
  ]);
  await ofOneType.says(/Following http/);
  await arrives('3.00');
  const address = ingressUrl(`http://127.0.0.1:${port}`, sandbox.clientId, 'STATUS_UPDATE', SECRET);
  await fetch(address, { method: 'POST', body: '{}' });
  await ofOneType.says(/STATUS_UPDATE {2}/);
  expect(ofOneType.output()).not.toContain('MONEY_IN');
  // More than are read at once.
  for (let count = 1; count <= 101; count += 1) await fetch(address, { method: 'POST', body: String(count) });
  const all = await pasarela(['events', 'replay', '--types', 'STATUS_UPDATE', '--json'], told);
  expect(new Set(printed(all.stdout).map(({ cursor }) => cursor)).size).toBe(102);
  expect(all.stderr).toContain('102 events');
  await ofOneType.end('SIGINT');
  await program.end('SIGINT');
  await rm(dataDir, { recursive: true, force: true });
});
