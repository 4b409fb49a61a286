import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { startCluster } from '../helpers/redis-topologies.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';
import { VARIANTS } from '../helpers/variants.ts';

const UNKNOWN = '__typename ... on OutcomeUnknown { payment { id } }';
const OPERATIONS = {
  out: ['CreateMoneyOut', 'createMoneyOut', '/v1/transactions/money_out'],
  internal: [
    'CreateInternalTransaction',
    'createInternalTransaction',
    '/v1/transactions/internal_transaction',
  ],
  penny: ['CreatePennyValidation', 'createPennyValidation', '/v1/transactions/penny_validation'],
  refund: ['RefundTransaction', 'refundTransaction', '/v1/clients/*/transactions/*/refund'],
} as const;
type Kind = keyof typeof OPERATIONS;
const BEFORE = 'reset-before';
const AFTER = 'reset-after-commit';

const PAYMENTS = `query ($key: String!) { payment(idempotencyKey: $key) {
  state code message settledAt safeToRetry transactionId attempts transaction { id subCategory } amount { amount } } }`;

/** Pays through a gateway whose service loses an answer, and never comes back. */
function payer(gateway: RunningGateway, token: () => Promise<string>) {
  // biome-ignore lint/suspicious/noExplicitAny: what there is to play with, as the sandbox tells it.
  let world: any;
  let references = 1_000;
  let lost = 0;
  const query = async (document: string, variables: Readonly<Record<string, unknown>>) =>
    gateway.query(document, variables, { authorization: `Bearer ${await token()}` });
  const transfer = (destinationInstrumentId: string, description: string) => {
    references += 1;
    const { centralizingInstrumentId: sourceInstrumentId } = world;
    const externalReference = String(references);
    return { sourceInstrumentId, destinationInstrumentId, amount: '12.50', description, externalReference };
  };
  const instrument = (wanted: (one: { role: string; status: string; ownerId: string }) => boolean): string =>
    world.instruments.find(
      (one: { role: string; status: string; ownerId: string }) => one.status === 'ACTIVE' && wanted(one),
    ).id;
  const inputs: Record<Kind, (description: string) => Promise<object>> = {
    out: async (description) => transfer(world.cardInstrumentIds[0], description),
    internal: async (description) => {
      const isOthers = ({ role, ownerId }: { role: string; ownerId: string }) =>
        role === 'internal' && ownerId !== gateway.sandbox.clientId;
      return transfer(instrument(isOthers), description);
    },
    penny: async (description) => ({
      sourceInstrumentId: world.centralizingInstrumentId,
      destinationInstrumentId: world.clabeInstrumentIds[0],
      description,
    }),
    refund: async () => {
      const credit = { clabe: world.accounts[0].clabe, amount: '75.00' };
      const { transaction } = await control(gateway.sandbox, 'POST', '/sandbox/spei-credits', credit);
      return { transactionId: transaction.id, as: { reason: 'Devolucion' } };
    },
  };
  const payment = async (key: string) => (await query(PAYMENTS, { key })).data.payment;
  return {
    query,
    inputs,
    payment,
    /** A refund whose answer was lost, asked for again once it is settled. */
    async refundAgain() {
      const input = await inputs.refund('');
      const idempotencyKey = await this.lose('refund', AFTER, input);
      await this.settled(idempotencyKey);
      const document = `mutation ($input: RefundTransactionInput!) { paid: refundTransaction(input: $input) {
        ... on RefundTransactionSuccess { replayed refund { id } original { rawStatus } } } }`;
      return (await query(document, { input: { idempotencyKey, ...input } })).data.paid;
    },
    async begin() {
      world = await control(gateway.sandbox, 'GET', '/sandbox');
    },
    /** Returns the key of a payment whose answer was lost. */
    async lose(kind: Kind, fault: unknown, input?: object): Promise<string> {
      const [name, field, path] = OPERATIONS[kind];
      lost += 1;
      const given = input ?? (await inputs[kind](`Prueba ${lost}`));
      const faults = (rule: object) => control(gateway.sandbox, 'POST', '/sandbox/faults', rule);
      const match = { method: 'POST', path };
      await faults({ match, fault, times: 1 });
      // Of all kinds money out alone is sent again.
      await faults({ match, fault: { status: 503 } });
      const idempotencyKey = randomUUID();
      const document = `mutation ($input: ${name}Input!) { paid: ${field}(input: $input) { ${UNKNOWN} } }`;
      const { data } = await query(document, { input: { idempotencyKey, ...given } });
      expect(data.paid.__typename).toBe('OutcomeUnknown');
      await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
      return idempotencyKey;
    },
    settled: (key: string) =>
      until(async () => {
        const found = await payment(key);
        return ['UNKNOWN', 'IN_FLIGHT'].includes(found.state) ? undefined : found;
      }),
  };
}

