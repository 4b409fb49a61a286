import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSandbox } from '../../packages/sandbox/src/index.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { control } from '../helpers/gateway.ts';
import { demoAddresses, startProgram } from '../helpers/program.ts';
import { startRedis } from '../helpers/redis.ts';
import { freePort } from '../helpers/restartable.ts';

/** A span as a collector is sent it (OTLP/HTTP, JSON). */
interface Span {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
}

const CALLER_TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER_SPAN = 'b7ad6b7169203331';

const spans: Span[] = [];
let sent = '';
let tenant: unknown;
let secrets: string[] = [];

/** A real collector, as far as a gateway needs one. */
async function startCollector(take: (body: string, headers: IncomingHttpHeaders) => void) {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      take(body, request.headers);
      response.end('{}');
    });
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void server.close(() => resolve())),
  };
}

const spansIn = (body: string): Span[] =>
  JSON.parse(body).resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) =>
    scopeSpans.flatMap((scope) => scope.spans),
  );

/** Reads a stream of events until it holds a text. */
async function readUntil(stream: Response, wanted: string): Promise<void> {
  let received = '';
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) {
    received += decoder.decode(chunk, { stream: true });
    if (received.includes(wanted)) return;
  }
  throw new Error(`the stream ended without ${wanted}: ${received}`);
}

