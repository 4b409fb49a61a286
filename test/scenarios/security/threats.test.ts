import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { BankFieldNames } from '../../../src/upstream/banks.ts';
import { control, type RunningGateway, sendQuery, startGateway } from '../../helpers/gateway.ts';
import { ASKING } from '../../helpers/raw.ts';

const CLIENT = '{ client { id } }';
const ALLOWED = 'https://app.example.mx';
const FOREIGN = 'https://evil.example';

/** Nothing that the service answers is an unexpected error: only a mistake of the gateway's own is. */
const BROKEN: BankFieldNames = {
  get name(): readonly string[] {
    throw new TypeError('a mistake in the insides');
  },
  institutionCode: [],
  clabeCode: [],
};

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await startGateway({
    webhooks: false,
    config: { introspection: false, allowsOrigin: (origin) => origin === ALLOWED, bankFieldNames: BROKEN },
  });
});
afterAll(() => gateway.stop());

const post = (headers: Record<string, string>, body: string) =>
  fetch(gateway.graphql, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.sandbox.accessToken}`, ...headers },
    body,
  });

const socketTo = (options: { origin?: string; autoPong?: boolean } = {}) =>
  new WebSocket(gateway.graphql.replace('http', 'ws'), 'graphql-transport-ws', options);

async function acknowledged(): Promise<WebSocket> {
  const socket = socketTo();
  await once(socket, 'open');
  const ack = once(socket, 'message');
  const authorization = `Bearer ${gateway.sandbox.accessToken}`;
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  await ack;
  return socket;
}

describe.each(ASKING)('over %s', (_transport, ask) => {
  it.each([
    '../banks',
    '..',
    '%2e%2e',
    '%2e%2e%2fbanks',
    'a?b=c',
    'a#b',
    'a/b',
    'a\\b',
    'a b',
    'x'.repeat(65),
    '',
  ])('the id %j is BAD_USER_INPUT before any call is made', async (id) => {
    await gateway.query(CLIENT);
    await control(gateway.sandbox, 'DELETE', '/sandbox/requests');
    for (const field of ['instrument', 'transaction', 'customer', 'bank', 'webhook']) {
      const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, {
        query: `query ($id: ID!) { ${field}(id: $id) { id } }`,
        variables: { id },
      });
      expect(errors?.[0]?.extensions).toMatchObject({ code: 'BAD_USER_INPUT' });
    }
    expect((await control(gateway.sandbox, 'GET', '/sandbox/requests')).total).toBe(0);
  });

  it('an unexpected error is masked, with an id to ask about, and its cause is in the log', async () => {
    const { errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, { query: '{ banks { id } }' });
    expect(errors?.[0]).toMatchObject({
      message: 'Unexpected error',
      extensions: { code: 'INTERNAL', requestId: expect.any(String) },
    });
    expect(JSON.stringify(errors)).not.toMatch(/insides|\.ts/);
    const requestId = String(errors?.[0]?.extensions['requestId']);
    expect(gateway.log.find((line) => line.includes(requestId))).toContain('insides');
  });

  it('__proto__ and its like are inert, in variables and in JSON', async () => {
    const variables = JSON.parse(
      '{ "id": "11111111-2222-4333-8444-555555555555", "__proto__": { "polluted": 1 }, "constructor": { "prototype": { "polluted": 1 } } }',
    );
    const { data, errors } = await ask(gateway.graphql, gateway.sandbox.accessToken, {
      query: 'query ($id: ID!) { customer(id: $id) { id } }',
      variables,
      extensions: JSON.parse('{ "__proto__": { "polluted": 1 } }'),
    });
    expect(errors).toBeUndefined();
    expect(data).toEqual({ customer: null });
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  });

  it('two callers at once are each answered with their own', async () => {
    const { otherClients } = await control(gateway.sandbox, 'GET', '/sandbox');
    const clients = [gateway.sandbox, otherClients[0]];
    const query =
      '{ client { id instruments(first: 100) { nodes { client { id } ownerId } } accounts { nodes { ownerId } } } }';
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const { clientId, accessToken } = clients[index % 2];
        return { clientId, answer: await ask(gateway.graphql, accessToken, { query }) };
      }),
    );
    for (const { clientId, answer } of answers) {
      expect(answer.errors).toBeUndefined();
      expect(answer.data.client.id).toBe(clientId);
      const [other] = clients.filter((client) => client.clientId !== clientId);
      expect(JSON.stringify(answer.data)).not.toContain(other.clientId);
    }
  });
});

describe('a request that another site’s page could send', () => {
  it.each([
    ['text/plain', '{"query":"{ client { id } }"}'],
    ['application/x-www-form-urlencoded', 'query={client{id}}'],
    [
      'multipart/form-data; boundary=x',
      '--x\r\nContent-Disposition: form-data; name="query"\r\n\r\n{client{id}}\r\n--x--',
    ],
    ['application/graphql', '{ client { id } }'],
    ['', '{"query":"{ client { id } }"}'],
  ])('is refused as %j', async (type, body) => {
    const response = await post({ 'content-type': type }, body);
    expect(response.status).toBe(415);
    expect(await response.text()).not.toContain(gateway.sandbox.clientId);
  });

  it.each(['application/json', 'text/event-stream', '*/*'])('is refused as a GET for %s', async (accept) => {
    for (const site of ['cross-site', 'same-site']) {
      const url = `${gateway.graphql}?query={client{id}}`;
      const response = await fetch(url, { headers: { accept, 'sec-fetch-site': site } });
      expect(response.status).toBe(403);
    }
  });

  it.each(['same-origin', 'none'])('is no GET of the page itself, or of a person: %s', async (site) => {
    const url = `${gateway.graphql}?query={__typename}`;
    const headers = { accept: 'application/json', 'sec-fetch-site': site };
    expect(await (await fetch(url, { headers })).json()).toEqual({ data: { __typename: 'Query' } });
  });

  it('changes nothing as a GET, from wherever', async () => {
    const url = `${gateway.graphql}?query=mutation{deleteWebhook(input:{id:"x"}){__typename}}`;
    const headers = { authorization: `Bearer ${gateway.sandbox.accessToken}`, accept: 'application/json' };
    expect((await fetch(url, { headers })).status).toBe(405);
  });

  it('is not one of several in an array', async () => {
    const body = JSON.stringify([{ query: CLIENT }, { query: CLIENT }]);
    const response = await post({ 'content-type': 'application/json' }, body);
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(await response.text()).not.toContain(gateway.sandbox.clientId);
  });
});

describe('CORS', () => {
  const preflight = (origin: string) =>
    fetch(gateway.graphql, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,authorization',
      },
    });

  it('names an allowed origin exactly, and never with credentials', async () => {
    const { headers } = await preflight(ALLOWED);
    expect(headers.get('access-control-allow-origin')).toBe(ALLOWED);
    expect(headers.get('access-control-allow-credentials')).not.toBe('true');
  });

  it.each([FOREIGN, `${ALLOWED}.evil.example`, `${ALLOWED}:8443`, 'null', 'http://app.example.mx', '*'])(
    'is not granted to %s, before or with a request',
    async (origin) => {
      const { headers } = await preflight(origin);
      expect(headers.get('access-control-allow-origin')).toBeNull();
      const response = await post(
        { 'content-type': 'application/json', origin },
        JSON.stringify({ query: CLIENT }),
      );
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    },
  );
});

it('GraphiQL is not served where it is off', async () => {
  for (const path of ['/graphql', '/']) {
    const response = await fetch(`${gateway.url}${path}`, {
      headers: { accept: 'text/html' },
      redirect: 'manual',
    });
    expect(response.status).toBeGreaterThanOrEqual(400);
    // A person reads what this address is for; no page and no script comes along.
    expect(response.headers.get('content-type')).not.toContain('html');
    expect(await response.text()).not.toContain('<');
  }
});

describe('a socket', () => {
  it.each([FOREIGN, 'null', `${ALLOWED}.evil.example`])('is not opened to a page of %s', async (origin) => {
    const [error] = await once(socketTo({ origin }), 'error');
    expect(String(error)).toContain('403');
  });

  it('is opened to a page of an allowed origin or of its own, also behind a proxy that ends TLS, and to programs', async () => {
    const own = [gateway.url, gateway.url.replace('http', 'https')];
    for (const origin of [ALLOWED, ...own, undefined]) {
      const socket = socketTo(origin === undefined ? {} : { origin });
      await once(socket, 'open');
      socket.terminate();
    }
  });

  it('is not opened elsewhere', async () => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/elsewhere`, 'graphql-transport-ws');
    const [error] = await once(socket, 'error');
    expect(String(error)).toContain('404');
  });

  it('is closed by a message over 64 KiB, by what is no message, and by an operation before its init', async () => {
    const cases = [
      [JSON.stringify({ type: 'ping', payload: { filler: 'x'.repeat(65 * 1024) } }), 1009],
      ['nonsense', 4400],
      [JSON.stringify({ type: 'connection_ack' }), 4400],
      [JSON.stringify({ id: '1', type: 'subscribe', payload: { query: 7 } }), 4400],
      [JSON.stringify({ id: '1', type: 'subscribe', payload: { query: CLIENT } }), 4401],
    ] as const;
    for (const [message, code] of cases) {
      const socket = socketTo();
      await once(socket, 'open');
      socket.send(message);
      const [closedWith, reason] = await once(socket, 'close');
      expect(closedWith).toBe(code);
      expect(String(reason)).not.toMatch(/nonsense|\.ts|JSON/);
    }
  });

  it('carries twenty operations at once, and refuses one more', async () => {
    const socket = await acknowledged();
    const refused = new Promise<{ id: string; payload: unknown }>((resolve) => {
      socket.on('message', (data) => {
        const message = JSON.parse(String(data));
        if (message.type === 'error') resolve(message);
      });
    });
    for (let id = 1; id <= 21; id += 1) {
      const payload = { query: 'subscription { moneyIn { cursor } }' };
      socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload }));
    }
    expect(await refused).toMatchObject({
      id: '21',
      payload: [{ message: expect.stringContaining('20'), extensions: { code: 'TOO_COMPLEX' } }],
    });
    socket.terminate();
  });
});

