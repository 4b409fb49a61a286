import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GraphQLError } from 'graphql';
import type { Authenticator } from '../auth/authenticator.ts';
import { type Clock, systemClock } from '../auth/credential-expiry.ts';
import { createPassthrough } from '../auth/passthrough.ts';
import { createRefusedKeys } from '../auth/refused-keys.ts';
import type { ServiceOptions } from '../auth/service.ts';
import { createClientAddress } from '../common/client-address.ts';
import type { Logger } from '../common/logger.ts';
import { isAnswerable } from '../common/request-line.ts';
import type { Secret } from '../common/secret.ts';
import { Waiters } from '../common/waiters.ts';
import { openEventLog } from '../events/open.ts';
import { createDrain } from '../graphql/plugins/drain.ts';
import { createQueryDeduplication } from '../graphql/plugins/query-deduplication.ts';
import { documentOf } from '../graphql/plugins/trusted-documents.ts';
import { placesOf, toDocumentError } from '../graphql/public-errors.ts';
import { createGraph, type GraphConfig } from '../graphql/yoga.ts';
import { ingressToken, ingressUrl, isIngressUrl, maskIngressUrl } from '../ingress/addresses.ts';
import { createIngress } from '../ingress/ingress.ts';
import { openMoney } from '../money/open.ts';
import { createMetrics, type Metrics } from '../observability/metrics.ts';
import type { Tracing } from '../observability/tracing.ts';
import {
  createContextFactory,
  type Incoming,
  type IngressAddresses,
  streamOwner,
} from '../operation/context.ts';
import { undocumentedValues } from '../resolvers/open-enum.ts';
import { createUnattributed } from '../resolvers/unattributed.ts';
import { createConnections, STALL_MS } from '../transport/connections.ts';
import { createGraphHttp } from '../transport/http.ts';
import { readiness } from '../transport/readiness.ts';
import { createOpenStreams, type StreamLimits } from '../transport/sockets/open-streams.ts';
import { serveWebSockets } from '../transport/websocket.ts';
import { ACCOUNTS } from '../upstream/accounts.ts';
import type { BankFieldNames } from '../upstream/banks.ts';
import { createBreaker } from '../upstream/breaker.ts';
import { createCoalescer } from '../upstream/coalesce.ts';
import { CUSTOMERS } from '../upstream/customers.ts';
import { createHttp, type UpstreamHttp } from '../upstream/http.ts';
import { createClientLists } from '../upstream/lists/client-lists.ts';
import { createRest } from '../upstream/rest.ts';
import { createBankCache } from '../upstream/session.ts';
import { createSourceOwners } from '../upstream/source-owners.ts';

const GRAPHQL_PATH = '/graphql';
const WEBHOOKS_PATH = '/webhooks/';
/** How long a client may take to send its headers, and its whole request, in milliseconds. */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often connections are looked at for it; Node's own half minute would let them be as late. */
const TIMEOUT_CHECK_MS = 500;
/** How long requests in flight may take once the server is stopping, in milliseconds. */
const DRAIN_TIMEOUT_MS = 10_000;
/** How long a bank catalog that was read serves all callers, in milliseconds. */
const BANKS_TTL_MS = 300_000;

/** Whose REST calls those are that the gateway makes for itself. */
const GATEWAY = 'gateway';

/** What one gateway process is made from. Times are milliseconds. */
export interface ServerConfig extends GraphConfig {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the same port (SO_REUSEPORT); the kernel spreads connections over them. */
  readonly reusePort: boolean;
  /** Origin of the REST service. */
  readonly upstreamUrl: string;
  readonly upstreamTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** How long what is known of a list is believed: that it holds all items, or none of an id. */
  readonly listsMaxAgeMs: number;
  /** The longest answer of the REST service that is read, in bytes. */
  readonly upstreamAnswerBytes: number;
  readonly upstreamUtcOffset: string;
  /** Under which names the service's catalog of banks says what it says. */
  readonly bankFieldNames: BankFieldNames;
  readonly tokenClientClaims: readonly string[];
  /** The gateway's own credentials and how callers' tokens are verified; undefined for passthrough. */
  readonly service: Omit<ServiceOptions, 'utcOffset'> | undefined;
  readonly redisUrl: Secret | undefined;
  readonly dataDir: string;
  readonly eventsRetention: number;
  /** How the provider reaches this gateway; `'self'` for the address it listens on. */
  readonly publicUrl: string | 'self' | undefined;
  /** The first signs; all are accepted. */
  readonly webhookSecrets: readonly [Secret, ...Secret[]];
  readonly webhookTokenHeader: string | undefined;
  readonly moneyInDecisionUrl: string | undefined;
  /** How many WebSockets and SSE streams may be open. */
  readonly streams: StreamLimits;
  /** Proxies in front, as addresses and networks: what they say of a client's address is believed. */
  readonly trustedProxies: readonly string[];
}

