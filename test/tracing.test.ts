import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { demoAddresses, startProgram } from './helpers/program.ts';

/** A span as a collector is sent it (OTLP/HTTP, JSON). */
interface Span {
  readonly name: string;
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

/** The whole story in one life of a gateway: what it did is sent to a real collector, at the latest when it ends. */
beforeAll(async () => {
  const collector = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    request.on('end', () => {
      sent += body;
      tenant = request.headers['x-tenant'];
      for (const { scopeSpans } of JSON.parse(body).resourceSpans) {
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  await using program = startProgram('src/main.ts', {
    PORT: '0',
    SANDBOX_PORT: '0',
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
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
  let received = '';
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) {
    received += decoder.decode(chunk, { stream: true });
    if (received.includes('12.00')) break;
  }
  expect(await program.end('SIGTERM')).toBe(0);
  await new Promise((resolve) => collector.close(resolve));
}, 60_000);

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
    expect(operation).toMatchObject({ parentSpanId: CALLER_SPAN });
    const call = spans.find((span) => span.name === 'GET /v1/clients/{clientId}/accounts');
    expect(call).toMatchObject({ traceId: CALLER_TRACE, parentSpanId: operation?.spanId });
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

  it('holds no token, account, name or signed address', () => {
    for (const secret of secrets) expect(sent).not.toContain(secret);
    expect(sent).not.toContain('/webhooks/');
  });
});