describe.each(VARIANTS)(
  'payments whose callers do not come back, in service mode, over %s,',
  (_name, sandboxOptions) => {
    let gateway: RunningGateway;
    let paying: ReturnType<typeof payer>;

    beforeAll(async () => {
      const { startSandbox } = await import('../../packages/sandbox/src/index.ts');
      const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1, ...sandboxOptions });
      gateway = await startGateway({
        sandbox,
        webhooks: ['CEP', 'MONEY_IN', 'STATUS_UPDATE'],
        config: { service: serviceFor(sandbox), operationTimeoutMs: 5_000 },
      });
      paying = payer(gateway, () => callerToken());
      await paying.begin();
    });
    afterAll(async () => {
      await gateway.stop();
      await gateway.sandbox.stop();
    });

    it('are settled by what is safe and by what is certain, and are moved once at most', async () => {
      const lost = {
        out: await paying.lose('out', BEFORE),
        outAfter: await paying.lose('out', AFTER),
        internal: await paying.lose('internal', BEFORE),
        internalAfter: await paying.lose('internal', AFTER),
        penny: await paying.lose('penny', BEFORE),
        pennyAfter: await paying.lose('penny', AFTER),
        refund: await paying.lose('refund', BEFORE),
        refundAfter: await paying.lose('refund', AFTER),
      };
      await control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 120 });
      expect(await paying.settled(lost.out)).toMatchObject({ state: 'DONE', code: null });
      expect(await paying.settled(lost.outAfter)).toMatchObject({
        state: 'DONE',
        safeToRetry: false,
      });
      const transaction = { id: expect.any(String) };
      expect(await paying.settled(lost.internalAfter)).toMatchObject({
        state: 'DONE',
        attempts: 1,
        transaction,
      });
      expect(await paying.settled(lost.pennyAfter)).toMatchObject({
        state: 'DONE',
        attempts: 1,
        transaction,
      });
      const refunded = { state: 'DONE', transactionId: null, amount: { amount: '75.00' } };
      expect(await paying.settled(lost.refundAfter)).toMatchObject(refunded);
      for (const key of [lost.internal, lost.penny, lost.refund]) {
        expect(await paying.payment(key)).toMatchObject({
          state: 'UNKNOWN',
          code: 'NO_ANSWER',
          safeToRetry: false,
        });
      }
      const { movements } = await control(gateway.sandbox, 'GET', '/sandbox/ledger');
      const moved = (description: string) =>
        movements.filter((movement: { description: string }) => movement.description === description).length;
      expect([1, 2, 3, 4, 5, 6].map((lost) => moved(`Prueba ${lost}`))).toEqual([1, 1, 0, 1, 0, 1]);
    });

    it('stay unknown where two of the record could be the one that moved, and say so', async () => {
      const input = await paying.inputs.penny('Prueba igual');
      const first = await paying.lose('penny', BEFORE, input);
      const second = await paying.lose('penny', AFTER, input);
      await control(gateway.sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 120 });
      for (const key of [first, second]) {
        const alike = await until(async () => {
          const found = await paying.payment(key);
          return found.message.includes('more than one payment') ? found : undefined;
        });
        expect(alike).toMatchObject({ state: 'UNKNOWN', settledAt: null });
      }
    });

    it('are told to a caller who comes back after all', async () => {
      const { original, replayed, refund } = await paying.refundAgain();
      expect([original.rawStatus, replayed, refund]).toEqual(['REFUNDED', true, null]);
    });
  },
);

it('payments whose callers do not come back are settled over a Cluster as well', async () => {
  await using cleanup = new AsyncDisposableStack();
  const cluster = cleanup.use(await startCluster());
  const { startSandbox } = await import('../../packages/sandbox/src/index.ts');
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const config = {
    service: serviceFor(sandbox),
    redisUrl: new Secret(cluster.url),
    operationTimeoutMs: 5_000,
  };
  const webhooks = ['CEP', 'MONEY_IN', 'STATUS_UPDATE'] as const;
  const gateway = cleanup.use(await startGateway({ sandbox, webhooks, config }));
  const paying = payer(gateway, () => callerToken());
  await paying.begin();
  const keys = [
    await paying.lose('out', BEFORE),
    await paying.lose('internal', AFTER),
    await paying.lose('penny', AFTER),
    await paying.lose('refund', AFTER),
  ];
  await control(sandbox, 'POST', '/sandbox/clock', { advanceSeconds: 120 });
  for (const key of keys) expect(await paying.settled(key)).toMatchObject({ state: 'DONE' });
  const { movements } = await control(sandbox, 'GET', '/sandbox/ledger');
  for (const tag of ['Prueba 1', 'Prueba 2', 'Prueba 3']) {
    expect(movements.filter(({ description }: { description: string }) => description === tag)).toHaveLength(
      1,
    );
  }
});

it('a payment whose caller does not come back is settled in passthrough, under the token that the process still has', async () => {
  await using gateway = await startGateway({ config: { operationTimeoutMs: 5_000 } });
  const paying = payer(gateway, async () => gateway.sandbox.accessToken);
  await paying.begin();
  const [out, refund] = [await paying.lose('out', BEFORE), await paying.lose('refund', AFTER)];
  expect(await paying.settled(out)).toMatchObject({ state: 'DONE', code: null });
  expect(await paying.settled(refund)).toMatchObject({ state: 'DONE', transactionId: null });
});

it('a payment of a process that has ended is settled in passthrough once its caller asks what became of it', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { startSandbox } = await import('../../packages/sandbox/src/index.ts');
  const sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  cleanup.defer(() => sandbox.stop());
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-settling-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  const start = () => startGateway({ sandbox, config: { dataDir, operationTimeoutMs: 5_000 } });
  const before = await start();
  const first = payer(before, async () => sandbox.accessToken);
  await first.begin();
  const refund = await first.lose('refund', AFTER);
  await before.stop();
  const gateway = cleanup.use(await start());
  const paying = payer(gateway, async () => sandbox.accessToken);
  expect(await paying.payment(refund)).toMatchObject({ state: 'UNKNOWN', safeToRetry: false });
  // Only the readings of the payment ask.
  expect(await paying.settled(refund)).toMatchObject({ state: 'DONE', attempts: 1 });
});
