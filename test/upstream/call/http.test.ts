import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { Party } from '../../../src/common/party.ts';
import { createBreaker } from '../../../src/upstream/call/breaker.ts';
import type { UpstreamError } from '../../../src/upstream/call/errors.ts';
import { createHttp, type UpstreamHttp } from '../../../src/upstream/call/http.ts';
import type { CallRecord } from '../../../src/upstream/call/rest.ts';
import { HTTP, json, startUpstream } from '../../helpers/http-stub.ts';
import { stillTime } from '../../helpers/still-time.ts';
import { until } from '../../helpers/until.ts';

/** Those who wait, where it does not matter who they are. */
const party = (caller = 'caller', deadline = Date.now() + 600_000): Party =>
  new Party({ requester: { caller, group: caller }, urgency: 'operations', deadline });
const ROUTE = '/v1/clients/{clientId}/accounts';

it('the time of a call holds neither its wait for a seat nor that of its answer for its turn', async () => {
  using time = stillTime();
  await using upstream = await startUpstream(() => undefined);
  const calls: unknown[] = [];
  const http: UpstreamHttp = {
    ...upstream.http,
    async send(request) {
      await time.pass(100);
      Object.assign(request, { queuedMs: 30, unreadMs: 20 });
      return { kind: 'answered', status: 200, body: {}, text: '{}', retryAfterMs: undefined };
    },
  };
  const startedAt = performance.now() + 30;
  await upstream.restOf({ http, onCall: (call) => calls.push(call) }).get(ROUTE);
  expect(calls).toMatchObject([{ startedAt, milliseconds: 50, queuedMs: 30, unreadMs: 20 }]);
});

it('a call whose seat comes while another tries whether the service is back has waited for both, and that is no time of the service', async () => {
  using time = stillTime();
  let waiting = 0;
  let held: ServerResponse | undefined;
  await using upstream = await startUpstream(({ url }, response) => {
    if (url === '/tries') held = response;
    else if (url !== '/hangs') json(response, {}, url === '/fails' ? 503 : 200);
  });
  const http = createHttp(upstream.url, upstream.breaker, {
    ...HTTP,
    callsPerCaller: 1,
    onWaiting: (count) => {
      waiting = count;
    },
  });
  await using _ = { [Symbol.asyncDispose]: () => http.close() };
  const partyOf = (caller: string) =>
    new Party({
      requester: { caller, group: 'client' },
      urgency: 'operations',
      deadline: Date.now() + 600_000,
    });
  const send = (path: string, party = partyOf('another')) =>
    http.send({ party, method: 'GET', path, headers: {}, timeoutMs: 30_000 });
  const calls: CallRecord[] = [];
  const hanging = partyOf('caller');
  const hung = send('/hangs', hanging);
  await until(() => upstream.requests.length === 1);
  const requester = { caller: 'caller', group: 'client' };
  const read = upstream.restOf({ http, requester, onCall: (call) => calls.push(call) }).get(ROUTE);
  await until(() => waiting === 1);
  for (let call = 0; call < 20; call += 1) await send('/fails');
  await time.pass(2_000);
  const tried = send('/tries');
  const trial = await until(() => held);
  for (const waiter of hanging.waiters) hanging.leave(waiter);
  await hung;
  await until(() => waiting === 0);
  await time.pass(300);
  json(trial, {});
  await Promise.all([tried, read]);
  const rounded = calls.map(({ queuedMs, milliseconds }) => [queuedMs, milliseconds].map(Math.round));
  expect(rounded).toEqual([[2_300, 0]]);
});

