import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { programOf } from '../../helpers/entry.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { json, startUpstream } from '../../helpers/http-stub.ts';
import { folder } from '../../helpers/packages.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, MUTATIONS, payable } from '../../scenarios/faults/payments.ts';
import { pasarela } from '../run.ts';

const MARGIN_MS = 300;

it('finds a credit whose webhook was lost, a payment made elsewhere and a fee, and nothing else', async () => {
  await using cleanup = new AsyncDisposableStack();
  const sandbox = await startSandbox({ port: 0, speed: 1, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const gateway = await startGateway({ sandbox });
  cleanup.defer(() => gateway.stop());
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-reconcile-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const environment = { PASARELA_TOKEN: sandbox.accessToken, DATA_DIR: dataDir };
  const away = async () => {
    const now = Date.now();
    await until(() => Date.now() > now + 2 * MARGIN_MS);
  };
  /** Reads, far enough from what has happened and from what will. */
  const run = async () => {
    await away();
    const margin = String(MARGIN_MS / 1_000);
    const args = ['reconcile', '--url', gateway.graphql, '--margin', margin, '--json'];
    const { code, stdout, stderr } = await pasarela(args, environment);
    expect(stderr).toBe('');
    await away();
    const told = stdout.split('\n').filter((line) => line !== '');
    return { code, told: told.map((line): { amount: string; account: string } => JSON.parse(line)) };
  };
  const nothing = { code: 0, told: [] };
  expect(await run()).toEqual(nothing);
  const world = await control(sandbox, 'GET', '/sandbox');
  const [{ clabe, id: account }] = world.accounts;
  const credit = (amount: string) => control(sandbox, 'POST', '/sandbox/spei-credits', { clabe, amount });
  const traffic = async (time: string) => {
    await credit('250.00');
    for (const mutation of MUTATIONS) {
      const { input } = await payable(sandbox, mutation, `${time} ${mutation}`);
      const { data } = await gateway.query(documentOf(mutation), { input });
      expect(data?.result?.__typename).toMatch(/Success$/);
    }
  };
  await traffic('first');
  for (const time of ['second', 'third', 'fourth']) {
    expect(await run()).toEqual(nothing);
    await traffic(time);
  }
  await control(sandbox, 'POST', '/sandbox/lost-messages', { type: 'MONEY_IN', times: 1 });
  await credit('77.70');
  const elsewhere = (amount: string) =>
    control(sandbox, 'POST', '/v1/transactions/money_out', {
      client_id: sandbox.clientId,
      source_instrument_id: world.centralizingInstrumentId,
      destination_instrument_id: world.cardInstrumentIds[0],
      transaction_request: { external_reference: '1', description: 'elsewhere', amount, currency: 'MXN' },
    });
  expect(await run()).toEqual(nothing);
  const lost = await run();
  expect(lost).toMatchObject({ code: 1, told: [{ account, amount: '+77.70' }] });
  await elsewhere('12.34');
  expect(await run()).toEqual(nothing);
  await elsewhere('1.16');
  expect(await run()).toMatchObject({ code: 1, told: [{ amount: '-12.34' }] });
  await traffic('fifth');
  expect(await run()).toMatchObject({ code: 1, told: [{ amount: '-1.16' }] });
  expect(await run()).toEqual(nothing);
  expect(await run()).toEqual(nothing);
});

it('goes on reading while no gateway answers, one ends or no token can be had, and ends with 1 when it is told to end', {
  timeout: 300_000,
}, async () => {
  const message = 'This process is shutting down.';
  const answers = [{ errors: [{ message, extensions: { code: 'DRAINING' } }] }, { message: 'Bad gateway' }];
  let asked = 0;
  await using ending = await startUpstream((request, response) => {
    request.resume();
    json(response, answers[asked++ % answers.length]);
  });
  const away = 'http://127.0.0.1:1/graphql';
  const cases: readonly (readonly [url: string, lines: RegExp, environment?: Record<string, string>])[] = [
    [away, /(No gateway answers.*\n){2}/],
    [ending.url, /(DRAINING.*\n.* is not GraphQL.*\n)/],
    [ending.url, /(PASARELA_TOKEN_FILE.*\n){2}/, { PASARELA_TOKEN_FILE: '/nowhere' }],
  ];
  for (const [url, lines, environment = { PASARELA_TOKEN: 'token' }] of cases) {
    const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-reconcile-'));
    const [program = '', ...first] = programOf('src/cli/pasarela.ts');
    const args = ['reconcile', '--url', url, '--every', '1'];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, [folder(program), ...first, ...args], {
      env: { PATH, ...environment, DATA_DIR: dataDir },
    });
    let told = '';
    child.stderr.on('data', (chunk) => {
      told += String(chunk);
    });
    const isOver = () => child.exitCode !== null;
    await until(() => told.split('The next reading is tried all the same.').length > 2 || isOver());
    child.kill('SIGTERM');
    if (!isOver()) await once(child, 'exit');
    expect([child.exitCode, told]).toEqual([1, expect.stringMatching(lines)]);
    await rm(dataDir, { recursive: true });
  }
});

// A timer rings at once after more than 24 days.
it.each(['0', '2147484'])('does not read without a pause: --every %s', async (every) => {
  const { code, stderr } = await pasarela(['reconcile', '--every', every], { PASARELA_TOKEN: 'token' });
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('--every wants a second') });
});
