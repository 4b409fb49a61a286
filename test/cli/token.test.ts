import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { readVariables } from '../../src/app/config.ts';
import { query } from '../../src/cli/graph.ts';
import { tokenOf } from '../../src/cli/token.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { startProgram } from '../helpers/program.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { SECRET, startReceiver } from './receiver.ts';
import { pasarela } from './run.ts';

const CLIENT = { id: 'forwarder:1', secret: 'a secret with : and %' };
/** How long each token of the identity provider holds, in seconds. */
const LIFE = 2;

let gateway: RunningGateway;
let clabe: string;
let folder: string;
let provider: Server;
let providerUrl: string;
let issued = 0;
/** For how many seconds the identity provider says that its tokens hold. */
let saidToHold: unknown = LIFE;
let isAway = false;
beforeAll(async () => {
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({ sandbox, config: { service: serviceFor(sandbox) } });
  clabe = (await control(sandbox, 'GET', '/sandbox')).accounts[0].clabe;
  folder = await mkdtemp(join(tmpdir(), 'pasarela-token-'));
  provider = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (isAway) {
      response.writeHead(503).end();
      return;
    }
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    const basic = Buffer.from(
      request.headers.authorization?.slice('Basic '.length) ?? '',
      'base64',
    ).toString();
    const [id, secret] = basic.split(':').map((part) => decodeURIComponent(part.replaceAll('+', ' ')));
    const isKnown = id === CLIENT.id && secret === CLIENT.secret;
    if (!isKnown || form.get('grant_type') !== 'client_credentials') {
      response.writeHead(401).end('{"error":"invalid_client"}');
      return;
    }
    issued += 1;
    const access_token = await shortToken(form.get('scope') ?? '');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ access_token, token_type: 'Bearer', expires_in: saidToHold }));
  });
  await once(provider.listen(0, '127.0.0.1'), 'listening');
  const { port } = provider.address() as AddressInfo; // it listens on a port
  providerUrl = `http://127.0.0.1:${port}/token`;
});
beforeEach(() => {
  saidToHold = LIFE;
});
afterAll(async () => {
  provider.close();
  await gateway.stop();
  await gateway.sandbox.stop();
  await rm(folder, { recursive: true, force: true });
});

const shortToken = (scope: string): Promise<string> =>
  callerToken({ scope, exp: Math.floor(Date.now() / 1_000) + LIFE });
const environment = (changes: Readonly<Record<string, string>>) => ({
  PORT: new URL(gateway.url).port,
  FORWARD_SECRET: SECRET,
  DATA_DIR: folder,
  ...changes,
});
const credentials = () => ({
  PASARELA_TOKEN_URL: providerUrl,
  PASARELA_TOKEN_CLIENT_ID: CLIENT.id,
  PASARELA_TOKEN_CLIENT_SECRET: CLIENT.secret,
  PASARELA_TOKEN_SCOPE: 'events:read',
});

it('forwards on after its tokens have ended, under new ones of the identity provider', async () => {
  await using receiver = await startReceiver(() => 200);
  await using program = startProgram('src/cli/pasarela.ts', environment(credentials()), [
    ...['events', 'forward', '--to', receiver.url],
  ]);
  await program.says(/Forwarding events of/);
  const before = issued;
  for (let round = 1; round <= 3; round += 1) {
    await until(() => issued >= before + round);
    await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: `${round}.00` });
    await until(() => receiver.taken.length === round);
  }
  expect(await program.end('SIGTERM')).toBe(0);
});

it('follows on under another token where one has ended that should hold still', async () => {
  saidToHold = 3_600;
  const before = issued;
  await using program = startProgram('src/cli/pasarela.ts', environment(credentials()), ['events', 'tail']);
  await program.says(/Following http/);
  // The gateway closes the socket when the token ends.
  await program.says(/Connected again/);
  expect(issued).toBeGreaterThan(before + 1);
  await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '77.00' });
  await program.says(/ 77\.00 MXN/);
});

