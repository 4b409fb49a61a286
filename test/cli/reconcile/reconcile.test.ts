import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startSandbox } from '#sandbox';
import { control, startGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, MUTATIONS, payable } from '../../scenarios/faults/payments.ts';
import { pasarela } from '../run.ts';

const MARGIN_MS = 300;

it('finds a credit whose webhook was lost, a payment made elsewhere and a fee, and nothing else', {
  timeout: 120_000,
}, async () => {
  await using cleanup = new AsyncDisposableStack();
  const sandbox = await startSandbox({ port: 0, speed: 1, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const gateway = await startGateway({ sandbox });
  cleanup.defer(() => gateway.stop());
  const folder = await mkdtemp(join(tmpdir(), 'pasarela-reconcile-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const environment = { PASARELA_TOKEN: sandbox.accessToken, DATA_DIR: folder };
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
