import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { prepareDataFolder } from '../../src/app/data-folder.ts';
import { ROOT } from '../docs/pages.ts';
import { STARTS_DIST } from '../helpers/entry.ts';
import { sendQuery } from '../helpers/gateway.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';
import { endWithThisProcess, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';

it('one command with no configuration serves the graph on a sandbox, and says where', async () => {
  await using program = startProgram('src/start.js', { PORT: '0', SANDBOX_PORT: '0' });
  const { gateway, sandbox, token } = await demoAddresses(program);
  const response = await fetch(`${gateway}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: '{"query":"{ client { id webhooks { nodes { type status feedsGateway url } } } }"}',
  });
  const { data, extensions } = (await response.json()) as {
    data: { client: { webhooks: { nodes: { type: string }[] } } };
    extensions: object;
  };
  const fed = data.client.webhooks.nodes.filter(
    (webhook) => 'feedsGateway' in webhook && webhook.feedsGateway === true,
  );
  expect(fed.map(({ type }) => type).sort()).toEqual(['CEP', 'MONEY_IN', 'STATUS_UPDATE']);
  expect(JSON.stringify(fed)).toContain('/***');
  expect(extensions).toMatchObject({ upstream: expect.any(Array) });
  expect((await fetch(`${sandbox}/sandbox`)).ok).toBe(true);
  expect(await program.end('SIGINT')).toBe(0);
});

it('loads one undici: its own, and not the one that is built into Node', async () => {
  const probe = `process.on('exit', () => console.log('built in: ' + process.moduleLoadList.filter((name) => name.includes('undici'))))`;
  await using program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(probe)}`,
  });
  await demoAddresses(program);
  await program.end();
  expect(program.output()).toMatch(/^built in: $/m);
});

it.each(['PORT', 'SANDBOX_PORT'])('a %s in use stops the start with what to do', async (name) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as AddressInfo;
  await using program = startProgram('src/start.js', { PORT: '0', SANDBOX_PORT: '0', [name]: String(port) });
  await program.says(new RegExp(`127.0.0.1:${port} is in use .* another port with ${name}\\.`));
  expect(await program.exited()).toBe(1);
  await new Promise((resolve) => taken.close(resolve));
});

it('wrong variables stop the start with one message that names each', async () => {
  await using program = startProgram('src/start.js', {
    PORT: 'http',
    GRAPHIQL: 'maybe',
    UPSTREAM_URL: 'ftp://x',
  });
  await program.says(/GRAPHIQL: got "maybe", wants true or false/);
  expect(program.output()).toContain('PORT: got "http"');
  expect(program.output()).toContain('UPSTREAM_URL: got "ftp://x"');
  expect(program.output()).toContain('WEBHOOK_SECRET');
  expect(await program.exited()).toBe(1);
});

it.each([
  [{ DATA_DIR: '/proc/nowhere' }, 'DATA_DIR: got "/proc/nowhere"'],
  [{ DATA_DIR: '/etc/hostname' }, 'DATA_DIR: got "/etc/hostname"'],
  [{ HOST: '192.0.2.1' }, 'HOST: got "192.0.2.1"'],
  [{ HOST: 'nowhere.invalid' }, 'HOST: got "nowhere.invalid"'],
  [{ PORT: '5123', SANDBOX_PORT: '5123' }, 'PORT, SANDBOX_PORT: both are 5123'],
])('%j, which the system refuses, stops the start with its name', async (variables, message) => {
  await using program = startProgram('src/start.js', { PORT: '0', SANDBOX_PORT: '0', ...variables });
  expect(await program.exited()).toBe(1);
  expect(program.output()).toContain(message);
  expect(program.output()).not.toMatch(/^ +at /m);
});

it('a gateway without Redis says where it begins a record of payments, in a new folder and in an empty one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  const says = async (dataDir: string): Promise<boolean> => {
    await using program = startProgram('src/start.js', {
      PORT: '0',
      UPSTREAM_URL: 'http://127.0.0.1:9',
      WEBHOOK_SECRET: 'x'.repeat(32),
      DATA_DIR: dataDir,
    });
    await program.says(/Pasarela is listening/);
    return program.output().includes(`DATA_DIR: ${dataDir} holds no record of payments`);
  };
  expect(await says(join(folder, 'data'))).toBe(true);
  expect(await says(join(folder, 'data'))).toBe(false);
  expect(await says(folder)).toBe(true);
  await rm(folder, { recursive: true });
});

