import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const run = promisify(execFile);

const sourceOf = (file: string): string =>
  JSON.stringify(new URL(`../../src/app/${file}`, import.meta.url).href);

/** A program that is told to end as it starts, and whose start then fails. */
const TOLD_TO_END = `
  import { runProgram } from ${sourceOf('lifecycle.ts')};
  setInterval(() => undefined, 1_000);
  await runProgram(async ({ opened }) => {
    const closed = Promise.withResolvers();
    opened(async () => {
      closed.reject(new Error('What the start needs is closed.'));
      for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    });
    process.kill(process.pid, 'SIGTERM');
    await closed.promise;
  });
`;

it('a start that fails since it was told to end is no failure', async () => {
  // Rejects where the program ends with another code than 0.
  const { stderr } = await run(process.execPath, ['--input-type=module', '--eval', TOLD_TO_END]);
  expect(stderr).toBe('');
});

/** A program that says what it waits for as it ends, and ends in order. */
const SAYS_AT_THE_END = `
  import { runProgram } from ${sourceOf('lifecycle.ts')};
  setInterval(() => undefined, 1_000);
  await runProgram(async ({ opened }) => {
    opened(async () => void process.stdout.write('closed'));
    opened(() => new Promise((resolve) => setTimeout(resolve, 1_500)), 'payments');
    process.stdout.write('open ');
  });
`;

it.each([
  'SIGTERM',
  // Of a terminal that is closed.
  'SIGHUP',
] as const)('closes all at %s, also where nobody reads any more what it says', async (signal) => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', SAYS_AT_THE_END]);
  const told: string[] = [];
  child.stdout.on('data', (chunk) => told.push(String(chunk)));
  await once(child.stdout, 'data');
  child.stderr.destroy();
  child.kill(signal);
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(told.join('')).toBe('open closed');
});

/** Runs a program whose start fails so. @returns what it says */
async function failing(start: string): Promise<string> {
  const program = `
    import { mkdtemp } from 'node:fs/promises';
    import { createServer } from 'node:net';
    import { listeningBy, runProgram } from ${sourceOf('lifecycle.ts')};
    import { ConfigError } from ${sourceOf('config.ts')};
    const listen = (port, host) => new Promise((resolve, reject) => createServer().on('error', reject).listen(port, host, resolve));
    await runProgram(async () => { ${start} });
  `;
  const ended = await run(process.execPath, ['--input-type=module', '--eval', program]).catch(
    (error: unknown) => error,
  );
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  return String(Object(ended).stderr);
}

it('a start that fails says what a person can do about it, and where nobody knows that, what has failed', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  // A TCP server has a port.
  const { port } = taken.address() as AddressInfo;
  const [inUse, named, elsewhere, noFolder, config, bug, text] = await Promise.all([
    failing(`await listen(${port}, '127.0.0.1');`),
    failing(`await listen(${port}, '127.0.0.1').catch(listeningBy('METRICS_PORT'));`),
    failing(`await listen(0, '192.0.2.1');`),
    failing(`await mkdtemp('/proc/pasarela-');`),
    failing(`throw new ConfigError('PORT is wrong.');`),
    failing(`throw new TypeError('A bug.');`),
    failing(`throw 'a text';`),
  ]);
  taken.close();
  const address = `127.0.0.1:${port} is in use by another process.`;
  expect(inUse).toBe(`${address} Choose another port with PORT.\n`);
  expect(named).toBe(`${address} Choose another port with METRICS_PORT.\n`);
  expect(elsewhere).toContain('HOST: got "192.0.2.1", which is no address of this machine.');
  expect(noFolder).toMatch(
    /^\/proc\/pasarela-\w+: no folder can be made there \(ENOENT\)\. Name one with DATA_DIR, or .*\n$/,
  );
  expect(config).toBe('PORT is wrong.\n');
  expect(bug).toMatch(/^TypeError: A bug\.\n +at /);
  expect(text).toBe('a text\n');
});