describe('a GET to the upstream', () => {
  it('returns the parsed body of any 2xx', async () => {
    await using upstream = await startUpstream((_request, response) => json(response, { ok: true }, 201));
    expect(await upstream.rest.get(ROUTE)).toEqual({ ok: true });
  });

  it.each([
    [401, 'UNAUTHENTICATED'],
    [403, 'FORBIDDEN'],
    [404, 'REFUSED'],
    [429, 'UPSTREAM_RATE_LIMITED'],
    [500, 'UPSTREAM_UNAVAILABLE'],
    [302, 'UPSTREAM_INVALID'],
  ])('turns status %i into %s and is not repeated', async (status, code) => {
    await using upstream = await startUpstream((_request, response) =>
      response.writeHead(status, { location: 'http://127.0.0.1:9/elsewhere' }).end('<html>'),
    );
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({ code });
    expect(upstream.requests).toHaveLength(1);
  });

  it.each([408, 425, 502, 503, 504])('is repeated after a %i, and the next answer counts', async (status) => {
    let calls = 0;
    await using upstream = await startUpstream((_request, response) => {
      calls += 1;
      json(response, { calls }, calls < 3 ? status : 200);
    });
    expect(await upstream.rest.get(ROUTE)).toEqual({ calls: 3 });
  });

  it('is repeated after a connection that broke', async () => {
    let calls = 0;
    await using upstream = await startUpstream((request, response) => {
      calls += 1;
      if (calls === 1) request.socket.destroy();
      else json(response, { calls });
    });
    expect(await upstream.rest.get(ROUTE)).toEqual({ calls: 2 });
  });

  it.each([
    ['whose length was told', { 'content-length': '100' }],
    ['whose length was told, on a connection of its own', { 'content-length': '100', connection: 'close' }],
    ['in chunks', {}],
    ['in chunks, on a connection of its own', { connection: 'close' }],
  ])('is repeated after an answer %s that broke off', async (_name, headers) => {
    let calls = 0;
    await using upstream = await startUpstream((_request, response) => {
      calls += 1;
      if (calls > 1) return json(response, { calls });
      response.writeHead(200, headers).write('{"calls":', () => response.destroy());
    });
    expect(await upstream.rest.get(ROUTE)).toEqual({ calls: 2 });
  });

  it('is not repeated after an answer that is not HTTP', async () => {
    await using upstream = await startUpstream((request) => request.socket.end('HTTP/1.1 OK\r\n\r\n'));
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: "The service's answer is not well-formed HTTP, or its headers are too long.",
    });
    expect(upstream.requests).toHaveLength(1);
  });

  it('is not repeated after an answer whose headers are longer than is read', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response.setHeader('x-long', 'x'.repeat(20_000));
      json(response, {});
    });
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({
      code: 'UPSTREAM_INVALID',
      message: "The service's answer is not well-formed HTTP, or its headers are too long.",
    });
    expect(upstream.requests).toHaveLength(1);
  });

  it('waits as long as a 429 asks, when that fits the deadline', async () => {
    let calls = 0;
    await using upstream = await startUpstream((_request, response) => {
      calls += 1;
      if (calls === 1) response.writeHead(429, { 'retry-after': '0' }).end();
      else json(response, { calls });
    });
    expect(await upstream.rest.get(ROUTE)).toEqual({ calls: 2 });
  });

  it.each(['1.5', '-1', 'soon', '2999-01-01'])(
    'is not repeated where a 429 says %s, which is no time',
    async (retryAfter) => {
      await using upstream = await startUpstream((_request, response) =>
        response.writeHead(429, { 'retry-after': retryAfter }).end(),
      );
      await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({
        code: 'UPSTREAM_RATE_LIMITED',
        retryAfterMs: undefined,
      });
      expect(upstream.requests).toHaveLength(1);
    },
  );

  it('takes the date of a 429 for when to come back, a day at most', async () => {
    await using upstream = await startUpstream((_request, response) =>
      response.writeHead(429, { 'retry-after': 'Fri, 31 Dec 2999 23:59:59 GMT' }).end(),
    );
    const { retryAfterMs } = (await upstream.rest
      .get(ROUTE)
      .catch((error: unknown) => error as UpstreamError)) as UpstreamError;
    // No timer of a client holds a time that is as long as that.
    expect(retryAfterMs).toBe(86_400_000);
  });

  it('gives up at once when a 429 asks for longer than the operation has', async () => {
    await using upstream = await startUpstream((_request, response) =>
      response.writeHead(429, { 'retry-after': '3600' }).end(),
    );
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({
      code: 'UPSTREAM_RATE_LIMITED',
      retryAfterMs: 3_600_000,
    });
  });

  it.each([
    ['25', 25_000],
    // Whoever answers so may be back in a minute.
    ['3600', 30_000],
  ])('says how long a 503 asks to wait, half a minute at most: %s s', async (retryAfter, retryAfterMs) => {
    await using upstream = await startUpstream(
      (_request, response) => response.writeHead(503, { 'retry-after': retryAfter }).end(),
      { operationTimeoutMs: 20_000 },
    );
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      retryAfterMs,
    });
    expect(upstream.requests).toHaveLength(1);
  });

  it('ends with UPSTREAM_TIMEOUT when the upstream hangs', async () => {
    await using upstream = await startUpstream(() => {}, { timeoutMs: 50 });
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
  });

  it('ends with UPSTREAM_TIMEOUT when the upstream drips its answer', async () => {
    await using upstream = await startUpstream(
      (_request, response) => {
        response.writeHead(200);
        const drip = setInterval(() => response.write(' '), 5);
        response.once('close', () => clearInterval(drip));
      },
      { timeoutMs: 60 },
    );
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({ code: 'UPSTREAM_TIMEOUT' });
  });

  it('refuses an answer of more than 5 MiB', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response.end(`"${'x'.repeat(6 * 1024 * 1024)}"`);
    });
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({ code: 'UPSTREAM_INVALID' });
  });

  it('is not made when the operation has no time left', async () => {
    await using upstream = await startUpstream((_request, response) => json(response, {}), {
      operationTimeoutMs: 0,
    });
    await expect(upstream.rest.get(ROUTE)).rejects.toMatchObject({
      code: 'UPSTREAM_TIMEOUT',
      dispatched: false,
    });
    expect(upstream.requests).toHaveLength(0);
  });

  it.each(['../banks', '%2e%2e', 'a?b', 'a#b', 'a/b', '', 'x'.repeat(65)])(
    'builds no address from the id %j',
    async (instrumentId) => {
      await using upstream = await startUpstream((_request, response) => json(response, {}));
      await expect(
        upstream.rest.get('/v1/clients/{clientId}/instruments/{instrumentId}', { params: { instrumentId } }),
      ).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
      expect(upstream.requests).toHaveLength(0);
    },
  );
});