/** The whole story in one life of a gateway: what it did is sent to a real collector, at the latest when it ends. */
beforeAll(async () => {
  await using collector = await startCollector((body, headers) => {
    sent += body;
    tenant = headers['x-tenant'];
    spans.push(...spansIn(body));
  });
  await using program = startProgram('src/start.js', {
    PORT: '0',
    SANDBOX_PORT: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=payments',
    OTEL_SERVICE_NAME: 'gateway-of-the-tests',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  });
  const { gateway, sandbox, token } = await demoAddresses(program);
  const post = (query: string, headers: Record<string, string> = {}) =>
    fetch(`${gateway}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });

  const traceparent = `00-${CALLER_TRACE}-${CALLER_SPAN}-01`;
  const answer = await post('query Accounts { client { accounts { nodes { clabe } } } }', { traceparent });
  expect(await answer.json()).toMatchObject({ data: { client: { accounts: expect.anything() } } });
  await (await post('{ instrument(id: "../banks") { id } }')).text();

  const { accounts } = (await (await fetch(`${sandbox}/sandbox`)).json()) as {
    accounts: { clabe: string }[];
  };
  const clabe = accounts[0]?.clabe ?? '';
  secrets = [token, clabe, 'Ana Torres'];
  const stream = await post('subscription { moneyIn { amount { amount } transaction { id } } }', {
    accept: 'text/event-stream',
  });
  await fetch(`${sandbox}/sandbox/spei-credits`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ clabe, amount: '12.00', payerName: 'Ana Torres' }),
  });
  await readUntil(stream, '12.00');
  expect(await program.end('SIGTERM')).toBe(0);
});

afterAll(() => {
  spans.length = 0;
});

const named = (name: string): Span => {
  const found = spans.find((span) => span.name === name);
  if (found === undefined)
    throw new Error(`no span ${name} among ${spans.map((span) => span.name).join(', ')}`);
  return found;
};
const attribute = (span: Span, key: string) => span.attributes.find((entry) => entry.key === key)?.value;

describe('a trace', () => {
  it('is sent as the variables of OpenTelemetry say', () => {
    expect(tenant).toBe('payments');
    expect(sent).toContain('{"key":"service.name","value":{"stringValue":"gateway-of-the-tests"}}');
    expect(sent).toContain('{"key":"deployment.environment.name","value":{"stringValue":"test"}}');
  });

  it('goes on from the caller’s own, with the operation and its REST calls beneath', () => {
    const operation = spans.find((span) => span.traceId === CALLER_TRACE && span.name === 'query');
    // A server's: from the kinds of spans a collector draws who calls whom.
    expect(operation).toMatchObject({ parentSpanId: CALLER_SPAN, kind: 2 });
    const call = spans.find((span) => span.name === 'GET /v1/clients/{clientId}/accounts');
    expect(call).toMatchObject({ traceId: CALLER_TRACE, parentSpanId: operation?.spanId, kind: 3 });
  });

  it('tells the code of an error, and not its words', () => {
    const failed = spans.find((span) => attribute(span, 'graphql.error.codes') !== undefined);
    expect(failed && attribute(failed, 'graphql.error.codes')).toEqual({
      arrayValue: { values: [{ stringValue: 'BAD_USER_INPUT' }] },
    });
    expect(sent).not.toContain('../banks');
  });

  it('joins the webhook, what the log did with it, the delivery to a subscriber, and the REST calls of that', () => {
    const webhook = named('webhook MONEY_IN');
    expect(attribute(webhook, 'http.response.status_code')).toEqual({ intValue: 201 });
    expect(named('append')).toMatchObject({ traceId: webhook.traceId, parentSpanId: webhook.spanId });
    const delivery = named('deliver MONEY_IN');
    expect(delivery).toMatchObject({ traceId: webhook.traceId, parentSpanId: webhook.spanId });
    expect(named('GET /v1/clients/{clientId}/transactions/{transactionId}')).toMatchObject({
      traceId: webhook.traceId,
      parentSpanId: delivery.spanId,
    });
  });

  it('has a span of the opening of a subscription', () => {
    expect(attribute(named('subscription'), 'graphql.operation.type')).toEqual({
      stringValue: 'subscription',
    });
  });

  it('holds no token, account, name or signed address', () => {
    for (const secret of secrets) expect(sent).not.toContain(secret);
    expect(sent).not.toContain('/webhooks/');
  });
});

it('a trace goes on in another process, which delivers what the first has taken', async () => {
  const sentBy: Record<string, Span[]> = { first: [], second: [] };
  await using first = await startCollector((body) => void sentBy['first']?.push(...spansIn(body)));
  await using second = await startCollector((body) => void sentBy['second']?.push(...spansIn(body)));
  await using redis = await startRedis();
  await using sandbox = await startSandbox({ port: 0, speed: 0, seed: 1 });
  const port = await freePort();
  const shared = {
    UPSTREAM_URL: sandbox.url,
    PUBLIC_URL: `http://127.0.0.1:${port}`,
    WEBHOOK_SECRET: 'a secret of both',
    REDIS_URL: redis.url,
    DATA_DIR: redis.dir,
  };
  const start = (own: Record<string, string>) => startProgram('src/start.js', { ...shared, ...own });
  await using taking = start({ PORT: String(port), OTEL_EXPORTER_OTLP_ENDPOINT: first.url });
  await using delivering = start({ PORT: '0', OTEL_EXPORTER_OTLP_ENDPOINT: second.url });
  const [, url = ''] = await delivering.says(/"url":"([^"]+)"/);
  await taking.says(/is listening/);
  await control(sandbox, 'POST', `/v1/clients/${sandbox.clientId}/webhooks`, {
    client_id: sandbox.clientId,
    url: ingressUrl(shared.PUBLIC_URL, sandbox.clientId, 'MONEY_IN', shared.WEBHOOK_SECRET),
    token: 'any',
    webhook_type: 'MONEY_IN',
  });
  const stream = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${sandbox.accessToken}`,
      'content-type': 'application/json',
      accept: 'text/event-stream',
    },
    body: JSON.stringify({ query: 'subscription { moneyIn { amount { amount } } }' }),
  });
  const { accounts } = await control(sandbox, 'GET', '/sandbox');
  await control(sandbox, 'POST', '/sandbox/spei-credits', { clabe: accounts[0].clabe, amount: '12.00' });
  await readUntil(stream, '12.00');
  await Promise.all([taking.end('SIGTERM'), delivering.end('SIGTERM')]);
  const webhook = sentBy['first']?.find(({ name }) => name === 'webhook MONEY_IN');
  const delivery = sentBy['second']?.find(({ name }) => name === 'deliver MONEY_IN');
  expect(delivery).toMatchObject({ traceId: webhook?.traceId, parentSpanId: webhook?.spanId });
  expect(webhook?.traceId).toMatch(/^[0-9a-f]{32}$/);
});
