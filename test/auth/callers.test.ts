import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KnownCallers } from '../../src/auth/known-callers.ts';
import type { Asker } from '../../src/upstream/call/shared-work.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

const CLIENT = '{ client { id } }';
const ASKER: Asker = {
  requester: { caller: 'one', group: 'one' },
  urgency: 'operations',
  deadline: Date.now() + 600_000,
  leaver: undefined,
};
const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

describe('a gateway in service mode', () => {
  let gateway: RunningGateway;
  beforeAll(async () => {
    gateway = await startGateway({ webhooks: false });
  });
  afterAll(() => gateway.stop());

  it('serves no operation whose token has ended while it waited in the queue', async () => {
    const { sandbox } = gateway;
    await using service = await startGateway({
      sandbox,
      webhooks: false,
      config: { service: serviceFor(sandbox), upstreamCallsPerCaller: 1 },
    });
    const lasting = { authorization: `Bearer ${await callerToken({ sub: 'one' })}` };
    await service.query(CLIENT, {}, lasting);
    const exp = inSeconds(5);
    const ending = { authorization: `Bearer ${await callerToken({ sub: 'one', exp })}` };
    // The same subject has its share under way, and the other waits for it.
    expect((await service.query(CLIENT, {}, ending)).errors).toBeUndefined();
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/transactions/*' },
      fault: { delayMs: 6_500 },
    });
    const id = '11111111-2222-4333-8444-555555555555';
    const query = `{ transaction(id: "${id}") { id } }`;
    const first = service.query(query, {}, lasting);
    await until(
      async () =>
        (await control(sandbox, 'GET', '/sandbox/requests')).counts[
          'GET /v1/clients/{clientId}/transactions/{transactionId}'
        ] > 0,
    );
    const second = await service.query(query, {}, ending);
    expect(Date.now()).toBeGreaterThan(exp * 1_000);
    expect(second.errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED' });
    await first;
    await control(sandbox, 'DELETE', '/sandbox/faults');
  });
});

describe('callers who ask who they are at the same time', () => {
  const caller = {
    clientId: 'c',
    customerId: undefined,
    subject: undefined,
    keyOwner: undefined,
    scopes: new Set<never>(),
    expiresAt: undefined,
  };

  it('share one question, and one that fails is asked again', async () => {
    const known = new KnownCallers();
    const asked: PromiseWithResolvers<typeof caller>[] = [];
    const ask = () => {
      const one = Promise.withResolvers<typeof caller>();
      asked.push(one);
      return one.promise;
    };
    const both = Promise.allSettled([known.find('t', ask, false, ASKER), known.find('t', ask, false, ASKER)]);
    asked[0]?.reject(new Error('away'));
    expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    const again = known.find('t', ask, false, ASKER);
    asked[1]?.resolve(caller);
    expect(await again).toBe(caller);
    expect(known.find('t', ask, false, ASKER)).toBe(caller);
    expect(asked).toHaveLength(2);
  });

  it('go on where the one that asked first leaves in the midst of it', async () => {
    await using gateway = await startGateway({ webhooks: false });
    const { sandbox } = gateway;
    await control(sandbox, 'POST', '/sandbox/faults', {
      match: { path: '/v1/clients/*/instruments' },
      fault: { delayMs: 500 },
    });
    const leaving = new AbortController();
    const left = fetch(gateway.graphql, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${sandbox.accessToken}` },
      body: JSON.stringify({ query: CLIENT }),
      signal: leaving.signal,
    }).catch(() => 'left');
    await until(
      async () =>
        (await control(sandbox, 'GET', '/sandbox/requests')).counts[
          'GET /v1/clients/{clientId}/instruments'
        ] > 0,
    );
    const staying = gateway.query(CLIENT);
    leaving.abort();
    expect(await left).toBe('left');
    expect((await staying).data.client.id).toBe(sandbox.clientId);
    await control(sandbox, 'DELETE', '/sandbox/faults');
  });
});
