import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '#sandbox';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { pasarela } from './run.ts';

const PAID = `mutation ($input: CreateMoneyOutInput!) { paid: createMoneyOut(input: $input) {
  ... on CreateMoneyOutSuccess { transaction { payment { id } } } ... on OutcomeUnknown { payment { id } } ... on UserError { code } } }`;

let sandbox: Sandbox;
let gateway: RunningGateway;
let dataDir: string;
let environment: Record<string, string>;
let done: string;
let unknown: string;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  dataDir = join(await mkdtemp(join(tmpdir(), 'pasarela-list-')), 'data');
  gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { dataDir, service: serviceFor(sandbox), operationTimeoutMs: 5_000 },
  });
  environment = { DATA_DIR: dataDir };
  const world = await control(sandbox, 'GET', '/sandbox');
  const authorization = `Bearer ${await callerToken()}`;
  const pay = async (amount: string) => {
    const input = {
      idempotencyKey: randomUUID(),
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.cardInstrumentIds[0],
      amount,
      description: 'Renta de Alma',
      externalReference: '77',
    };
    return (await gateway.query(PAID, { input }, { authorization })).data.paid;
  };
  done = (await pay('12.50')).transaction.payment.id;
  await pay('99999999.00');
  await control(sandbox, 'POST', '/sandbox/faults', { match: { method: 'POST' }, fault: { status: 503 } });
  unknown = (await pay('34.00')).payment.id;
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
  await rm(join(dataDir, '..'), { recursive: true, force: true });
});

const run = (...args: string[]) => pasarela(['payments', ...args], environment);

it('a payment whose operation is named twice is listed once', async () => {
  const { code, stdout } = await run('list', '--json', '--operation', 'money_out,money_out');
  expect(code).toBe(0);
  const ids = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).id);
  expect(ids).toHaveLength(3);
  expect(new Set(ids).size).toBe(3);
});

it('payments are listed, the newest first, by their state and operation, and nothing personal is told', async () => {
  const { code, stdout } = await run('list');
  expect(code).toBe(0);
  const lines = stdout.trimEnd().split('\n');
  expect(stdout).not.toContain('\u001b');
  const shown = await pasarela(['payments', 'list'], { ...environment, FORCE_COLOR: '1' });
  expect(shown.stdout).toContain('\u001b[33mUNKNOWN\u001b[39m');
  expect(shown.stdout).toContain('\u001b[32mDONE\u001b[39m');
  expect(lines.map((line) => line.split(/ +/)[1])).toEqual([
    expect.stringMatching(/UNKNOWN|IN_FLIGHT/),
    'REFUSED',
    'DONE',
  ]);
  expect(lines[2]).toMatch(new RegExp(`^20\\d\\d-.*  DONE       MONEY_OUT +12\\.50  ${done}$`));
  expect(lines[1]).toContain('INSUFFICIENT_FUNDS');
  expect(stdout).not.toContain('Alma');
  const json = await run(
    'list',
    '--json',
    '--state',
    'done,refused',
    '--operation',
    'money_out',
    '--limit',
    '1',
  );
  expect(JSON.parse(json.stdout)).toMatchObject({ clientId: sandbox.clientId, state: 'REFUSED' });
  expect(json.stderr).toContain('There are older ones: this is the newest 1.');
  expect((await run('list', '--limit', '3')).stderr).toBe('');
  for (const none of [
    ['--operation', 'REFUND'],
    ['--to', '2020-01-01'],
    ['--customer', randomUUID()],
  ]) {
    expect((await run('list', ...none)).stdout).toBe('');
  }
  for (const wrong of [['--state', 'PAID'], ['--from', 'soon'], ['--limit', 'all'], ['now']]) {
    expect(await run('list', ...wrong)).toMatchObject({ code: 2 });
  }
});

it('a payment is shown with its lines in the journal', async () => {
  const shown = await run('show', done);
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/^state: +DONE$/m);
  expect(shown.stdout).toMatch(/^20\S+ {2}asked[\s\S]*^20\S+ {2}sent[\s\S]*^20\S+ {2}done/m);
  const json = JSON.parse((await run('show', done, '--json')).stdout);
  expect(json.journal.map(({ step }: { step: string }) => step)).toEqual(['asked', 'sent', 'done']);
  const ofTransaction = await run('show', json.transactionId.toUpperCase());
  expect(ofTransaction).toMatchObject({ code: 0, stdout: shown.stdout });
  const none = randomUUID();
  expect(await run('show', none)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`transaction "${none}"`),
  });
  expect(await run('show', 'x')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no payment "x"'),
  });
  expect(await run('show')).toMatchObject({ code: 2 });
});

it('a payment of unknown outcome is settled once the service is back, and one that is settled stays as it is', async () => {
  await control(sandbox, 'DELETE', '/sandbox/faults');
  const settled = await run('settle', unknown, '--json');
  expect(settled.code).toBe(0);
  expect(JSON.parse(settled.stdout)).toMatchObject({ id: unknown, state: 'DONE' });
  expect(await run('settle', done)).toMatchObject({ code: 0 });
});
