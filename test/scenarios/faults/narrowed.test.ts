import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { callerToken, serviceFor } from '../../helpers/service.ts';
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
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox), upstreamTimeoutMs: 300, operationTimeoutMs: 1_500 },
  });
});
afterAll(async () => {
  await gateway.stop();
  await sandbox.stop();
});

it('a customer whose instruments cannot be found for a while is not told that a payment sent before was refused', async () => {
  const seeded: Seeded = await control(sandbox, 'GET', '/sandbox');
  const [customer] = seeded.customerIds;
  const own = (roles: readonly string[]) =>
    seeded.instruments.find(
      ({ role, ownerId, status }) => roles.includes(role) && ownerId === customer && status === 'ACTIVE',
    )?.id;
  const input = {
    idempotencyKey: 'the key of a customer',
    sourceInstrumentId: own(['internal']),
    destinationInstrumentId: own(['card', 'clabe']),
    amount: '1.00',
    description: 'narrowed',
    externalReference: '1',
  };
  const authorization = `Bearer ${await callerToken({ customer_id: customer })}`;
  const pay = async () =>
    (await gateway.query(documentOf('createMoneyOut'), { input }, { authorization })).data.result;

  await inject(sandbox, { method: 'POST', path: '/v1/transactions/' }, 'hang');
  expect(await pay()).toMatchObject({ __typename: 'OutcomeUnknown', safeToRetry: true });
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