it('nobody holds a connection by sending slowly, or by saying nothing', async () => {
  const port = Number(new URL(gateway.url).port);
  /** All that comes until the gateway ends the connection. */
  const untilEnded = async (start: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.on('data', (chunk) => {
      received += String(chunk);
    });
    socket.on('error', () => undefined);
    socket.write(start);
    // One more byte now and then, so that the connection is never idle.
    const drip = setInterval(() => socket.write('x'), 1_000);
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(drip);
    return received;
  };
  const silent = socketTo();
  const pinged = await acknowledged();
  const [headers, body, [code]] = await Promise.all([
    untilEnded('POST /graphql HTTP/1.1\r\nHost: x\r\nX-Slow: '),
    untilEnded(
      'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"query":"',
    ),
    once(silent, 'close'),
    once(pinged, 'ping'),
  ]);
  expect(headers).toContain('408');
  expect(body).toMatch(/^(HTTP\/1\.1 4\d\d|$)/);
  expect(code).toBe(4408);
  pinged.terminate();
});

describe('an upstream that', () => {
  const MEGABYTE = 'x'.repeat(1024 * 1024);
  const cases: readonly (readonly [
    string,
    string,
    (request: IncomingMessage, response: ServerResponse) => void,
  ])[] = [
    ['hangs', 'UPSTREAM_TIMEOUT', () => undefined],
    [
      'hangs in the middle of its answer',
      'UPSTREAM_TIMEOUT',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"data": [');
      },
    ],
    [
      'floods',
      'UPSTREAM_INVALID',
      (_, response) => {
        response.writeHead(200);
        const more = () => {
          while (!response.destroyed && response.write(MEGABYTE));
        };
        response.on('drain', more);
        more();
      },
    ],
    [
      'redirects',
      'UPSTREAM_INVALID',
      (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
    ],
    [
      'lies about its length',
      'UPSTREAM_UNAVAILABLE',
      (_, response) => {
        response.writeHead(200, { 'content-length': '1000' });
        response.write('{}');
        response.socket?.end();
      },
    ],
    [
      'says that it is something else',
      'UPSTREAM_INVALID',
      (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>'),
    ],
  ];

  it.each(cases)('%s costs one clear error: %s', async (_, code, answer) => {
    const server = createServer((request, response) => {
      if (request.url?.includes('/instruments')) {
        const page = { data: [], currentPage: 1, perPage: 1, totalItems: 0 };
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page));
        return;
      }
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await using held = await startGateway({
      sandbox: gateway.sandbox,
      webhooks: false,
      config: {
        upstreamUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        // Longer than a slow machine takes to find out who is calling.
        ...{ upstreamTimeoutMs: 4_000, operationTimeoutMs: 20_000, upstreamAnswerBytes: 1024 * 1024 },
      },
    });
    const { data, errors } = await sendQuery(
      held.graphql,
      '{ client { id accounts { totalCount } } }',
      {},
      {
        authorization: `Bearer ${gateway.sandbox.accessToken}`,
      },
    );
    expect(data.client).toEqual({ id: gateway.sandbox.clientId, accounts: null });
    expect(errors).toHaveLength(1);
    expect(errors?.[0]?.extensions).toMatchObject({ code });
    expect(JSON.stringify(errors)).not.toMatch(/undici|ECONN|HPE_|Welcome/);
    server.closeAllConnections();
    server.close();
  });
});