it('a variable that nothing reads is pointed at when it is all but the name of another', async () => {
  await using program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    UPSTREAM_ULR: 'http://127.0.0.1:9',
    EDITOR: 'vi',
  });
  await program.says(/UPSTREAM_ULR is set, and nothing reads it\. Is UPSTREAM_URL meant\?/);
  await demoAddresses(program);
  expect(program.output()).not.toContain('EDITOR');
});

it.each([
  ['src/start.js', 'npm ci && npm start'],
  ['src/cli/pasarela.ts', 'npx pasarela'],
])('%s says under an old Node what to type instead', async (file, instead) => {
  // The version is all that it looks at.
  const old = "Object.defineProperty(process.versions, 'node', { value: '22.18.0' })";
  await using program = startProgram(file, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(old)}`,
  });
  expect(await program.exited()).toBe(1);
  expect(program.output()).toMatch(/^Pasarela runs on Node 26 or later/);
  expect(program.output()).toContain(STARTS_DIST ? 'npx -p node@26 -p pasarela pasarela' : instead);
});

it.each([
  ['bun', 'Bun'],
  ['deno', 'Deno'],
])(
  'src/start.js says under %s, which names itself beside a Node, that it needs Node',
  async (runtime, name) => {
    const other = `Object.defineProperty(process.versions, '${runtime}', { value: '9.8.7' })`;
    await using program = startProgram('src/start.js', {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(other)}`,
    });
    expect(await program.exited()).toBe(1);
    expect(program.output()).toMatch(
      new RegExp(`^Pasarela runs on Node 26 or later, and this is ${name} 9.8.7\\.`),
    );
  },
);

it('what npm start prints can be pasted: a stream, and the credit that makes it speak', async () => {
  await using program = startProgram('src/start.js', { PORT: '0', SANDBOX_PORT: '0' });
  await program.says(/Ctrl-C ends it/);
  const lines = program
    .output()
    .split('\n')
    .map((line) => line.trim());
  const [token = '', stream = '', clabe = '', credit = ''] = [
    'export TOKEN',
    'curl -sN',
    'export CLABE',
    'curl -s ',
  ].map((start) => lines.find((line) => line.startsWith(start)) ?? '');
  const listening = spawn('sh', [
    '-c',
    `${token}\n${stream.replace('curl -sN', 'exec curl -sN --max-time 280')}`,
  ]);
  let heard = '';
  listening.stdout.on('data', (chunk) => {
    heard += String(chunk);
  });
  await until(() => heard.startsWith(':'));
  const { stdout } = await promisify(execFile)('sh', ['-c', `${clabe}\n${credit}`]);
  expect(stdout).toContain('"transaction"');
  await until(() => heard.includes('Ana Torres'));
  listening.kill();
});

const AT_A_TERMINAL = "Object.defineProperty(process.stderr, 'isTTY', { value: true })";

it.each([
  [
    'in the log',
    '',
    /^\{.*"msg":"Ending\. Waiting for requests, payments and sockets, about 45 seconds at most\."\}$/m,
  ],
  [
    'in plain text at a terminal',
    AT_A_TERMINAL,
    /^Ending\. Waiting for requests, payments and .* Ctrl-C again ends it at once\.$/m,
  ],
])('Ctrl-C says what is waited for %s, where that takes a while', async (_, code, message) => {
  await using program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}`,
  });
  const { gateway, sandbox, token } = await demoAddresses(program);
  await fetch(`${sandbox}/sandbox/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ match: { path: '/v1/' }, fault: { delayMs: 2_500 } }),
  });
  const answer = sendQuery(
    `${gateway}/graphql`,
    '{ client { id } }',
    {},
    { authorization: `Bearer ${token}` },
  );
  // The start itself has only registered webhooks.
  await until(async () => {
    const { counts } = (await (await fetch(`${sandbox}/sandbox/requests`)).json()) as { counts: object };
    return Object.keys(counts).some((route) => route.startsWith('GET '));
  });
  program.process.kill('SIGINT');
  await program.says(message);
  expect((await answer).data.client.id).toBeDefined();
  expect(await program.exited()).toBe(0);
});