describe('a POST to the upstream', () => {
  it.each([500, 502, 503, 504, 429])('is sent once, whatever the status (%i)', async (status) => {
    await using upstream = await startUpstream((_request, response) =>
      response.writeHead(status, { 'retry-after': '0' }).end(),
    );
    const attempt = await upstream.rest.send('POST', ROUTE, { body: '{}' });
    expect(attempt).toMatchObject({ kind: 'answered', status });
    expect(upstream.requests).toHaveLength(1);
  });

  it('may have taken effect when the connection broke after it left', async () => {
    await using upstream = await startUpstream((request) => request.socket.destroy());
    const attempt = await upstream.rest.send('POST', ROUTE, { body: '{}' });
    expect(attempt).toMatchObject({ kind: 'failed', error: { dispatched: true } });
    expect(upstream.requests).toHaveLength(1);
  });

  it('may have taken effect when its answer was cut short', async () => {
    await using upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"id":');
      setImmediate(() => response.destroy());
    });
    const attempt = await upstream.rest.send('POST', ROUTE, { body: '{}' });
    expect(attempt).toMatchObject({ kind: 'failed', error: { dispatched: true } });
  });

  describe('certainly did nothing', () => {
    const post = async (scheme: string, port: number, timeoutMs: number) => {
      const breaker = createBreaker(() => 0);
      const http = createHttp(`${scheme}://127.0.0.1:${port}`, breaker, HTTP);
      const attempt = await http.send({
        party: party(),
        method: 'POST',
        path: '/',
        headers: {},
        body: '{}',
        timeoutMs,
      });
      await http.close();
      return attempt;
    };
    const failed = (code: string) => ({ kind: 'failed', error: { code, dispatched: false } });
    /** A server of bare TCP. */
    const listen = async (connected: (socket: Socket) => void) => {
      const listener = createServer(connected);
      await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
      // A TCP server's address is of this form.
      const { port } = listener.address() as AddressInfo;
      return {
        port,
        [Symbol.asyncDispose]: () => new Promise<void>((resolve) => listener.close(() => resolve())),
      };
    };

    it('when its turn comes as the time of its operation ends', async () => {
      await using upstream = await startUpstream((_request, response) => json(response, {}));
      // Over a connection that stands a request leaves at once, unless another has just come back on it.
      await upstream.rest.get(ROUTE);
      for (let tries = 0; tries < 50; tries += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        const attempt = await upstream.http.send({
          party: party('caller', Date.now()),
          method: 'POST',
          path: '/',
          headers: {},
          timeoutMs: 1_000,
        });
        expect(attempt).toMatchObject(failed('UPSTREAM_TIMEOUT'));
      }
      expect(upstream.requests).toEqual([expect.stringMatching(/^GET /)]);
    });

    it('when nobody listens', async () => {
      const { port, ...closed } = await listen(() => {});
      await closed[Symbol.asyncDispose]();
      expect(await post('http', port, 1_000)).toMatchObject(failed('UPSTREAM_UNAVAILABLE'));
    });

    it('when whoever listens does not speak TLS', async () => {
      await using server = await listen((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'));
      expect(await post('https', server.port, 1_000)).toMatchObject(failed('UPSTREAM_UNAVAILABLE'));
    });

    it('when the connection is reset before it is secure', async () => {
      await using server = await listen((socket) => socket.resetAndDestroy());
      expect(await post('https', server.port, 1_000)).toMatchObject(failed('UPSTREAM_UNAVAILABLE'));
    });

    it('when its time is over before there is a connection to send it on', async () => {
      const open: Socket[] = [];
      await using server = await listen((socket) => open.push(socket));
      expect(await post('https', server.port, 50)).toMatchObject(failed('UPSTREAM_TIMEOUT'));
      for (const socket of open) socket.destroy();
    });
  });
});

