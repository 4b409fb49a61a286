import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { Secret } from '../../../src/common/secret.ts';
import { readMetric } from '../../helpers/fleet.ts';
import { type RunningGateway, startGateway } from '../../helpers/gateway.ts';
import { ASKING } from '../../helpers/raw.ts';
import { startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';

const MONEY_IN = 'subscription { moneyIn { id } }';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({
    webhooks: false,
    config: { streams: { total: 6, perAddress: 3, perCaller: 2, perClient: 6 } },
  });
});
afterAll(() => gateway.stop());

/** A socket that presents something, or nothing, from an address that a proxy tells. */
function socketFrom(address: string, authorization: string | undefined, target = gateway.graphql): WebSocket {
  const socket = new WebSocket(target.replace(/^http/, 'ws'), 'graphql-transport-ws', {
    headers: { 'x-forwarded-for': address },
  });
  socket.on('error', () => undefined);
  socket.once('open', () =>
    socket.send(
      JSON.stringify({ type: 'connection_init', payload: { authorization, padding: 'x'.repeat(50_000) } }),
    ),
  );
  return socket;
}

const caller = () => `Bearer ${gateway.sandbox.accessToken}`;

/** What becomes of a socket: `ack`, or the code that it is closed with, or the status that its upgrade gets. */
async function fateOf(socket: WebSocket): Promise<string | number> {
  return await new Promise((resolve) => {
    socket.once('message', (data) =>
      resolve(JSON.parse(String(data)).type === 'connection_ack' ? 'ack' : String(data)),
    );
    socket.once('close', (code) => resolve(code));
    socket.once('unexpected-response', (_request, { statusCode }) => resolve(statusCode ?? 0));
  });
}

async function close(...sockets: WebSocket[]): Promise<void> {
  for (const socket of sockets) {
    if (socket.readyState === WebSocket.CLOSED) continue;
    socket.close();
    await once(socket, 'close');
  }
}

/** The gateway sees a socket's end a moment after its client. */
const untilFree = (): Promise<boolean> =>
  until(async () => {
    const socket = socketFrom('198.51.100.250', caller());
    const fate = await fateOf(socket);
    await close(socket);
    return fate === 'ack';
  });

describe('a socket', () => {
  it('whose address its proxy does not tell counts for none: the proxy brings everybody', async () => {
    const sockets = Array.from({ length: 4 }, () => {
      const headers = { 'x-forwarded-for': 'unknown' };
      return new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws', { headers });
    });
    await Promise.all(sockets.map((socket) => once(socket, 'open')));
    await close(...sockets);
    await untilFree();
  });

  it.each([
    ['nothing', undefined],
    ['what is no token', 'Bearer nonsense'],
    ['another scheme', 'Basic eDp5'],
    ['a token that names nobody', 'Bearer e30.e30.e30'],
    [
      'a well-formed token that the REST service refuses',
      `Bearer e30.${Buffer.from(JSON.stringify({ client_id: '11111111-2222-4333-8444-555555555555' })).toString('base64url')}.x`,
    ],
  ])('that presents %s is closed with 4403', async (_what, authorization) => {
    expect(await fateOf(socketFrom('198.51.100.1', authorization))).toBe(4403);
  });

  it('is asked to come back while nobody can tell who calls', async () => {
    await using blind = await startGateway({
      webhooks: false,
      sandbox: gateway.sandbox,
      config: { upstreamUrl: 'http://127.0.0.1:9', upstreamTimeoutMs: 500 },
    });
    expect(await fateOf(socketFrom('198.51.100.1', caller(), blind.graphql))).toBe(1013);
  });
});

