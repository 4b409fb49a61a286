import { createHmac } from 'node:crypto';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { ambient } from './ambient.ts';
import { buildApp } from './app.ts';
import { Calls } from './calls.ts';
import { type Choices, defaultChoices } from './choices.ts';
import { ClabeIssuer } from './clabe.ts';
import { Clock } from './clock.ts';
import { Control, currentToken } from './control.ts';
import { addCrowd } from './crowd.ts';
import { type Agent, Deliveries } from './deliveries.ts';
import { given } from './given.ts';
import type { App } from './http.ts';
import { Ids } from './ids.ts';
import { Ledger } from './ledger.ts';
import { type Logger, silentLogger } from './logger.ts';
import { adviceOnNode } from './node-version.ts';
import { ownBankId } from './operations/record.ts';
import { addWebhook, type WebhookOrder } from './operations/webhooks.ts';
import { OWN_INSTITUTION } from './participants.ts';
import { Pending } from './pending.ts';
import { seed } from './seed.ts';
import { HISTORY_MS } from './seed-history.ts';
import { State } from './state.ts';
import type { World } from './world.ts';

// Imported, both would have Node read `http.WebSocket`, and load a second undici for it: a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http');
const { getRequestListener }: typeof import('@hono/node-server') = createRequire(import.meta.url)(
  '@hono/node-server',
);

export interface SandboxOptions {
  /** 0 takes any free port. */
  port: number;
  /** Default 127.0.0.1. */
  host?: string;
  /** How many times faster than real time the sandbox lives; at 0 its time moves only when stepped. */
  speed: number;
  /** The same seed yields the same ids, credentials and CLABEs. */
  seed: number;
  /**
   * Names this start: what is made after the seed data then has ids and CLABEs of its own, as with a provider that never repeats a
   * message. Needed where a receiver remembers messages for longer than the sandbox lives.
   */
  run?: string;
  /** Names that it answers to, besides those of loopback; without ports, in lower case. */
  hosts?: readonly string[];
  /** Hosts that webhooks may be delivered to, besides those of loopback; in lower case. */
  webhookHosts?: readonly string[];
  /** How many customers the demo client has beyond those of the story, each with an account; default none. */
  customers?: number;
  /** What differs from `defaultChoices`. */
  choices?: Partial<Choices>;
  logger?: Logger;
}