describe('calls that move money', () => {
  it('have connections of their own, however many reads wait', async () => {
    const held: ServerResponse[] = [];
    await using upstream = await startUpstream((request, response) => {
      if (request.method === 'GET') held.push(response);
      else json(response, {});
    });
    const reads = Array.from({ length: 300 }, (_, index) =>
      upstream.http.send({
        party: party(`caller ${index % 20}`),
        method: 'GET',
        path: '/busy',
        headers: {},
        timeoutMs: 20_000,
      }),
    );
    await until(() => held.length === 128);
    const paid = await upstream.http.send({
      party: party(),
      method: 'POST',
      path: '/pay',
      headers: {},
      body: '{}',
      timeoutMs: 60_000,
      over: 'money',
    });
    expect(paid).toMatchObject({ kind: 'answered', status: 200 });
    while (held.length > 0 || upstream.requests.length < 301) {
      for (const response of held.splice(0)) json(response, {});
      await new Promise(setImmediate);
    }
    await Promise.all(reads);
  });
});

describe('a call that is given up while every connection is busy', () => {
  it('is answered at once, and never sent', async () => {
    const held: ServerResponse[] = [];
    await using upstream = await startUpstream((request, response) => {
      if (request.url === '/busy') held.push(response);
      else json(response, {});
    });
    const send = (path: string, timeoutMs: number) =>
      upstream.http.send({
        party: party('caller', Date.now() + timeoutMs),
        method: 'GET',
        path,
        headers: {},
        timeoutMs,
      });

    const busy = Array.from({ length: HTTP.callsPerCaller }, () => send('/busy', 20_000));
    await until(() => held.length === busy.length);
    const late = await send('/late', 20);
    expect(late).toMatchObject({ kind: 'failed', error: { code: 'UPSTREAM_TIMEOUT' } });

    // This one waits in the queue behind it.
    const next = send('/next', 20_000);
    for (const response of held) json(response, {});
    expect(await next).toMatchObject({ kind: 'answered', status: 200 });
    await Promise.all(busy);
    expect(upstream.requests).not.toContain('GET /late');
  });
});