export interface Gateway {
  readonly ingress: IngressAddresses;
  /**
   * Opens the event log and listens.
   *
   * @returns the address it listens on, such as `http://127.0.0.1:4000`.
   */
  start(): Promise<string>;
  /** Stops accepting, lets what is in flight finish, closes sockets and stores. */
  stop(): Promise<void>;
}

const GRAPHQL_METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST'];
/** Connections that may be open beside those that carry streams. */
const OTHER_CONNECTIONS = 10_000;

const REQUEST_ID = /^[\w-]{8,64}$/;

/**
 * Builds a gateway that is not listening yet. `main` and every test make theirs here.
 *
 * @param open opens what moves money; a test may hand in one over a store that fails.
 * @param clock what subscriptions wait by; a test may hand in one that it steps.
 */
export function buildServer(
  config: ServerConfig,
  logger: Logger,
  open = openMoney,
  clock: Clock = systemClock,
): Gateway {
  const { tracing } = config;
  const metrics = createMetrics(undocumentedValues);
  const breaker = createBreaker(() => performance.now());
  const http = createHttp(config.upstreamUrl, breaker, {
    connectTimeoutMs: Math.min(5_000, config.upstreamTimeoutMs / 2),
    maxAnswerBytes: config.upstreamAnswerBytes,
    callsPerCaller: config.upstreamCallsPerCaller,
    onWaiting: metrics.callsWaiting,
  });
  let publicUrl = config.publicUrl === 'self' ? undefined : config.publicUrl;
  const [signingSecret, ...olderSecrets] = config.webhookSecrets;
  const signing = signingSecret.reveal();
  const accepted = [signing, ...olderSecrets.map((secret) => secret.reveal())];
  const redisUrl = config.redisUrl?.reveal();
  const addresses: IngressAddresses = {
    url: (clientId, type) => publicUrl && ingressUrl(publicUrl, clientId, type, signing),
    token: (clientId, type) => ingressToken(clientId, type, signing),
    feeds: (url) => publicUrl !== undefined && isIngressUrl(publicUrl, url, accepted),
    mask: maskIngressUrl,
  };
  let stopGateway: (() => Promise<void>) | undefined;

  async function start(): Promise<string> {
    const log = await openEventLog({
      redisUrl,
      dataDir: config.dataDir,
      retention: config.eventsRetention,
      metrics: metrics.events,
      logger,
    });
    const events = tracing?.log(log) ?? log;
    const money = await open({ redisUrl, dataDir: config.dataDir, logger });
    const auth = await createAuthenticator(config, http, metrics, logger);
    const monotonic = () => performance.now();
    const reads = createCoalescer(monotonic);
    const forgetReads = (credential: string) => reads.forget(auth.upstreamIdentity(credential));
    const shared = createQueryDeduplication(monotonic, forgetReads);
    const lists = createClientLists({ maxAgeMs: config.listsMaxAgeMs, now: monotonic, logger });
    const ingress = createIngress({
      log: events,
      secrets: accepted,
      tokenHeader: config.webhookTokenHeader,
      decisionUrl: config.moneyInDecisionUrl,
      dataDir: config.dataDir,
      metrics: metrics.events,
      logger,
      onKept: (clientId, { credited }) => {
        if (credited === undefined) return;
        // Balances have changed, and perhaps the lists: an owner or an account that they do not have is new.
        if (auth.sharesIdentity) reads.forget(auth.upstreamIdentity(''));
        lists.announce(clientId, ACCOUNTS, 'clabeNumber', credited.account);
        if (credited.ownerId !== clientId) lists.announce(clientId, CUSTOMERS, 'id', credited.ownerId);
      },
    });
    const createContext = createContextFactory({
      http,
      auth,
      banks: createBankCache(config.bankFieldNames, BANKS_TTL_MS, monotonic),
      lists,
      listsMaxAgeMs: config.listsMaxAgeMs,
      maxItems: config.limits.cost,
      now: monotonic,
      sourceOwners: createSourceOwners(),
      events,
      money,
      ingress: addresses,
      logger,
      upstreamTimeoutMs: config.upstreamTimeoutMs,
      operationTimeoutMs: config.operationTimeoutMs,
      utcOffset: config.upstreamUtcOffset,
      reads,
      refusedKeys: createRefusedKeys(),
      onInvalidate: shared.forget,
      onUnattributed: createUnattributed(logger, metrics.events.unattributed),
      clock,
      onCall: tracing === undefined ? metrics.upstreamCall : countedAndTraced(metrics, tracing),
    });
    const drain = createDrain();
    const connections = createConnections();
    const openStreams = createOpenStreams(config.streams);
    const addressOfClient = createClientAddress(config.trustedProxies);
    const graph = createGraph(config, { path: GRAPHQL_PATH, logger, metrics, drain, shared, createContext });
    const serveGraph = createGraphHttp(graph, config, { logger, shared });

    const incomingOf = (request: IncomingMessage, response: ServerResponse): Incoming => {
      const addressOf = () => addressOfClient(request);
      return requestOf(request, response, addressOf, (caller) => {
        const place = openStreams.enter(addressOf());
        if (typeof place === 'string') return false;
        response.once('close', place.leave);
        return place.claim(caller);
      });
    };

    /** What becomes of a request; nothing that fails unexpectedly reaches the client. */
    const serve = (response: ServerResponse, work: Promise<unknown>): void => {
      work.catch((error: unknown) => {
        logger.error({ err: error }, 'A request failed unexpectedly');
        if (response.headersSent) response.destroy();
        else
          send(response, 500, {
            errors: [{ message: 'Unexpected error', extensions: { code: 'INTERNAL' } }],
          });
      });
    };

    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      connections.watch(response);
      if (!isAnswerable(request)) {
        send(response, 400, { error: 'The address of this request, or its Host, is malformed.' });
        return;
      }
      const [path = '/'] = (request.url ?? '/').split('?');
      if (path === GRAPHQL_PATH) {
        if (!GRAPHQL_METHODS.includes(request.method ?? '')) {
          response.setHeader('allow', GRAPHQL_METHODS.join(', '));
          send(response, 405, { error: 'The graph is asked with GET or POST.' });
          return;
        }
        const cut = () => void response.destroy();
        const run = () => serveGraph(request, response, { incoming: incomingOf(request, response), cut });
        serve(response, tracing === undefined ? run() : tracing.within(request.headers, run));
      } else if (path.startsWith(WEBHOOKS_PATH)) {
        const take = () => ingress.handle(request, response);
        serve(response, tracing === undefined ? take() : tracing.webhook(path, response, take));
      } else if (path === '/healthz') {
        send(response, 200, { status: 'alive' });
      } else if (path === '/readyz') {
        const health = events.health().then(({ writable, available, spooled, unreadableSpools = [] }) => {
          const { status, body } = readiness({
            draining: drain.draining,
            writable,
            eventsAvailable: available,
            upstreamAvailable: !breaker.isOpen(),
            spooled,
            unreadableSpools,
          });
          send(response, status, body);
        });
        serve(response, health);
      } else if (path === '/metrics') {
        const written = metrics.registry.metrics().then((text) => {
          response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text);
        });
        serve(response, written);
      } else if (path === '/' && config.graphiql !== undefined) {
        response.writeHead(302, { location: GRAPHQL_PATH }).end();
      } else {
        send(response, 404, { error: `Nothing is served at this path. The graph is at ${GRAPHQL_PATH}.` });
      }
    };

    const server = createServer(
      {
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      },
      answer,
    );
    server.timeout = STALL_MS;
    server.maxConnections = config.streams.total + OTHER_CONNECTIONS;
    const sockets = serveWebSockets(server, graph, {
      path: GRAPHQL_PATH,
      allowsOrigin: (origin, host) =>
        origin === `http://${host}` || origin === `https://${host}` || config.allowsOrigin(origin),
      metrics: metrics.fanOut,
      untilExpiry: (incoming, signal) => createContext(incoming).untilExpiry(signal),
      openStream: (request) => openStreams.enter(addressOfClient(request)),
      identify: async (incoming) => streamOwner(await createContext(incoming).identify()),
      documentOf: (request) => documentOf(config.trustedDocuments, request),
      publicForm: (error, requestId) => {
        const { message, extensions } = toDocumentError(error);
        const { http: _status, ...known } = extensions;
        return new GraphQLError(message, { ...placesOf(error), extensions: { ...known, requestId } });
      },
    });

    const stopWatching = config.trustedDocuments?.watch?.((problem) => {
      metrics.trustedDocumentsReload(problem === undefined);
      if (problem === undefined) logger.info({}, 'The trusted documents have been read again');
      else
        logger.error(
          { error: problem.message },
          'The trusted documents have changed and cannot be read: those read before stay in force',
        );
    });

    stopGateway = async () => {
      stopWatching?.();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      connections.end();
      const expired = sleep(DRAIN_TIMEOUT_MS, undefined, { ref: false });
      // What is under way is answered while its socket is still open: webhooks, then payments.
      await Promise.race([Promise.all([drain.begin(), ingress.drain()]), expired]);
      await sockets.stop();
      await events.stop();
      await Promise.race([closed, expired.then(() => server.closeAllConnections())]);
      // A payment whose request was cut off goes on, and its record is written before the store closes.
      await money.stop();
      await auth.stop();
      await http.close();
    };

    try {
      await new Promise<void>((resolve, reject) => {
        const { port, host, reusePort } = config;
        server.once('error', reject).listen({ port, host, reusePort }, resolve);
      });
    } catch (error) {
      await Promise.all([events.stop(), money.stop(), auth.stop(), http.close()]);
      throw error;
    }
    const url = addressOf(server.address() as AddressInfo);
    if (config.publicUrl === 'self') publicUrl = url;
    return url;
  }

  return {
    ingress: addresses,
    start,
    async stop() {
      await stopGateway?.();
      stopGateway = undefined;
    },
  };
}

