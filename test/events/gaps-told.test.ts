import { expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { readMetric } from '../helpers/fleet.ts';
import { startGateway } from '../helpers/gateway.ts';
import { startRedis } from '../helpers/redis.ts';
import { subscribeOverSse, subscribeOverWebSocket } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const RETENTION = 3;
const EVENTS = 'subscription { events { id } }';
const PAGE = 'query ($after: Cursor) { events(after: $after) { nodes { id } } }';

it('a gap is counted for each reader that is told of it, by its reason, and logged once for all', async () => {
  await using redis = await startRedis();
  await using gateway = await startGateway({
    webhooks: false,
    config: { redisUrl: new Secret(redis.url), eventsRetention: RETENTION },
  });
  const { clientId, accessToken } = gateway.sandbox;
  const deliver = async (count: number) => {
    for (let sent = 0; sent < count; sent += 1)
      await fetch(gateway.ingress.url(clientId, 'STATUS_UPDATE') ?? '', { method: 'POST', body: '{}' });
  };
  const told = (reason: string) =>
    readMetric(gateway.url, 'pasarela_events_gaps_total', `reason="${reason}"`);
  const head = async () => (await gateway.query('{ eventCursor }')).data.eventCursor;
  const codeAfter = async (after: string) => {
    const { errors } = await gateway.query(PAGE, { after });
    return errors?.[0]?.extensions['code'];
  };
  const lines = () =>
    gateway.log
      .map((line) => JSON.parse(line))
      .filter(({ message }) => message === 'readers are told that events are missing')
      .map(({ level, clientId: client, reason }) => [level, client, reason]);

  // The sockets share one follower of the log.
  const ways = [subscribeOverWebSocket, subscribeOverWebSocket, subscribeOverWebSocket];
  const readers = [...ways, subscribeOverSse].map((subscribe) =>
    subscribe(gateway.graphql, accessToken, { query: EVENTS }),
  );
  await until(async () => (await readMetric(gateway.url, 'pasarela_events_subscribers')) === readers.length);
  await deliver(1);
  for (const reader of readers) await reader.received(1);
  const before = await head();
  expect([await told('begun-anew'), await told('trimmed'), await told('lost')]).toEqual([0, 0, 0]);
  await redis.admin.flushall();
  await deliver(1);
  for (const reader of readers) {
    await reader.ended;
    expect(reader.results[1]).toMatchObject({ errors: [{ extensions: { code: 'EVENTS_GAP' } }] });
  }
  expect(await told('begun-anew')).toBe(readers.length);
  expect(await codeAfter(before)).toBe('EVENTS_GAP');
  expect(await told('begun-anew')).toBe(readers.length + 1);

  const old = await head();
  await deliver(RETENTION + 1);
  expect(await codeAfter(old)).toBe('EVENTS_GAP');
  expect([await told('trimmed'), await told('lost')]).toEqual([1, 0]);
  expect(lines()).toEqual([
    ['warn', clientId, 'begun-anew'],
    ['warn', clientId, 'trimmed'],
  ]);
  for (const reader of readers) await reader.leave();
});