it.each([
  ['systemd', 'SIGTERM'],
  ['a terminal', 'SIGINT'],
] as const)(
  'under npm it takes what %s sends to all processes, and npm passes on, for one signal',
  async (_, signal) => {
    const { PATH = '', HOME = '' } = process.env;
    // A group of its own, as a terminal and a service have.
    const npm = spawn('npm', ['start'], {
      detached: true,
      cwd: fileURLToPath(ROOT),
      // Where sh is a bash, it becomes the program that it starts: npm passes signals on to the gateway itself.
      env: { PATH, HOME, PORT: '0', SANDBOX_PORT: '0', npm_config_script_shell: 'bash' },
    });
    endWithThisProcess(npm);
    let written = '';
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.on('data', (chunk) => {
        written += String(chunk);
      });
    }
    const exited = once(npm, 'exit');
    const [gateway = '', sandbox = '', token = ''] = await Promise.all(
      [/GraphiQL +(http:\S+)\/graphql/, /Sandbox +(http:\/\/[^\s/]+)/, /TOKEN=(\S+)/].map((pattern) =>
        until(() => pattern.exec(written)?.[1]),
      ),
    );
    await fetch(`${sandbox}/sandbox/faults`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ match: { path: '/v1/' }, fault: { delayMs: 2_500 } }),
    });
    const headers = { authorization: `Bearer ${token}` };
    const answer = sendQuery(`${gateway}/graphql`, '{ client { id } }', {}, headers);
    await until(async () => {
      const { counts } = (await (await fetch(`${sandbox}/sandbox/requests`)).json()) as { counts: object };
      return Object.keys(counts).some((route) => route.startsWith('GET '));
    });
    if (npm.pid === undefined) throw new Error('npm has not started');
    process.kill(-npm.pid, signal);
    expect((await answer).data.client.id).toBeDefined();
    await exited;
  },
);

it('a signal during the start ends it without an error, however much is open by then', async () => {
  await using program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    // Nobody is there, so that the start waits for it.
    REDIS_URL: 'redis://127.0.0.1:1',
  });
  await program.says(/Redis .* is away/);
  expect(await program.end('SIGTERM')).toBe(0);
  expect(program.output()).not.toMatch(/^ +at /m);
});

it('the sandbox runs alone', async () => {
  await using program = startProgram('src/cli/sandbox.ts', { SANDBOX_PORT: '0' });
  const [, url = ''] = await program.says(/What is there +(http:\S+)/);
  expect((await fetch(url)).status).toBe(200);
  expect(await program.end('SIGTERM')).toBe(0);
});

it.each(['a folder', 'Redis'])(
  'a gateway that keeps its log in %s takes the credits of the sandbox’s next start for what they are',
  async (where) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
    await using redis = await startRedis();
    const kept: Record<string, string> = where === 'Redis' ? { REDIS_URL: redis.url } : { DATA_DIR: dataDir };
    const cursors: string[] = [];
    for (let start = 0; start < 2; start += 1) {
      await using program = startProgram('src/start.js', { PORT: '0', SANDBOX_PORT: '0', ...kept });
      const { gateway, sandbox, token } = await demoAddresses(program);
      const { accounts } = (await (await fetch(`${sandbox}/sandbox`)).json()) as {
        accounts: [{ clabe: string }];
      };
      await fetch(`${sandbox}/sandbox/spei-credits`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ clabe: accounts[0].clabe, amount: '1.00' }),
      });
      const { data } = await sendQuery(
        `${gateway}/graphql`,
        '{ events(first: 10) { nodes { cursor } } }',
        {},
        { authorization: `Bearer ${token}` },
      );
      cursors.splice(0, cursors.length, ...data.events.nodes.map(({ cursor }: { cursor: string }) => cursor));
      expect(await program.end('SIGINT')).toBe(0);
    }
    expect(new Set(cursors).size).toBe(2);
    await rm(dataDir, { recursive: true, force: true });
  },
);

it('processes that start at once on a folder that is not there yet make it together', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'pasarela-start-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const folder = join(dir, 'of', 'its', 'own');
  await Promise.all(Array.from({ length: 8 }, () => prepareDataFolder(folder)));
});