/** What only one of the two ways to be known needs is loaded where it is used. */
async function createAuthenticator(
  config: ServerConfig,
  http: UpstreamHttp,
  metrics: Metrics,
  logger: Logger,
): Promise<Authenticator> {
  const { service, redisUrl, upstreamTimeoutMs: timeoutMs } = config;
  if (service === undefined) return createPassthrough(config.tokenClientClaims);
  const { createService } = await import('../auth/service.ts');
  const share =
    redisUrl &&
    (await import('../auth/shared-token-store.ts')).openSharedTokenStore({
      redisUrl: redisUrl.reveal(),
      clientId: service.clientId,
      clientSecret: service.clientSecret,
      logger,
    });
  return createService(
    { ...service, utcOffset: config.upstreamUtcOffset },
    (clientId, authorize) =>
      createRest({
        http,
        clientId,
        caller: GATEWAY,
        identity: clientId,
        authorize,
        headers: { 'x-request-id': randomUUID(), accept: 'application/json' },
        timeoutMs,
        deadline: Date.now() + timeoutMs,
        onCall: metrics.upstreamCall,
      }),
    share,
  );
}

const countedAndTraced =
  (metrics: Metrics, tracing: Tracing): Metrics['upstreamCall'] =>
  (call) => {
    metrics.upstreamCall(call);
    tracing.call(call);
  };

/** A request brings its own id where it is a plain one, so that logs of both sides can be joined. */
function requestOf(
  request: IncomingMessage,
  response: ServerResponse,
  addressOf: Incoming['addressOf'],
  openStream: Incoming['openStream'],
): Incoming {
  const given = request.headers['x-request-id'];
  const requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
  response.setHeader('x-request-id', requestId);
  const waiters = new Waiters();
  response.once('close', () => {
    if (!response.writableFinished) waiters.remove();
  });
  const apiKey = request.headers['x-api-key'];
  const lastEventId = request.headers['last-event-id'];
  return {
    requestId,
    authorization: request.headers.authorization,
    apiKey: typeof apiKey === 'string' ? apiKey : undefined,
    lastEventId: typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : undefined,
    waiters,
    addressOf,
    openStream,
    closeSocket: undefined,
  };
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function addressOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
