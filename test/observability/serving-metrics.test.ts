import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import packageOfGateway from '../../package.json' with { type: 'json' };
import { Secret } from '../../src/common/secret.ts';
import { readMetric } from '../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { DURABLE, type RedisServer, startRedis } from '../helpers/redis.ts';
import { serviceFor } from '../helpers/service.ts';
import { until } from '../helpers/until.ts';

const CLIENT = '{ client { id } }';

describe('a gateway on a Redis', () => {
  let redis: RedisServer;
  let gateway: RunningGateway;
  beforeAll(async () => {
    redis = await startRedis();
    gateway = await startGateway({ webhooks: false, config: { redisUrl: new Secret(redis.url) } });
  });
  afterAll(async () => {
    await gateway.stop();
    await redis.stop();
  });
  const metric = (name: string, label?: string) => readMetric(gateway.url, `pasarela_${name}`, label);
  const answers = (path: string, status: number) =>
    metric('http_request_duration_seconds_count', `path="${path}",status="${status}"`);

  it('counts what it answers, by path and status, and not the streams', async () => {
    const address = gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '';
    const post = (url: string) => fetch(url, { method: 'POST', body: '{"id_msg":"one"}' });
    expect((await post(address)).status).toBe(201);
    expect((await post(`${address}x`)).status).toBe(401);
    // As urql asks for it.
    await gateway.query(CLIENT, {}, { accept: 'application/json, text/event-stream, multipart/mixed' });
    await fetch(`${gateway.url}/nothing`);
    await until(async () => (await answers('other', 404)) === 1);
    expect(await answers('/webhooks/', 201)).toBe(1);
    expect(await answers('/webhooks/', 401)).toBe(1);
    expect(await answers('/graphql', 200)).toBe(1);

    const leaving = new AbortController();
    const stream = await fetch(gateway.graphql, {
      method: 'POST',
      headers: {
        accept: '*/*',
        'content-type': 'application/json',
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
      },
      body: '{"query":"subscription { events { id } }"}',
      signal: leaving.signal,
    });
    expect(stream.status).toBe(200);
    expect(await metric('open_streams', 'kind="sse"')).toBe(1);
    leaving.abort();
    await until(async () => (await metric('events_subscribers')) === 0);
    await until(async () => (await metric('open_streams', 'kind="sse"')) === 0);
    expect(await metric('http_request_duration_seconds_count', 'path="/graphql"')).toBe(1);
  });

  it('counts sockets that are closed, by code, of those that mean something', async () => {
    const closes = (code: string) => metric('socket_closes_total', `code="${code}"`);
    for (const code of [1000, 4321]) {
      const socket = new WebSocket(gateway.graphql.replace('http', 'ws'), 'graphql-transport-ws');
      await once(socket, 'open');
      expect(await metric('open_streams', 'kind="websocket"')).toBe(1);
      socket.close(code);
      await once(socket, 'close');
    }
    await until(async () => (await closes('1000')) === 1 && (await closes('other')) === 1);
    expect(await metric('socket_closes_total')).toBe(2);
  });

  it('says what runs, and whether it is ready, however often Redis goes and comes', async () => {
    const version = `version="${packageOfGateway.version}",node="${process.versions.node}"`;
    expect(await metric('build_info', version)).toBe(1);
    for (const _round of [1, 2]) {
      await until(async () => (await metric('redis_up')) === 1 && (await metric('degraded')) === 0);
      expect(await metric('redis_ping_seconds')).toBeGreaterThan(0);
      await redis.kill();
      await until(async () => (await metric('redis_up')) === 0);
      await until(async () => (await metric('degraded', 'part="events"')) === 1);
      // It still keeps events, on its own disk.
      expect(await metric('ready')).toBe(1);
      await redis.start();
    }
  });
});

it('the log tells of a replica that is lost, and of one that comes, each time', async () => {
  await using primary = await startRedis([...DURABLE, '--repl-diskless-sync-delay', '0']);
  await using replica = await startRedis([...DURABLE, '--replicaof', '127.0.0.1', String(primary.port)]);
  await using gateway = await startGateway({
    webhooks: false,
    config: { redisUrl: new Secret(primary.url) },
  });
  const told = (text: string) => gateway.log.filter((line) => line.includes(text)).length;
  // Whoever asks for readiness has Redis looked at.
  const look = () => fetch(`${gateway.url}/readyz`);
  for (const round of [1, 2]) {
    await until(async () => (await look()).ok && told('"Redis has a replica more"') === round);
    await replica.kill();
    await until(async () => (await look()).ok && told('"Redis has lost a replica"') === round);
    await replica.start();
  }
});

it('a gateway without Redis says nothing of one', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  expect(text).not.toMatch(/^pasarela_redis_up/m);
  expect(text).toMatch(/^pasarela_ready 1$/m);
});

it('says when the settler has gone through the payments last, in service mode alone', async () => {
  await using passthrough = await startGateway({ webhooks: false });
  const { sandbox } = passthrough;
  await using gateway = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: serviceFor(sandbox) },
  });
  const lastPass = (url: string) => readMetric(url, 'pasarela_settler_last_pass_timestamp_seconds');
  const begun = Date.now() / 1000;
  await until(async () => (await lastPass(gateway.url)) > begun);
  expect(await (await fetch(`${passthrough.url}/metrics`)).text()).not.toMatch(/^pasarela_settler/m);
});

it('counts tokens that are not believed, and readings of keys that fail', async () => {
  await using gateway = await startGateway({ webhooks: false });
  const { sandbox } = gateway;
  const keys = { jwksUrl: 'http://127.0.0.1:1/keys', cooldownMs: 1, maxAgeMs: 60_000 };
  await using keyed = await startGateway({
    sandbox,
    webhooks: false,
    config: { service: { ...serviceFor(sandbox), keys } },
  });
  await keyed.query(CLIENT, {}, { authorization: 'Bearer nonsense' });
  const header = Buffer.from('{"alg":"ES256","kid":"one"}').toString('base64url');
  const unread = await keyed.query(CLIENT, {}, { authorization: `Bearer ${header}.e30.AA` });
  expect(unread.errors?.[0]?.extensions['code']).toBe('UPSTREAM_UNAVAILABLE');
  const refused = (reason: string) =>
    readMetric(keyed.url, 'pasarela_tokens_refused_total', `reason="${reason}"`);
  expect(await refused('malformed')).toBe(1);
  expect(await refused('keys')).toBeGreaterThan(0);
  expect(await refused('signature')).toBe(0);
  expect(await readMetric(keyed.url, 'pasarela_jwks_reads_total', 'outcome="error"')).toBeGreaterThan(0);
});
