import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { Secret } from '../../src/common/secret.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { readMetric } from '../helpers/fleet.ts';
import { fillSpool } from '../helpers/full-spool.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { subscribeOverWebSocket } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const EVENTS = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';
const LARGE = `subscription { events { ... on StatusUpdateEvent {
  ${Array.from({ length: 25 }, (_, index) => `p${index}: payload`).join(' ')}
} } }`;
const RETENTION = 100;
const OLDER = 'the secret before';

let redis: RedisServer;
let gateway: RunningGateway;
beforeAll(async () => {
  redis = await startRedis();
  gateway = await startGateway({
    webhooks: false,
    config: {
      redisUrl: new Secret(redis.url),
      eventsRetention: RETENTION,
      webhookSecrets: [new Secret('the first secret'), new Secret(OLDER)],
    },
  });
});
afterAll(async () => {
  await gateway.stop();
  await redis.stop();
});

const metric = (name: string, label?: string) => readMetric(gateway.url, `pasarela_events_${name}`, label);
const deliver = async (type: 'MONEY_IN' | 'STATUS_UPDATE', body: unknown): Promise<number> => {
  const response = await fetch(gateway.ingress.url(gateway.sandbox.clientId, type) ?? '', {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return response.status;
};
const subscribe = (after?: string) =>
  subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
    query: EVENTS,
    variables: { after },
  });

it('every number about events moves when that happens which it counts, and only then', async () => {
  const { data } = await gateway.query('{ eventCursor }');
  await using subscriber = subscribe(data.eventCursor);
  await until(async () => (await metric('subscribers')) === 1);

  const credit = speiCredit();
  expect(await deliver('MONEY_IN', credit)).toBe(201);
  await subscriber.received(1);
  expect(await metric('appended_total', 'type="MONEY_IN"')).toBe(1);
  expect(await metric('delivered_total', 'type="MONEY_IN"')).toBe(1);
  expect(await metric('delivery_latency_seconds_count')).toBe(1);

  {
    // Who comes later is handed it as well, and how old it is by then says nothing of the way that it took.
    await using late = subscribe(data.eventCursor);
    await late.received(1);
    expect(await metric('delivered_total', 'type="MONEY_IN"')).toBe(2);
    expect(await metric('delivery_latency_seconds_count')).toBe(1);
  }

  expect(await deliver('MONEY_IN', credit)).toBe(201);
  expect(await metric('duplicates_total', 'conflict="false"')).toBe(1);
  expect(await deliver('MONEY_IN', speiCredit({ id_msg: credit.id_msg }))).toBe(201);
  expect(await metric('duplicates_total', 'conflict="true"')).toBe(1);
  expect(await metric('quarantined_total', 'reason="conflict"')).toBe(1);
  expect(await deliver('MONEY_IN', 'no JSON')).toBe(400);
  expect(await metric('quarantined_total', 'reason="unreadable"')).toBe(1);
  expect(await metric('appended_total')).toBe(1);
  expect(await metric('older_secret_total')).toBe(0);
  const older = ingressUrl(gateway.url, gateway.sandbox.clientId, 'CEP', OLDER);
  expect((await fetch(older, { method: 'POST', body: 'no JSON' })).status).toBe(400);
  expect(await metric('older_secret_total', 'type="CEP"')).toBe(1);

  await redis.kill();
  expect(await deliver('STATUS_UPDATE', { id_msg: 'spooled' })).toBe(201);
  expect(await metric('spooled_total', 'type="STATUS_UPDATE"')).toBe(1);
  expect(await metric('drained_total')).toBe(0);
  await redis.start();
  await subscriber.received(2);
  await until(async () => (await metric('drained_total', 'type="STATUS_UPDATE"')) === 1);
  expect(await metric('delivered_total')).toBe(3);

  await redis.admin.publish(`{${gateway.sandbox.clientId}}:events`, 'channelDecodeError');
  await until(async () => (await metric('channel_decode_errors_total')) === 1);
  expect(await metric('slow_consumer_disconnects_total')).toBe(0);
  expect(await metric('gaps_total')).toBe(0);

  const stalled = new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  stalled.on('error', () => {});
  await once(stalled, 'open');
  const authorization = `Bearer ${gateway.sandbox.accessToken}`;
  stalled.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  await once(stalled, 'message');
  stalled.pause();
  stalled.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: LARGE } }));
  await until(async () => (await metric('subscribers')) === 2);
  for (let number = 0; (await metric('slow_consumer_disconnects_total')) === 0; number += 1) {
    await deliver('STATUS_UPDATE', { id_msg: `fills-${number}`, filling: 'x'.repeat(60_000) });
  }
  stalled.terminate();
  await until(async () => (await metric('subscribers')) === 1);

  // More than the gateway remembers beside the log.
  for (let number = 0; number < 3 * RETENTION; number += 1) {
    await deliver('STATUS_UPDATE', { id_msg: `trims-${number}` });
  }
  await using late = subscribe(data.eventCursor);
  await late.ended;
  expect(await metric('gaps_total')).toBe(1);
  expect(await metric('slow_consumer_disconnects_total')).toBe(1);
  await subscriber.leave();
  await until(async () => (await metric('subscribers')) === 0);
});

it('a spool that takes no event is told of apart from one that cannot be read, also while both are there', async () => {
  await using cleanup = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-event-metrics-'));
  cleanup.defer(() => rm(dataDir, { recursive: true }));
  await writeFile(join(dataDir, 'spooled-0.sqlite'), 'something else'.repeat(100));
  await fillSpool(dataDir, 'true');
  const config = { dataDir, redisUrl: new Secret(redis.url) };
  const { url } = cleanup.use(await startGateway({ webhooks: false, config }));
  await until(async () => (await readMetric(url, 'pasarela_events_spool_unwritable')) === 1);
  expect(await readMetric(url, 'pasarela_events_unreadable_spools')).toBe(1);
  expect(await metric('spool_unwritable')).toBe(0);
});
