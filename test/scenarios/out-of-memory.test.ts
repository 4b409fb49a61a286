import { expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { pasarela } from '../cli/run.ts';
import { readMetric } from '../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { startRedis } from '../helpers/redis.ts';
import { subscribeOverWebSocket } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const LONG = { timeout: 300_000 };
const PAGE = '{ events(first: 10) { nodes { id } } }';

const readiness = async ({ url }: RunningGateway) => {
  const answer = await fetch(`${url}/readyz`);
  return { http: answer.status, ...JSON.parse(await answer.text()) };
};

/** Delivers a credit as the provider does. Returns the answer's status and the credit's id. */
async function credit({ ingress, sandbox }: RunningGateway) {
  const message = speiCredit();
  const address = ingress.url(sandbox.clientId, 'MONEY_IN') ?? '';
  const headers = { 'content-type': 'application/json' };
  const { status } = await fetch(address, { method: 'POST', headers, body: JSON.stringify(message) });
  return { status, id: message.id_msg };
}

// What becomes of payments is in faults/store-away.test.ts.
it(
  'a gateway whose Redis is out of memory takes credits and serves readers, says why it is degraded, and delivers each credit once there is memory',
  LONG,
  async () => {
    await using redis = await startRedis();
    const redisUrl = new Secret(redis.url);
    await using gateway = await startGateway({ config: { redisUrl }, webhooks: false });
    const { accessToken } = gateway.sandbox;
    const idsOfPage = async () =>
      (await gateway.query(PAGE)).data.events.nodes.map(({ id }: { id: string }) => id);
    await using reader = subscribeOverWebSocket(gateway.graphql, accessToken, {
      query: 'subscription { events { id } }',
    });
    await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === 1);
    const before = await credit(gateway);
    await reader.received(1);
    expect(await readiness(gateway)).toMatchObject({ http: 200, status: 'ready' });

    await redis.admin.config('SET', 'maxmemory', '1');
    const during = await credit(gateway);
    expect(during.status).toBe(201);
    await until(async () => String((await readiness(gateway)).degraded) === 'events,payments');
    const { http, reasons, spooled } = await readiness(gateway);
    expect({ http, spooled }).toEqual({ http: 200, spooled: 1 });
    expect(reasons).toContainEqual(expect.stringMatching(/^Redis refuses writes: OOM /));
    const told = await pasarela(['doctor', '--json'], { REDIS_URL: redis.url });
    expect(told.stdout).toMatch(/takes nothing that would stay. Redis refuses writes: OOM .*maxmemory/s);
    // Readers go on, who come now too.
    expect(await idsOfPage()).toEqual([before.id]);
    await using late = subscribeOverWebSocket(gateway.graphql, accessToken, {
      query: 'subscription ($after: Cursor) { events(after: $after) { id } }',
      variables: { after: (await gateway.query('{ eventCursor }')).data.eventCursor },
    });

    await redis.admin.config('SET', 'maxmemory', '0');
    await until(async () => (await readiness(gateway)).status === 'ready');
    const after = await credit(gateway);
    const idsOf = ({ results }: typeof reader) => results.map(({ data }) => data.events.id);
    await Promise.all([reader.received(3), late.received(2)]);
    expect(idsOf(reader)).toEqual([before.id, during.id, after.id]);
    expect(idsOf(late)).toEqual([during.id, after.id]);
    expect(await idsOfPage()).toEqual([before.id, during.id, after.id]);
  },
);