/** A running sandbox, with the demo client's credentials. */
export interface Sandbox {
  /** Origin, such as `http://127.0.0.1:4010`. */
  url: string;
  clientId: string;
  apiKey: string;
  clientSecret: string;
  accessToken: string;
  /** The account that the demo client's own money is in. */
  centralizing: { readonly instrumentId: string; readonly clabe: string };
  /** Recipients at other banks. */
  clabeInstrumentIds: readonly string[];
  /** Registers a webhook of the demo client, as `POST /v1/clients/{clientId}/webhooks` does. */
  registerWebhook(order: WebhookOrder): Promise<void>;
  /** Ends it at once: connections, timers, deliveries under way. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * How long an idle connection is kept. Node tells it in `Keep-Alive`. A client that goes by that, as the gateway and Node's `fetch` do, lets
 * go of the connection before, so that none is closed under a request of theirs.
 */
const KEEP_ALIVE_MS = 75_000;

/** A sandbox and what is done to it from within its process. */
export interface Started {
  readonly sandbox: Sandbox;
  readonly control: Control;
  /** Its endpoints, as docs/upstream-api.md writes them: `GET /v1/clients/{clientId}/accounts`. */
  readonly endpoints: ReadonlySet<string>;
}

/** Starts the REST service of the spec over HTTP. Rejects when the port is taken. */
export const startSandbox = async (options: SandboxOptions): Promise<Sandbox> =>
  (await startWithControl(options)).sandbox;

/** The REST service without a network: `app.fetch` serves a request. */
export interface Made {
  readonly app: App;
  readonly control: Control;
  readonly world: World;
  /** All but where it is reached. */
  readonly demo: Omit<Sandbox, 'url' | 'stop' | typeof Symbol.asyncDispose>;
}

/**
 * Makes the REST service; its clock stands still until it is started.
 *
 * @param agent what webhooks are sent by; undici's where it is not given
 */
export async function makeSandbox(
  options: Omit<SandboxOptions, 'port' | 'host'>,
  agent?: Agent,
): Promise<Made> {
  const choices = { ...defaultChoices, ...given(options.choices ?? {}) };
  const logger = options.logger ?? silentLogger;
  const world = makeWorld(options, choices, logger, agent);
  const seeded = await seed(world);
  const { customers = 0 } = options;
  if (customers > 0 && seeded[0] !== undefined)
    addCrowd(world, seeded[0].client, customers, ownBankId(world));
  if (options.run !== undefined) {
    world.ids.beginRun(options.run);
    world.clabes.beginRun();
  }
  const [demo] = seeded;
  if (demo === undefined) throw new Error('the seed data holds no client');
  const { client } = demo;
  const centralizing = demo.accounts.find(
    ({ instrumentId }) => instrumentId === client.centralizingInstrumentId,
  );
  if (centralizing === undefined) throw new Error('the seed data holds no account of the client itself');
  const { token } = await currentToken(world, client);

  const control = new Control(world, seeded);
  const app = buildApp(world, control, options.hosts ?? []);
  const demoOf = {
    clientId: client.id,
    apiKey: client.apiKey,
    clientSecret: client.credentials[0]?.secret ?? '',
    accessToken: token,
    centralizing: { instrumentId: client.centralizingInstrumentId, clabe: centralizing.clabeNumber },
    clabeInstrumentIds: demo.clabe.map(({ id }) => id),
    registerWebhook: async (order: WebhookOrder) => void addWebhook(world, client.id, order),
  };
  return { app, control, world, demo: demoOf };
}

/** As {@link startSandbox}. */
export async function startWithControl(options: SandboxOptions): Promise<Started> {
  const advice = adviceOnNode();
  if (advice !== undefined) throw new Error(advice);
  const { app, control, world, demo } = await makeSandbox(options);
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await listen(server, options.port, options.host ?? '127.0.0.1');
  world.origin = originOf(server);
  world.clock.start();

  const stop = async () => {
    world.clock.stop();
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await Promise.all([closed, world.deliveries.stop()]);
  };
  const sandbox: Sandbox = {
    url: world.origin,
    ...demo,
    stop,
    [Symbol.asyncDispose]: stop,
  };
  return { sandbox, control, endpoints: endpointsOf(app) };
}

const endpointsOf = ({ routes }: App): ReadonlySet<string> =>
  new Set(
    routes
      .filter(({ method, path }) => method !== 'ALL' && path.startsWith('/v1/'))
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
  );

function makeWorld(
  options: Pick<SandboxOptions, 'speed' | 'seed' | 'webhookHosts'>,
  choices: Choices,
  logger: Logger,
  agent: Agent | undefined,
): World {
  const clock = new Clock(options.speed, ambient.now() - HISTORY_MS, logger);
  const ids = new Ids(options.seed);
  const state = new State();
  const webhookHosts = options.webhookHosts ?? [];
  const deliveries = new Deliveries(choices, clock, ids, state, webhookHosts, agent);
  return {
    choices,
    clock,
    ids,
    clabes: new ClabeIssuer(OWN_INSTITUTION.slice(-3), ids),
    state,
    ledger: new Ledger(),
    pending: new Pending((message) => deliveries.enqueue(message)),
    calls: new Calls(),
    deliveries,
    webhookHosts,
    logger,
    tokenKey: createHmac('sha256', 'sandbox token key').update(String(options.seed)).digest(),
    origin: '',
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Where a sandbox is reached that listens on all addresses. It answers to no other name of them (own-hosts.ts). */
const OF_ALL: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

function originOf(server: Server): string {
  const address = server.address();
  if (typeof address !== 'object' || address === null)
    throw new Error('the sandbox does not listen on a port');
  const listening = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return `http://${OF_ALL[listening] ?? listening}:${address.port}`;
}
