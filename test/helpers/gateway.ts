import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../packages/sandbox/src/index.ts';
import type { ServerConfig } from '../../src/app/server-config.ts';
import type { AlarmClock } from '../../src/common/alarms.ts';
import type { Logger } from '../../src/common/logger.ts';
import type { EventType } from '../../src/events/log.ts';
import type { IngressAddresses } from '../../src/operation/services.ts';
import { buildServer } from './composition.ts';
import { gatewayConfig } from './gateway-config.ts';

/** A result as a client reads it. `data` is left open: each test knows what it asked for. */
export interface GraphQLAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what its own document selects.
  readonly data?: any;
  readonly errors?: readonly {
    readonly message: string;
    readonly path?: readonly (string | number)[];
    readonly extensions: Readonly<Record<string, unknown>>;
  }[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface RunningGateway extends AsyncDisposable {
  readonly url: string;
  readonly graphql: string;
  readonly sandbox: Sandbox;
  readonly ingress: IngressAddresses;
  /** Everything logged so far, one JSON text per call. */
  readonly log: readonly string[];
  /** Sends an operation with the demo client's token; `headers` replace or, set to undefined, remove headers. */
  query(
    document: string,
    variables?: Readonly<Record<string, unknown>>,
    headers?: Readonly<Record<string, string | undefined>>,
  ): Promise<GraphQLAnswer>;
  stop(): Promise<void>;
}

/** A logger that keeps what it is told. */
export function collectingLogger(lines: string[]): Logger {
  const keep = (level: string) => (fields: object, message: string) => {
    lines.push(JSON.stringify({ level, message, ...fields }, errorsAsText));
  };
  return { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
}

const errorsAsText = (_key: string, value: unknown): unknown =>
  value instanceof Error ? `${value.name}: ${value.message}\n${value.stack}` : value;

export interface GatewayOptions {
  readonly config?: Partial<ServerConfig>;
  /** An own sandbox is started with these, unless one is handed in as `sandbox`. */
  readonly sandboxOptions?: Partial<SandboxOptions>;
  readonly sandbox?: Sandbox;
  /** For which types the gateway's ingress is registered at the sandbox; true, the default, for CEP and MONEY_IN. */
  readonly webhooks?: readonly EventType[] | boolean;
  /** What subscriptions wait by. */
  readonly clock?: AlarmClock;
}

/** Starts a real gateway in front of a real sandbox, both on free ports of loopback. */
export async function startGateway(options: GatewayOptions = {}): Promise<RunningGateway> {
  const sandbox =
    options.sandbox ??
    (await startSandbox({
      port: 0,
      speed: 0,
      seed: 1,
      webhookHosts: ['example.mx'],
      ...options.sandboxOptions,
    }));
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-test-'));
  const log: string[] = [];
  const server = buildServer(
    { ...gatewayConfig(sandbox.url, dataDir), ...options.config },
    collectingLogger(log),
    undefined,
    options.clock,
  );
  const url = await server.start();
  const graphql = `${url}/graphql`;
  const { webhooks = true } = options;
  const types: readonly EventType[] = webhooks === true ? ['CEP', 'MONEY_IN'] : webhooks || [];
  await Promise.all(types.map((type) => registerWebhook(sandbox, server.ingress, type)));
  const stop = async () => {
    await server.stop();
    if (options.sandbox === undefined) await sandbox.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return {
    url,
    graphql,
    sandbox,
    ingress: server.ingress,
    log,
    query: (document, variables, headers) =>
      sendQuery(graphql, document, variables, {
        authorization: `Bearer ${sandbox.accessToken}`,
        ...headers,
      }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** One operation as a plain HTTP client sends it. */
export async function sendQuery(
  graphql: string,
  document: string,
  variables: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string | undefined>> = {},
  signal: AbortSignal | null = null,
): Promise<GraphQLAnswer> {
  const given = Object.entries({
    'content-type': 'application/json',
    accept: 'application/graphql-response+json, application/json',
    ...headers,
  }).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const response = await fetch(graphql, {
    method: 'POST',
    headers: given,
    body: JSON.stringify({ query: document, variables }),
    signal,
  });
  const body = (await response.json()) as Omit<GraphQLAnswer, 'status' | 'headers'>;
  return { status: response.status, headers: response.headers, ...body };
}

async function registerWebhook(
  sandbox: Sandbox,
  ingress: ReturnType<typeof buildServer>['ingress'],
  type: EventType,
): Promise<void> {
  const { clientId } = sandbox;
  await control(sandbox, 'POST', `/v1/clients/${clientId}/webhooks`, {
    client_id: clientId,
    url: ingress.url(clientId, type),
    token: ingress.token(clientId, type),
    webhook_type: type,
  });
}

/** A request to the sandbox itself, with the demo client's token; fails on any answer but a 2xx. */
export async function control(
  sandbox: Sandbox,
  method: string,
  path: string,
  body?: unknown,
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it asked for.
): Promise<any> {
  const response = await fetch(`${sandbox.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${sandbox.accessToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
