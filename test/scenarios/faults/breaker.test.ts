import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { control, type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { holdTime } from '../../helpers/held-time.ts';
import { until } from '../../helpers/until.ts';
import { documentOf, inject, MUTATIONS, movementsOf, type Payable, payable, requestsOf } from './payments.ts';

const ACCOUNTS = '{ client { accounts { totalCount } } }';
const EVERYTHING = { path: '/v1/' };

describe('once the upstream has failed twenty times in a row', () => {
  let gateway: RunningGateway;
  /** Everything that the sandbox has been asked. */
  const asked = async (): Promise<number> =>
    (await control(gateway.sandbox, 'GET', '/sandbox/requests')).total;
  const readiness = async () => (await fetch(`${gateway.url}/readyz`)).json();

  beforeEach(async () => {
    gateway = await startGateway();
    expect((await gateway.query(ACCOUNTS)).errors).toBeUndefined();
    await inject(gateway.sandbox, EVERYTHING, { status: 503 });
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  });
  afterEach(() => gateway.stop());

  /** Asks until the upstream is no longer asked. */
  const open = async (): Promise<void> => {
    for (let before = -1; before !== (await asked()); ) {
      before = await asked();
      await gateway.query(ACCOUNTS);
    }
  };

  it('is asked no more, every answer says so, and the gateway stays in rotation', async () => {
    // One call every two seconds may try whether it is back.
    holdTime();
    await open();
    const before = await asked();
    expect(before).toBe(20);
    for (let query = 0; query < 10; query += 1) {
      const { errors } = await gateway.query(ACCOUNTS);
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('suspended'),
        extensions: { code: 'UPSTREAM_UNAVAILABLE', retryAfterMs: expect.any(Number) },
      });
    }
    expect(await asked()).toBe(before);
    expect(await readiness()).toMatchObject({ status: 'degraded' });
  });

  it('is asked again, and serves, when it is back', async () => {
    await open();
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    await until(async () => (await gateway.query(ACCOUNTS)).errors === undefined);
    expect((await gateway.query(ACCOUNTS)).errors).toBeUndefined();
    expect(await readiness()).toMatchObject({ status: 'ready' });
  });

  const pay = ({ mutation, input }: Payable) => gateway.query(documentOf(mutation), { input });

  it('with reads, payments are sent all the same', async () => {
    const { sandbox } = gateway;
    await control(sandbox, 'DELETE', '/sandbox/faults');
    await inject(sandbox, { method: 'GET', path: '/v1/' }, { status: 503 });
    // A refund reads first what it refunds.
    const sent = MUTATIONS.filter((mutation) => mutation !== 'refundTransaction');
    const payments = await Promise.all(
      sent.map((mutation) => payable(sandbox, mutation, `reads fail ${mutation}`)),
    );
    await open();
    expect(await readiness()).toMatchObject({ status: 'degraded' });
    for (const payment of payments) {
      const { data } = await pay(payment);
      expect(data.result).toMatchObject({ replayed: false, moved: { id: expect.any(String) } });
    }
  });

  it('with payments, no payment is sent, and its key is free for when it is back', async () => {
    const { sandbox } = gateway;
    const payments = await Promise.all(
      MUTATIONS.map((mutation) => payable(sandbox, mutation, `while open ${mutation}`)),
    );
    const failing = await Promise.all(
      Array.from({ length: 20 }, (_, index) => payable(sandbox, 'createPennyValidation', `failing ${index}`)),
    );
    // One call every two seconds may try whether it is back.
    const goOn = holdTime();
    for (const { data } of await Promise.all(failing.map(pay))) {
      expect(data.result).toMatchObject({ __typename: 'OutcomeUnknown' });
    }
    const before = new Map<string, number>();
    for (const { route } of payments) before.set(route, await requestsOf(sandbox, route));
    for (const payment of payments) {
      const { data, errors } = await pay(payment);
      expect(data.result).toBeNull();
      const code = 'UPSTREAM_UNAVAILABLE';
      // A refund fails as it reads its credit, which the service answers with a 503 of its own.
      const isSuspended = payment.mutation !== 'refundTransaction';
      expect(errors?.[0]?.extensions).toMatchObject(
        isSuspended ? { code, retryAfterMs: expect.any(Number) } : { code },
      );
      expect(await requestsOf(sandbox, payment.route)).toBe(before.get(payment.route));
    }
    goOn();
    await control(sandbox, 'DELETE', '/sandbox/faults');
    for (const payment of payments) {
      const result = await until(async () => (await pay(payment)).data?.result ?? undefined);
      expect(result).toMatchObject({ replayed: false, moved: { id: expect.any(String) } });
      expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
    }
  });

  it('webhooks are taken in as ever, and no credit is sent back', async () => {
    const { sandbox } = gateway;
    const world = await control(sandbox, 'GET', '/sandbox');
    await open();
    const credit = { clabe: world.accounts[0].clabe, amount: '9.00' };
    const { transaction, deliveries } = await control(sandbox, 'POST', '/sandbox/spei-credits', credit);
    expect(deliveries.map(({ attempts }: { attempts: object[] }) => attempts)).toEqual([
      [expect.objectContaining({ status: 201 })],
    ]);
    await control(sandbox, 'DELETE', '/sandbox/faults');
    const read = await control(
      sandbox,
      'GET',
      `/v1/clients/${sandbox.clientId}/transactions/${transaction.id}`,
    );
    expect(read.transactionStatus).toBe('LIQUIDATED');
  });
});
