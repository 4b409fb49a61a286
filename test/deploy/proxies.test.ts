import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'graphql-ws';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { readVariables } from '../../src/app/config.ts';
import { creditTo, type Fleet, headOf, type Member, startFleet } from '../helpers/fleet.ts';
import { type Certificates, makeCertificates } from '../helpers/private-ca.ts';
import { listens, NGINX_LOGS, startProxy, writeProxies } from '../helpers/proxies.ts';
import { freePort } from '../helpers/restartable.ts';
import { until } from '../helpers/until.ts';

const LIFETIME_SECONDS = 1_800;
const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { transactionId } }';
/** Of the two gateways together. */
const STREAMS_OF_AN_ADDRESS = 8;
/** Queries that are under way at once. */
const AT_ONCE = 8;
/** Not in `TRUSTED_PROXIES`, unlike the address that the proxies have. */
const CLIENT = '127.0.0.2';

let folder: string;
let certificates: Certificates;
let fleet: Fleet;
let members: readonly [Member, Member];
let proxies: readonly ChildProcess[];
let agent: Agent;
let ca: string;
let haproxyLog = '';
const origins = { HAProxy: '', nginx: '' };

const startMember = (port: number) =>
  fleet.start({
    PORT: String(port),
    TRUSTED_PROXIES: '127.0.0.1',
    LIMIT_STREAMS_PER_ADDRESS: String(STREAMS_OF_AN_ADDRESS / 2),
    // A proxy that stands still looks at `/readyz` later.
    SHUTDOWN_DELAY_MS: '12000',
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pasarela-proxies-'));
  certificates = await makeCertificates(folder);
  ca = await readFile(certificates.authority, 'utf8');
  agent = new Agent({ connect: { ca }, localAddress: CLIENT });
  fleet = await startFleet(LIFETIME_SECONDS);
  const ports = [await freePort(), await freePort()] as const;
  members = [await startMember(ports[0]), await startMember(ports[1])];
  const [haproxyPort, nginxPort] = [await freePort(), await freePort()];
  const args = await writeProxies(folder, { haproxyPort, nginxPort, ports, certificates });
  const log = (text: string) => {
    haproxyLog += text;
  };
  proxies = [
    startProxy('haproxy', args.haproxy, LIFETIME_SECONDS, log),
    startProxy('nginx', args.nginx, LIFETIME_SECONDS),
  ];
  origins.HAProxy = `https://127.0.0.1:${haproxyPort}`;
  origins.nginx = `https://127.0.0.1:${nginxPort}`;
  for (const port of [haproxyPort, nginxPort]) await until(() => listens(port));
});
afterAll(async () => {
  for (const proxy of proxies) proxy.kill('SIGTERM');
  await agent.destroy();
  await fleet[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const authorization = () => `Bearer ${fleet.sandbox.accessToken}`;

/** @returns the status; rejects where there is no answer. */
async function post(origin: string, path: string, body: object, headers = {}): Promise<number> {
  const answer = await request(`${origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    dispatcher: agent,
  });
  await answer.body.dump();
  return answer.statusCode;
}

const query = (origin: string) =>
  post(origin, '/graphql', { query: '{ client { id } }' }, { authorization: authorization() });

/** Opens an SSE stream. @returns its status, and what has come so far. */
async function stream(origin: string, after: string, headers: Record<string, string> = {}) {
  const { statusCode, body } = await request(`${origin}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'text/event-stream',
      authorization: authorization(),
      ...headers,
    },
    body: JSON.stringify({ query: MONEY_IN, variables: { after } }),
    dispatcher: agent,
  });
  let text = '';
  body.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  // Its connection is cut below.
  body.on('error', () => {});
  return { statusCode, text: () => text, end: () => body.destroy() };
}

/** Where the provider posts, without the origin. */
const pathOf = (type: 'MONEY_IN') => new URL(members[0].addressOf(type)).pathname;

describe.each(['HAProxy', 'nginx'] as const)('the configuration of %s', (name) => {
  it('brings a credit to a WebSocket and to a stream that stays open', async () => {
    const origin = origins[name];
    const after = await headOf(members[0]);
    class SecureSocket extends WebSocket {
      constructor(address: string, protocols: string) {
        // As a page of the gateway's own address opens it: the gateway compares its origin with `Host`.
        super(address, protocols, {
          ca,
          origin: 'https://graph.example.mx',
          headers: { host: 'graph.example.mx' },
        });
      }
    }
    const client = createClient({
      url: `${origin.replace('https', 'wss')}/graphql`,
      webSocketImpl: SecureSocket,
      connectionParams: { authorization: authorization() },
      retryAttempts: 0,
    });
    const come: unknown[] = [];
    const failed: unknown[] = [];
    const sink = {
      next: ({ data }: { data?: unknown }) => come.push(data),
      error: (cause: unknown) => failed.push(cause),
      complete: () => {},
    };
    client.subscribe({ query: MONEY_IN, variables: { after } }, sink);
    const sse = await stream(origin, after);
    expect(sse.statusCode).toBe(200);
    expect(await post(origin, pathOf('MONEY_IN'), creditTo(randomUUID(), randomUUID()).body)).toBe(201);
    await until(() => failed.length > 0 || (come.length > 0 && sse.text().includes('transactionId')));
    expect(failed).toEqual([]);
    sse.end();
    await client.dispose();
  });

  it('counts streams by the address of the client, whatever the client says of it', async () => {
    const opened: Awaited<ReturnType<typeof stream>>[] = [];
    const after = await headOf(members[0]);
    for (let number = 0; number <= STREAMS_OF_AN_ADDRESS; number += 1) {
      const forged = `203.0.113.${number}`;
      opened.push(
        await stream(origins[name], after, { 'x-forwarded-for': forged, forwarded: `for=${forged}` }),
      );
    }
    await until(() => opened.some(({ text }) => text().includes('address')));
    for (const { end } of opened) end();
    await until(async () => {
      const open = await Promise.all(members.map((member) => member.metric('pasarela_events_subscribers')));
      return open.every((count) => count === 0);
    });
  });

  it('passes on the graph and webhooks alone', async () => {
    const paths = ['/metrics', '/readyz', '/healthz', '/graphql/../metrics', '/graphqlx', '/'];
    const statuses = await Promise.all(paths.map((path) => post(origins[name], path, {})));
    expect(statuses).toEqual(paths.map(() => 404));
  });

  it('loses no query while a gateway is ended and started again, or those of one moment', async () => {
    const [{ url }, other] = members;
    let [isOver, asked] = [false, 0];
    const failed: unknown[] = [];
    const ask = async () => {
      while (!isOver) {
        const status = await query(origins[name]).catch((error: unknown) => error);
        asked += 1;
        if (status !== 200) failed.push(status);
      }
    };
    const asking = Array.from({ length: AT_ONCE }, ask);
    await members[0].program.end('SIGTERM');
    members = [await startMember(Number(new URL(url).port)), other];
    isOver = true;
    await Promise.all(asking);
    expect(asked).toBeGreaterThan(100);
    // nginx looks at no `/readyz`: what arrives just as the gateway stops listening is answered by nginx, and not sent again.
    expect(failed.length).toBeLessThanOrEqual(name === 'nginx' ? AT_ONCE : 0);
    expect(failed.filter((status) => status !== 502)).toEqual([]);
  });
});

it('each log names a request by the id that the gateway gave it', async () => {
  const logs = {
    HAProxy: async () => haproxyLog,
    nginx: () => readFile(join(folder, NGINX_LOGS.access), 'utf8'),
  };
  for (const name of ['HAProxy', 'nginx'] as const) {
    const { headers, body } = await request(`${origins[name]}/graphql?query={__typename}`, {
      dispatcher: agent,
    });
    await body.dump();
    const id = String(headers['x-request-id']);
    expect(id).toMatch(/^[\w-]{20,}$/);
    await until(async () => (await logs[name]()).includes(id));
  }
});

it('no log holds the end of a webhook’s address, nor what a query asks', async () => {
  const path = pathOf('MONEY_IN');
  const secret = path.slice(path.lastIndexOf('/') + 1);
  const others = ['?hint=1', '/', '//', '/../x'].map((end) => `${path}${end}`);
  for (const origin of [origins.HAProxy, origins.nginx]) {
    for (const one of [path, `/${path}`, ...others]) await post(origin, one, { id_msg: randomUUID() });
    await post(origin, '/graphql?query={client{id}}', {});
  }
  await Promise.all(members.map(({ program }) => program.end('SIGKILL')));
  // With nobody behind it, nginx writes errors too.
  for (const origin of [origins.HAProxy, origins.nginx]) {
    const status = await post(origin, path, { id_msg: randomUUID() });
    expect(status).toBeGreaterThanOrEqual(500);
    const { statusCode, body } = await request(`${origin}/graphql?query={client{id}}`, { dispatcher: agent });
    await body.dump();
    expect(statusCode).toBeGreaterThanOrEqual(500);
  }
  const logs = await until(async () => {
    const access = await readFile(join(folder, NGINX_LOGS.access), 'utf8');
    const both = [haproxyLog, access];
    return both.every((log) => log.includes('/MONEY_IN/***') && / 50[23] /.test(log)) ? both : undefined;
  });
  const errors = await readFile(join(folder, NGINX_LOGS.error), 'utf8');
  for (const log of [...logs, errors]) {
    expect(log).not.toContain(secret);
    expect(log).not.toContain('client{id}');
  }
});

it('their times fit those of the gateway', async () => {
  const [haproxy = '', nginx = ''] = await Promise.all(
    ['deploy/haproxy/haproxy.cfg', 'deploy/nginx/nginx.conf'].map((file) => readFile(file, 'utf8')),
  );
  const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1]) * 1_000;
  const variables = readVariables({});
  expect(seconds(nginx, /^ +keepalive_timeout (\d+)s/m)).toBeLessThan(variables.KEEP_ALIVE_TIMEOUT_MS);
  expect(seconds(haproxy, /pool-purge-delay (\d+)s/)).toBeLessThan(variables.KEEP_ALIVE_TIMEOUT_MS);
  expect(seconds(nginx, /proxy_read_timeout (\d+)s/)).toBeGreaterThan(variables.OPERATION_TIMEOUT_MS);
  expect(seconds(haproxy, /timeout server (\d+)s/)).toBeGreaterThan(variables.OPERATION_TIMEOUT_MS);
  const [, inter, fall] = /inter (\d+) fall (\d+)/.exec(haproxy) ?? [];
  const delay = Number(/SHUTDOWN_DELAY_MS=(\d+)/.exec(haproxy)?.[1]);
  expect(delay).toBeGreaterThan(Number(inter) * Number(fall) + 1_000);
});
