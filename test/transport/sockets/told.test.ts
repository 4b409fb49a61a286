import { expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import { control, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { wireOverWebSocket } from '../../helpers/wire.ts';
import { inject, requestsOf } from '../../scenarios/faults/payments.ts';

const ACCOUNTS = '{ client { accounts { totalCount } } }';
const ROUTE = 'GET /v1/clients/{clientId}/accounts';

it('what a caller reads once it was told of an event is newer than what it read before', async () => {
  // The later query may join the first one however slow the machine is: this clock stands still.
  const now = clock.monotonic();
  onTestFinished(useClock({ ...clock, monotonic: () => now }));
  // The first read never ends: nobody who has joined it is sent on to a read of their own.
  const never = 3_600_000;
  await using gateway = await startGateway({
    webhooks: false,
    config: { listsMaxAgeMs: 0, upstreamTimeoutMs: never, operationTimeoutMs: never },
  });
  const { sandbox, graphql } = gateway;
  const headers = { authorization: `Bearer ${sandbox.accessToken}` };
  await using reader = await wireOverWebSocket(graphql, sandbox.accessToken, {
    query: 'subscription { events { id cursor } }',
  });
  await until(() => reader.heard.length > 0);
  await inject(sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  await control(sandbox, 'DELETE', '/sandbox/requests');
  const left = new AbortController();
  const before = sendQuery(graphql, ACCOUNTS, {}, headers, left.signal).catch(() => undefined);
  await until(async () => (await requestsOf(sandbox, ROUTE)) === 1);
  await fetch(gateway.ingress.url(sandbox.clientId, 'STATUS_UPDATE') ?? '', {
    method: 'POST',
    body: JSON.stringify({ id_msg: 'a message' }),
  });
  await until(() => reader.heard.some(({ kind }) => kind === 'event'));
  // The same question, which the service has not answered yet: its answer would be older than the event.
  const { data, errors } = await gateway.query(ACCOUNTS);
  expect(errors).toBeUndefined();
  expect(data.client.accounts.totalCount).toBeGreaterThan(0);
  expect(await requestsOf(sandbox, ROUTE)).toBe(2);
  left.abort();
  await before;
});
