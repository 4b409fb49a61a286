import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../../packages/sandbox/src/index.ts';
import { clock, useClock } from '../../../src/common/clock.ts';
import { steppedClock } from '../../helpers/clock.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { PATIENT } from '../../helpers/gateway-config.ts';
import { subscribeOverSse } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { startFront } from '../../scenarios/faults/front.ts';

const BALANCES = '{ client { accounts(first: 20) { nodes { clabe availableBalance { amount } } } } }';
const STATUS = 'subscription ($id: ID!) { transactionStatus(transactionId: $id) { transaction { status } } }';
const PAY = `mutation ($input: CreateMoneyOutInput!) {
  createMoneyOut(input: $input) { ... on CreateMoneyOutSuccess { transaction { id } } }
}`;
/** The first wait of the schedule by which a transaction is read. */
const FIRST = 2_000;

it('a query that is asked again once a stream has told that a payment is settled shows the balance of then', async () => {
  // A query may be joined however slow the machine is: this clock stands still.
  const now = clock.monotonic();
  onTestFinished(useClock({ ...clock, monotonic: () => now }));
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  /** The next readings that the service holds back, by a part of their paths, and those that it does. */
  const toHold = new Set<string>();
  const held = new Map<string, ServerResponse>();
  await using front = await startFront(sandbox.url, ({ method, path }, response) => {
    const part = [...toHold].find((one) => method === 'GET' && path.includes(one));
    if (part === undefined) return false;
    toHold.delete(part);
    held.set(part, response);
    return true;
  });
  const steps = steppedClock();
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { ...PATIENT, upstreamUrl: front.url, upstreamReport: true, listsMaxAgeMs: 0 },
    clock: steps,
  });
  const seeded = await control(sandbox, 'GET', '/sandbox');
  const input = {
    idempotencyKey: randomUUID(),
    sourceInstrumentId: seeded.centralizingInstrumentId,
    destinationInstrumentId: seeded.cardInstrumentIds[0],
    amount: '10.00',
    description: 'Pago',
    externalReference: '7',
  };
  const { id } = (await gateway.query(PAY, { input })).data.createMoneyOut.transaction;
  await using stream = subscribeOverSse(gateway.graphql, sandbox.accessToken, {
    query: STATUS,
    variables: { id },
  });
  await stream.received(1);

  toHold.add(id);
  await steps.pass(FIRST);
  await until(() => held.has(id));
  toHold.add('/accounts');
  const before = gateway.query(BALANCES);
  await until(() => held.has('/accounts'));
  await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 3_600 });
  // The gateway reads again what it was not answered.
  held.get(id)?.destroy();
  await stream.ended;
  expect(stream.results.map(({ data }) => data.transactionStatus.transaction.status)).toEqual([
    'INITIALIZED',
    'LIQUIDATED',
  ]);

  const after = await gateway.query(BALANCES);
  expect(after.extensions?.['way']).toMatchObject({ isShared: false });
  // Nor has it joined the REST call that is held back.
  expect(after.extensions?.['upstream']).toEqual([expect.objectContaining({ coalesced: false })]);
  held.get('/accounts')?.destroy();
  await before;
});
