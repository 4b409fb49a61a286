import { expect, it } from 'vitest';
import { sendQuery, startGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { inject } from '../../scenarios/faults/payments.ts';

const WAITING = /^pasarela_operations_waiting (\d+)$/m;

it('an operation whose caller has left waits for no turn', async () => {
  await using gateway = await startGateway({
    webhooks: false,
    config: {
      upstreamCallsPerCaller: 1,
      upstreamTimeoutMs: 60_000,
      operationTimeoutMs: 60_000,
      listsMaxAgeMs: 0,
    },
  });
  const headers = { authorization: `Bearer ${gateway.sandbox.accessToken}` };
  await gateway.query('{ client { id } }');
  await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  const left = new AbortController();
  const ask = (document: string, signal: AbortSignal) =>
    sendQuery(gateway.graphql, document, {}, headers, signal).catch(() => undefined);
  const waiting = async () => Number(WAITING.exec(await (await fetch(`${gateway.url}/metrics`)).text())?.[1]);
  const end = new AbortController();
  let isWaiting = true;
  const first = ask('{ client { accounts { totalCount } } }', end.signal).finally(() => {
    isWaiting = false;
  });
  const others = [1, 2].map((number) => ask(`{ n${number}: client { id } }`, left.signal));
  await until(async () => (await waiting()) === others.length);
  left.abort();
  await Promise.all(others);
  // The one that they waited for is not answered yet.
  await until(async () => (await waiting()) === 0);
  expect(isWaiting).toBe(true);
  end.abort();
  await first;
});

it('a query that joins the same one under way takes no place, and is not refused where there is none', async () => {
  await using gateway = await startGateway({
    webhooks: false,
    config: {
      upstreamCallsPerCaller: 1,
      operationsQueue: 0,
      upstreamTimeoutMs: 1_000,
      operationTimeoutMs: 2_000,
      listsMaxAgeMs: 0,
    },
  });
  await gateway.query('{ client { id } }');
  await inject(gateway.sandbox, { method: 'GET', path: '/v1/clients/*/accounts' }, 'hang', 1);
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => gateway.query('{ client { accounts { totalCount } } }')),
  );
  const codes = answers.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions['code']));
  expect(codes).not.toContain('RATE_LIMITED');
});
