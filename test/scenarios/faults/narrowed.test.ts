import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { recordName } from '../../../src/money/intent.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, inject, movementsOf, requestsOf } from './payments.ts';

interface Seeded {
  readonly customerIds: readonly string[];
  readonly instruments: readonly {
    readonly id: string;
    readonly role: string;
    readonly ownerId: string;
    readonly status: string;
  }[];
}

let sandbox: Sandbox;
let gateway: RunningGateway;
let dataDir: string;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-narrowed-'));
  gateway = await startGateway({
    sandbox,
    webhooks: false,
    // One call has time for several requests, however busy the machine is.
    config: { dataDir, service: serviceFor(sandbox), upstreamTimeoutMs: 5_000, operationTimeoutMs: 10_000 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
  await rm(dataDir, { recursive: true });
});

/** Keeps the gateway from sending again by itself, from the fifth second on, what has got no answer. */
function putOffOpenPayments(): void {
  using records = new DatabaseSync(join(dataDir, 'money.sqlite'), { timeout: 5_000 });
  records.prepare('UPDATE intent SET due_at = ? WHERE due_at IS NOT NULL').run(Date.now() + 600_000);
}

/** Returns what pays once, for the first customer and from an instrument of its own. The payment has this description. */
async function ownPayment(description: string): Promise<() => Promise<unknown>> {
  const seeded: Seeded = await control(sandbox, 'GET', '/sandbox');
  const [customer] = seeded.customerIds;
  const own = (roles: readonly string[]) =>
    seeded.instruments.find(
      ({ role, ownerId, status }) => roles.includes(role) && ownerId === customer && status === 'ACTIVE',
    )?.id;
  const input = {
    idempotencyKey: `the key of ${description}`,
    sourceInstrumentId: own(['internal']),
    destinationInstrumentId: own(['card', 'clabe']),
    amount: '1.00',
    description,
    externalReference: '1',
  };
  const authorization = `Bearer ${await callerToken({ customer_id: customer })}`;
  return async () =>
    (await gateway.query(documentOf('createMoneyOut'), { input }, { authorization })).data.result;
}

it('a customer whose instruments cannot be found for a while is not told that a payment sent before was refused', async () => {
  const pay = await ownPayment('narrowed');
  await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, 'hang');
  expect(await pay()).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: true });
  putOffOpenPayments();
  const [movement] = await movementsOf(sandbox, 'narrowed');
  expect(movement).toBeDefined();

  await control(sandbox, 'DELETE', '/sandbox/faults');
  await control(sandbox, 'DELETE', '/sandbox/requests');
  await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, { status: 404 });
  expect(await pay()).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: true });
  expect(await requestsOf(sandbox, 'POST /v1/transactions/money_out')).toBe(0);

  await control(sandbox, 'DELETE', '/sandbox/faults');
  expect(await pay()).toMatchObject({ replayed: false, moved: { id: movement?.transactionId } });
});

it.each([500, 404])(
  'a payment of a customer that was sent before is done by one call, also where its instruments are answered with %i at first',
  async (status) => {
    const description = `found after ${status}`;
    const pay = await ownPayment(description);
    await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, 'hang');
    expect(await pay()).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: true });
    putOffOpenPayments();
    const [movement] = await movementsOf(sandbox, description);
    expect(movement).toBeDefined();

    await control(sandbox, 'DELETE', '/sandbox/faults');
    await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, { status }, 2);
    expect(await pay()).toMatchObject({ replayed: false, moved: { id: movement?.transactionId } });
    await control(sandbox, 'DELETE', '/sandbox/faults');
  },
);

it('a payment is not recorded as sent, so that no process may send it, while it is looked up whose the instruments are', async () => {
  const { customerIds, instruments, clientId } = await control(sandbox, 'GET', '/sandbox');
  const [customer, stranger] = customerIds;
  const of = (owner: string, ...roles: string[]) =>
    instruments.find(
      (one: Seeded['instruments'][number]) =>
        roles.includes(one.role) && one.ownerId === owner && one.status === 'ACTIVE',
    )?.id;
  const key = 'the key of a customer who pays with the money of another';
  const input = {
    idempotencyKey: key,
    sourceInstrumentId: of(stranger, 'internal'),
    destinationInstrumentId: of(customer, 'card', 'clabe'),
    amount: '2.00',
    description: 'of another',
    externalReference: '2',
  };
  await control(sandbox, 'DELETE', '/sandbox/requests');
  await inject(sandbox, { method: 'GET', path: '/v1/clients/*/instruments/*' }, { delayMs: 2_000 });
  const authorization = `Bearer ${await callerToken({ customer_id: customer })}`;
  const asked = gateway.query(documentOf('createMoneyOut'), { input }, { authorization });

  await until(async () => {
    const { counts } = await control(sandbox, 'GET', '/sandbox/requests');
    return Object.keys(counts).some((route) => route.startsWith('GET ') && route.includes('/instruments/'));
  });
  using records = new DatabaseSync(join(dataDir, 'money.sqlite'), { readOnly: true });
  const { hash } = recordName({ clientId, customerId: customer, key });
  expect(records.prepare('SELECT state FROM intent WHERE hash = ?').get(hash)).toEqual({ state: 'claimed' });

  expect((await asked).data.result).toMatchObject({ __typename: 'NotFoundError' });
  await control(sandbox, 'DELETE', '/sandbox/faults');
  expect(await requestsOf(sandbox, 'POST /v1/transactions/money_out')).toBe(0);
  expect(await movementsOf(sandbox, 'of another')).toEqual([]);
});