describe('a token of the identity provider', () => {
  const tokenOfProvider = () => tokenOf(readVariables({ ...environment(credentials()) }));

  it('is fetched once for all who ask, until it is about to end', async () => {
    for (saidToHold of [20, 3_600]) {
      const before = issued;
      const token = tokenOfProvider();
      const [first, ...others] = await Promise.all([token.get(), token.get(), token.get()]);
      expect([...others, await token.get()]).toEqual([first, first, first]);
      expect(issued).toBe(before + 1);
    }
  });

  it('is taken with a time that is a text, and with none that can be read', async () => {
    for (saidToHold of ['3600', null, 'soon']) {
      const before = issued;
      const token = tokenOfProvider();
      expect([await token.get(), await token.get()]).toEqual([
        expect.stringMatching(/^ey/),
        expect.any(String),
      ]);
      expect(issued).toBe(before + 1);
    }
  });

  it('is taken from the address that was named alone, not from one that this leads to', async () => {
    const asked: (string | undefined)[] = [];
    const elsewhere = createServer((request, response) => {
      asked.push(request.headers.authorization);
      response.end('{"access_token":"of another","expires_in":60}');
    });
    const moved = createServer((_request, response) => {
      const { port } = elsewhere.address() as AddressInfo;
      response.writeHead(307, { location: `http://127.0.0.1:${port}/token` }).end();
    });
    await using cleanup = new AsyncDisposableStack();
    for (const server of [elsewhere, moved]) {
      await once(server.listen(0, '127.0.0.1'), 'listening');
      cleanup.defer(async () => void server.close());
    }
    const url = `http://127.0.0.1:${(moved.address() as AddressInfo).port}/token`;
    const variables = { ...environment(credentials()), PASARELA_TOKEN_URL: url };
    await expect(tokenOf(readVariables(variables)).get()).rejects.toThrow(
      'PASARELA_TOKEN_URL does not answer',
    );
    expect(asked).toEqual([]);
  });

  it('is fetched again where the gateway refuses it', async () => {
    saidToHold = 3_600;
    const before = issued;
    const graph = { url: `${gateway.url}/graphql`, token: tokenOfProvider() };
    const { exp = 0 } = decodeJwt(await graph.token.get());
    await until(() => Date.now() >= exp * 1_000);
    expect(await query(graph, '{ eventCursor }', {})).toMatchObject({ eventCursor: expect.any(String) });
    expect(issued).toBe(before + 2);
  });

  it('is asked for again after the provider has failed', async () => {
    const token = tokenOfProvider();
    isAway = true;
    await expect(token.get()).rejects.toThrow(/answered 503\.$/);
    isAway = false;
    expect(await token.get()).toMatch(/^ey/);
  });
});

it('says of a text that no header may hold, as with the quotation marks of a text program, that it is no token', async () => {
  for (const text of ['“eyJhbGciOi”', '"eyJhbGciOi"', 'Bearer eyJhbGciOi'])
    expect(() => tokenOf(readVariables({ PASARELA_TOKEN: text }))).toThrow(
      'PASARELA_TOKEN holds no access token',
    );
  const path = join(folder, 'quoted');
  await writeFile(path, '“eyJhbGciOi”');
  await expect(tokenOf(readVariables({ PASARELA_TOKEN_FILE: path })).get()).rejects.toThrow(
    `${path} holds no access token`,
  );
});

it('takes a token from a file that changes, and waits while that holds an old one', async () => {
  const file = join(folder, 'token');
  await writeFile(file, `${await callerToken({ scope: 'events:read', exp: 1_700_000_000 })}\n`);
  await using receiver = await startReceiver(() => 200);
  await using program = startProgram(
    'src/cli/pasarela.ts',
    environment({ PASARELA_TOKEN_FILE: file, DATA_DIR: join(folder, 'of-file') }),
    ['events', 'forward', '--to', receiver.url],
  );
  await program.says(/UNAUTHENTICATED/);
  await writeFile(file, await callerToken({ scope: 'events:read' }));
  await program.says(/Forwarding events of/);
  await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount: '4.00' });
  await until(() => receiver.taken.length === 1);
});

it('keeps what a command prints until it is refused, where it has ended by the clock of this machine', async () => {
  const runs = join(folder, 'runs');
  const ended = await callerToken({ scope: 'events:read', exp: Math.floor(Date.now() / 1_000) - 60 });
  const command = `echo run >> ${runs}; echo ${ended}`;
  const token = tokenOf(readVariables({ ...environment({ PASARELA_TOKEN_COMMAND: command }) }));
  for (let time = 0; time < 3; time += 1) expect(await token.get()).toBe(ended);
  expect(await readFile(runs, 'utf8')).toBe('run\n');
  await token.get(ended);
  expect(await readFile(runs, 'utf8')).toBe('run\nrun\n');
});

it('takes what a command prints, and repeats neither the command nor a secret where that fails', async () => {
  const token = await callerToken({ scope: 'events:read' });
  const replayed = await pasarela(
    ['events', 'replay'],
    environment({ PASARELA_TOKEN_COMMAND: `echo ${token}` }),
  );
  expect(replayed).toMatchObject({ code: 0 });
  const failed = await pasarela(
    ['events', 'replay'],
    environment({ PASARELA_TOKEN_COMMAND: 'echo hidden >&2; exit 7' }),
  );
  expect(failed).toMatchObject({ code: 1, stderr: 'PASARELA_TOKEN_COMMAND ended with 7.\n' });
  const refused = await pasarela(
    ['events', 'replay'],
    environment({ ...credentials(), PASARELA_TOKEN_CLIENT_SECRET: 'another' }),
  );
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('answered 401, and said invalid_client.'),
  });
  const both = await pasarela(['events', 'replay'], environment({ ...credentials(), PASARELA_TOKEN: token }));
  expect(both).toMatchObject({ code: 1, stderr: expect.stringContaining('wants one') });
});