describe('open streams', () => {
  it('are bounded for one caller, wherever it comes from', async () => {
    await untilFree();
    const sockets = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => socketFrom(address, caller()));
    expect((await Promise.all(sockets.map(fateOf))).sort()).toEqual([1013, 'ack', 'ack']);
    // A stream over SSE that is refused takes no place: these would be all that there are.
    for (let asked = 0; asked < 6; asked += 1) {
      const over = await fetch(gateway.graphql, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization: caller() },
        body: JSON.stringify({ query: MONEY_IN }),
      });
      expect(over.status).toBe(503);
      expect(await over.text()).toContain('Too many streams of this caller are open.');
    }
    await close(...sockets);
    await untilFree();
  });

  it('are refused over SSE before the log is read, and take no place where they cannot begin', async () => {
    await untilFree();
    const resume = () =>
      fetch(gateway.graphql, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization: caller() },
        body: JSON.stringify({ query: 'subscription { moneyIn(after: "nowhere") { id } }' }),
      }).then((response) => response.text());
    // More than there are places, each of which is asked for before the cursor is looked at.
    for (let asked = 0; asked < 8; asked += 1)
      await until(async () => (await resume()).includes('CURSOR_INVALID'));
    const sockets = ['192.0.2.1', '192.0.2.2'].map((address) => socketFrom(address, caller()));
    expect(await Promise.all(sockets.map(fateOf))).toEqual(['ack', 'ack']);
    expect(await resume()).toContain('Too many streams of this caller are open.');
    await close(...sockets);
    await untilFree();
  });

  it('take no place whose clients have left before they begin', async () => {
    await using redis = await startRedis();
    const { sandbox } = gateway;
    await using own = await startGateway({
      webhooks: false,
      sandbox,
      config: { redisUrl: new Secret(redis.url) },
    });
    // From here on the gateway knows who is calling.
    await own.query('{ client { id } }');
    const arrived = Promise.withResolvers<ServerResponse>();
    const note = (message: unknown): void => {
      const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
      if (request.headers.accept === 'text/event-stream') arrived.resolve(response);
    };
    diagnostics.subscribe('http.server.request.start', note);
    onTestFinished(() => void diagnostics.unsubscribe('http.server.request.start', note));
    redis.freeze();
    const leaving = new AbortController();
    const asked = fetch(own.graphql, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', authorization: caller() },
      body: JSON.stringify({ query: MONEY_IN }),
      signal: leaving.signal,
    }).catch(() => undefined);
    const response = await arrived.promise;
    // Its subscription has been begun by then, and waits for Redis.
    for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
    leaving.abort();
    await asked;
    await until(() => response.closed);
    redis.thaw();
    await until(async () => (await readMetric(own.url, 'pasarela_events_subscribers')) === 0);
    expect(await readMetric(own.url, 'pasarela_open_streams', 'kind="sse"')).toBe(0);
  });

  it('are bounded for one address, and for one network of IPv6 addresses', async () => {
    await untilFree();
    for (const address of [() => '203.0.113.7', (index: number) => `2001:db8:1:2:${index}::1`]) {
      // They have not said yet who they are.
      const silent = [0, 1, 2].map(
        (index) =>
          new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws', {
            headers: { 'x-forwarded-for': `10.9.9.9, ${address(index)}` },
          }),
      );
      await Promise.all(silent.map((socket) => once(socket, 'open')));
      expect(await fateOf(socketFrom(address(4), caller()))).toBe(429);
      const other = socketFrom('203.0.113.8', caller());
      expect(await fateOf(other)).toBe('ack');
      await close(...silent, other);
      await untilFree();
    }
  });

  it('are bounded in all, and their places are given back', async () => {
    await untilFree();
    const silent = Array.from(
      { length: 6 },
      (_, index) =>
        new WebSocket(gateway.graphql.replace(/^http/, 'ws'), 'graphql-transport-ws', {
          headers: { 'x-forwarded-for': `203.0.113.${index}` },
        }),
    );
    await Promise.all(silent.map((socket) => once(socket, 'open')));
    expect(await fateOf(socketFrom('203.0.113.99', caller()))).toBe(503);
    await close(...silent);
    await untilFree();
  });
});

