import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Sandbox, startSandbox } from '../../../packages/sandbox/src/index.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { subscribeOverWebSocket } from '../../helpers/subscriber.ts';
import { until } from '../../helpers/until.ts';
import { type Front, startFront } from './front.ts';
import { documentOf, inject, MUTATIONS, movementsOf, type Payable, payable, requestsOf } from './payments.ts';

describe('an app that is gone before its payment is answered', () => {
  let sandbox: Sandbox;
  let front: Front;
  let gateway: RunningGateway;
  /** While it is there, no payment reaches the service. */
  let held: PromiseWithResolvers<void> | undefined;
  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
    front = await startFront(sandbox.url, async ({ method }) => {
      if (method === 'POST') await held?.promise;
      return false;
    });
    gateway = await startGateway({
      sandbox,
      webhooks: false,
      // The next call with a key waits as long as what hangs under it, and then goes on.
      config: { upstreamUrl: front.url, upstreamTimeoutMs: 20_000, operationTimeoutMs: 60_000 },
    });
  });
  afterAll(async () => {
    held?.resolve();
    await gateway.stop();
    await front[Symbol.asyncDispose]();
    await sandbox.stop();
  });
  beforeEach(async () => {
    await control(gateway.sandbox, 'DELETE', '/sandbox/faults');
    await gateway.query('{ client { id } }');
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
  });

  const leave = {
    async HTTP({ mutation, input }: Payable, isSent: () => boolean | Promise<boolean>) {
      const going = new AbortController();
      const headers = { authorization: `Bearer ${gateway.sandbox.accessToken}` };
      const calling = sendQuery(gateway.graphql, documentOf(mutation), { input }, headers, going.signal);
      const gone = expect(calling).rejects.toThrow();
      await until(isSent);
      going.abort();
      await gone;
    },
    async WebSocket({ mutation, input }: Payable, isSent: () => boolean | Promise<boolean>) {
      await using calling = subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
        query: documentOf(mutation),
        variables: { input },
      });
      await until(isSent);
      await calling.leave();
      expect(calling.results).toEqual([]);
    },
  };

  describe.each(MUTATIONS)('%s', (mutation) => {
    it.each(['HTTP', 'WebSocket'] as const)(
      'does not call it back, over %s, and learns with the same key what came of it',
      async (transport) => {
        const payment = await payable(sandbox, mutation, `gone over ${transport}`.padEnd(38, mutation));
        held = Promise.withResolvers();
        const before = front.changes.length;
        await leave[transport](payment, () => front.changes.length > before);
        expect(await movementsOf(sandbox, payment.tag)).toEqual([]);
        const asking = gateway.query(documentOf(mutation), { input: payment.input });
        held.resolve();
        held = undefined;
        const { data } = await asking;
        const movements = await movementsOf(sandbox, payment.tag);
        expect(data.result).toMatchObject({ replayed: true, moved: { id: movements[0]?.transactionId } });
        expect(movements).toHaveLength(1);
        expect(await requestsOf(sandbox, payment.route)).toBe(1);
      },
    );
  });

  it('has nothing repeated in its name: the next call with the key goes on', async () => {
    const payment = await payable(sandbox, 'createMoneyOut', 'gone before a repeat');
    // Held up first, so that the app is gone by the time that the answer is lost.
    await inject(sandbox, { method: 'POST', path: payment.path }, 'hang', 1);
    const isSent = async () => (await requestsOf(sandbox, payment.route)) === 1;
    await leave.HTTP(payment, isSent);
    const { data } = await gateway.query(documentOf('createMoneyOut'), { input: payment.input });
    expect(data.result).toMatchObject({ replayed: false, moved: { id: expect.any(String) } });
    expect(await requestsOf(sandbox, payment.route)).toBe(2);
    expect(await movementsOf(sandbox, payment.tag)).toHaveLength(1);
  });
});