describe('connections that carry nothing', () => {
  /** One from a loopback address, and whether the gateway keeps it: it answers, or hangs up. */
  async function connection(target: string, localAddress: string) {
    const { hostname, port } = new URL(target);
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    const isKept = async (): Promise<boolean> => {
      socket.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n');
      return new Promise((resolve) => {
        socket.once('data', () => resolve(true));
        socket.once('close', () => resolve(false));
      });
    };
    return { socket, isKept };
  }

  it('are bounded for one address, and leave room for others; one that ends makes room', async () => {
    await using small = await startGateway({
      webhooks: false,
      sandbox: gateway.sandbox,
      // Beside its streams an address may have a thousand.
      config: { trustedProxies: [], streams: { total: 6, perAddress: 3, perCaller: 2, perClient: 6 } },
    });
    const crowd: Awaited<ReturnType<typeof connection>>[] = [];
    for (let batch = 0; batch < 17; batch += 1) {
      const some = Array.from({ length: 59 }, () => connection(small.url, '127.0.0.1'));
      crowd.push(...(await Promise.all(some)));
    }
    expect(crowd).toHaveLength(1_003);
    const ask = async (address: string) => {
      const { socket, isKept } = await connection(small.url, address);
      const kept = await isKept();
      socket.destroy();
      return kept;
    };
    expect(await ask('127.0.0.1')).toBe(false);
    expect(await ask('127.0.0.2')).toBe(true);
    crowd.pop()?.socket.destroy();
    await until(() => ask('127.0.0.1'));
    for (const { socket } of crowd) socket.destroy();
  });

  it('of proxies are not, as they carry the requests of everybody', async () => {
    const some = await Promise.all(Array.from({ length: 1_100 }, () => connection(gateway.url, '127.0.0.1')));
    expect(await some.at(-1)?.isKept()).toBe(true);
    for (const { socket } of some) socket.destroy();
  });
});

/** Status and text of a request that fetch would not send. */
async function raw(lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', () => undefined);
  socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
  await once(socket, 'close');
  return text;
}

describe('a request', () => {
  const HOSTS = ['a b', '[::1', 'x:99999', '1.2.3.999', '<script>', '%zz', 'a@b', 'é', 'x'.repeat(300)];
  const paths = ['/graphql', '/graphql?query={__typename}', '/healthz', '/metrics', '/webhooks/a/CEP/b', '/'];

  it.each(HOSTS.flatMap((host) => paths.map((path) => [host.slice(0, 20), path, host] as const)))(
    'whose Host is %j gets a short 400 at %s',
    async (_what, path, host) => {
      for (const line of [`GET ${path} HTTP/1.1`, `POST ${path} HTTP/1.1`]) {
        const text = await raw([
          line,
          `Host: ${host}`,
          'Content-Type: application/json',
          'Content-Length: 0',
        ]);
        expect(text).toMatch(/^HTTP\/1\.1 400 /);
        expect(text.length).toBeLessThan(500);
        expect(text).not.toContain('at ');
      }
    },
  );

  it.each([
    '/%',
    '/graphql?query=%E0%A4%A',
    '/webhooks/%ZZ/CEP/x',
    '/%00',
    '//',
    '/graphql/%2e%2e',
    'http://x:y/',
    '*',
  ])('for %s gets no stack trace, and no 5xx', async (path) => {
    const text = await raw([`GET ${path} HTTP/1.1`, 'Host: x']);
    expect(text).toMatch(/^HTTP\/1\.1 [234]/);
    expect(text).not.toContain('node:');
  });

  it.each(['TRACE', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'QUERY'])(
    'of method %s gets 405',
    async (method) => {
      const text = await raw([`${method} /graphql HTTP/1.1`, 'Host: x']);
      expect(text).toMatch(/^HTTP\/1\.1 405 /);
      expect(text.toLowerCase()).toContain('allow: get, head, options, post');
    },
  );

  it('for an upgrade that breaks off ends nothing', async () => {
    const { hostname, port } = new URL(gateway.url);
    for (const path of ['/nothing', '/graphql']) {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
      socket.resetAndDestroy();
    }
    expect((await fetch(`${gateway.url}/healthz`)).ok).toBe(true);
  });
});

describe.each(ASKING)('a value of the variables, over %s,', (_way, ask) => {
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
  const ACCOUNT = 'query V($by: AccountBy!) { account(by: $by) { id } }';
  const EVENTS = 'subscription V($types: [EventType!]) { events(types: $types) { id } }';

  // Each error would show all of it: of 20,000 fields, ten errors took a tenth of a second and 44 MB.
  it.each([
    ['itself', ACCOUNT, { by: fields(101) }],
    ['one within it', ACCOUNT, { by: { clabe: [[fields(101)]] } }],
    ['one of a subscription', EVENTS, { types: fields(101) }],
  ])('is refused with more than 100 fields: %s', async (_what, query, variables) => {
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, { query, variables });
    expect(errors).toHaveLength(1);
    expect(errors?.[0]).toMatchObject({
      message: 'An object of the variables has more than the 100 fields that are allowed.',
      extensions: { code: 'TOO_COMPLEX' },
    });
  });

  // The gateway asked the service for the instrument of another id.
  it.each([
    ['itself', 'query V($id: ID!) { instrument(id: $id) { id } }', { id: 2 ** 53 }],
    ['in a list', 'query V($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: ['one', -(2 ** 53)] }],
    ['within an object', ACCOUNT, { by: { instrumentId: 1e20 } }],
    [
      'of a subscription',
      'subscription V($id: ID!) { cepStatus(transactionId: $id) { kind } }',
      { id: 1e20 },
    ],
  ])('is refused with a number that has lost digits: %s', async (_what, query, variables) => {
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, { query, variables });
    expect(errors).toHaveLength(1);
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('a number beyond 2^53'),
      extensions: { code: 'BAD_USER_INPUT' },
    });
  });

  it('is told which of its fields are unknown while there are 100', async () => {
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, {
      query: ACCOUNT,
      variables: { by: fields(100) },
    });
    expect(errors?.[0]).toMatchObject({
      message: expect.stringContaining('"k0"'),
      extensions: { code: 'BAD_USER_INPUT' },
    });
  });
});

describe('an API key', () => {
  const CLIENT = '11111111-2222-4333-8444-555555555555';
  /** Asks from an address, and tells the codes of the errors. */
  const ask = async (query: string, key: string, address: string): Promise<unknown[][]> => {
    const { errors = [] } = await gateway.query(
      query,
      {},
      {
        authorization: undefined,
        'x-api-key': key,
        'x-forwarded-for': address,
      },
    );
    return errors.map(({ message, extensions: { code, retryAfterMs } }) =>
      retryAfterMs === undefined ? [code, message] : [code, message, retryAfterMs],
    );
  };
  const one = `{ credentials(clientId: "${CLIENT}") { id } }`;

  it('is tried once in an operation', async () => {
    const many = `{ ${Array.from({ length: 25 }, (_, index) => `a${index}: credentials(clientId: "${CLIENT}") { id }`).join(' ')} }`;
    const codes = (await ask(many, 'wrong', '192.0.2.50')).map(([code]) => code);
    expect(codes.filter((code) => code === 'TOO_COMPLEX')).toHaveLength(24);
  });

  it('that was refused is not asked about again for a while, and ten refusals are enough for an address', async () => {
    const [[, first] = []] = await ask(one, 'wrong 0', '192.0.2.60');
    const [[code, second] = []] = await ask(one, 'wrong 0', '192.0.2.61');
    expect([code, second]).toEqual(['UNAUTHENTICATED', expect.stringContaining('just refused')]);
    expect(first).not.toBe(second);
    for (let index = 1; index < 10; index += 1) await ask(one, `wrong ${index}`, '192.0.2.60');
    expect(await ask(one, 'wrong 10', '192.0.2.60')).toEqual([
      ['UPSTREAM_RATE_LIMITED', expect.stringContaining('too many keys'), 60_000],
    ]);
    const [[elsewhere] = []] = await ask(one, 'wrong 10', '192.0.2.61');
    expect(elsewhere).toBe('UNAUTHENTICATED');
  });
});
