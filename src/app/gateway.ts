import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GraphQLError } from 'graphql';
import { type Clock, isRefusal, systemClock } from '../auth/credential-expiry.ts';
import { Guesses, KEY_GUESSES } from '../auth/guesses.ts';
import { createRefusedKeys } from '../auth/refused-keys.ts';
import type { ServiceOptions } from '../auth/service.ts';
import { createClientAddress, createNearestAddress } from '../common/client-address.ts';
import { clock as time } from '../common/clock.ts';
import { entropy } from '../common/entropy.ts';
import type { Logger } from '../common/logger.ts';
import type { Owner } from '../common/party.ts';
import { recent } from '../common/recent.ts';
import { Rounds } from '../common/rounds.ts';
import type { Secret } from '../common/secret.ts';
import { Turns } from '../common/turns.ts';
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
import { CallerKeys } from '../operation/caller-keys.ts';
import { createContextFactory } from '../operation/context.ts';
import type { Incoming } from '../operation/incoming.ts';
import type { IngressAddresses, Services } from '../operation/services.ts';
import { eventNames } from '../resolvers/event-names.ts';
import { undocumentedValues } from '../resolvers/open-enum.ts';
import { createReceiptOwner } from '../resolvers/receipt-owner.ts';
import { createEventTopics } from '../resolvers/topics.ts';
import { createUnattributed } from '../resolvers/unattributed.ts';
import { boundConnections, createConnections, pathOf, STALL_MS } from '../transport/connections.ts';
import { createGraphHttp } from '../transport/http.ts';
import { incomingOf } from '../transport/incoming.ts';
import { readiness } from '../transport/readiness.ts';
import { createRequests } from '../transport/requests.ts';
import { createRouter } from '../transport/router.ts';
import { createOpenStreams, type StreamLimits } from '../transport/sockets/open-streams.ts';
import { serveWebSockets } from '../transport/websocket.ts';
import { ACCOUNTS } from '../upstream/accounts.ts';
import type { BankFieldNames } from '../upstream/banks.ts';
import { createBreaker } from '../upstream/call/breaker.ts';
import { createCoalescer } from '../upstream/call/coalesce.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { Connections } from '../upstream/call/exchange.ts';
import { createHttp } from '../upstream/call/http.ts';
import { createRest, type Rest } from '../upstream/call/rest.ts';
import { CUSTOMERS } from '../upstream/customers.ts';
import { createClientLists } from '../upstream/lists/client-lists.ts';
import { Polls } from '../upstream/session/polls.ts';
import { createBankCache } from '../upstream/session/session.ts';
import { createSourceOwners } from '../upstream/session/source-owners.ts';
import { createWorkbench, type WorkbenchOptions } from '../workbench/workbench.ts';
import { createAuthenticator } from './authenticator.ts';
import { type ShutdownTimes, shutDown } from './shutdown.ts';

// An import would read each name that the module exports. One of them is `WebSocket`, for which Node loads a second undici:
// a twentieth of a start.
const { createServer } = process.getBuiltinModule('node:http');

const GRAPHQL_PATH = '/graphql';
/** How long a client may take to send its headers, and its whole request, in milliseconds. */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often connections are looked at for it; Node's own half minute would let them be as late. */
const TIMEOUT_CHECK_MS = 500;
/** How long a bank catalog that was read serves all callers, in milliseconds. */
const BANKS_TTL_MS = 300_000;

/** How long what was found of the stores answers `/readyz` (docs/operations.md), in milliseconds. */
const STORES_LOOKED_AT_MS = 1_000;

/** Whose REST calls those are that the gateway makes for itself. */
const GATEWAY: Owner = { caller: 'gateway', group: 'gateway' };

/** What one gateway process is made from. Times are milliseconds. */
export interface ServerConfig extends GraphConfig {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the same port (SO_REUSEPORT); the kernel spreads connections over them. */
  readonly reusePort: boolean;
  /** How long a connection is kept for its client's next request. */
  readonly keepAliveTimeoutMs: number;
  readonly shutdown: ShutdownTimes;
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
  readonly eventsRetentionBytes?: number | undefined;
  /** How often in a second receipts are read again, at most, where no webhook has come. */
  readonly pollsPerSecond: number;
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
  /** What the page for people has to know; undefined for no page. */
  readonly workbench: WorkbenchOptions | undefined;
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

/** Connections that may be open beside those that carry streams. */
const OTHER_CONNECTIONS = 10_000;
/** Likewise, from one address (docs/operations.md, "Connections"). */
const OTHER_CONNECTIONS_PER_ADDRESS = 1_000;

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
  const breaker = createBreaker(() => time.monotonic());
  const turns = new Turns(() => time.monotonic());
  const http = createHttp(config.upstreamUrl, breaker, {
    connectTimeoutMs: Math.min(5_000, config.upstreamTimeoutMs / 2),
    maxAnswerBytes: config.upstreamAnswerBytes,
    callsPerCaller: config.upstreamCallsPerCaller,
    onWaiting: metrics.callsWaiting,
    turns,
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
  /** REST calls that belong to no operation. */
  const gatewayRest = (clientId: string, authorize: Authorize, over: Connections): Rest =>
    createRest({
      http,
      clientId,
      owner: GATEWAY,
      over,
      authorize,
      headers: { 'x-request-id': entropy.uuid(), accept: 'application/json' },
      timeoutMs: config.upstreamTimeoutMs,
      deadline: time.now() + config.upstreamTimeoutMs,
      onCall: metrics.upstreamCall,
    });
  let stopGateway: (() => Promise<void>) | undefined;

  async function start(): Promise<string> {
    const sourceOwners = createSourceOwners();
    // Asked for in service mode alone, where callers are narrowed, and the gateway has a credential of its own.
    const receiptOwner = createReceiptOwner(
      {
        known: sourceOwners.known,
        find: (party, clientId, transactionId, isSettled) => {
          const rest = gatewayRest(clientId, auth.authorize(''), 'reads').sharedBy(party, true);
          return sourceOwners.find(rest, transactionId, isSettled);
        },
      },
      config.upstreamTimeoutMs,
      createUnattributed(logger, metrics.events.unattributed),
    );
    const log = await openEventLog({
      redisUrl,
      dataDir: config.dataDir,
      retention: config.eventsRetention,
      retentionBytes: config.eventsRetentionBytes,
      metrics: metrics.events,
      topics: createEventTopics(receiptOwner),
      names: eventNames,
      logger,
    });
    const events = tracing?.log(log) ?? log;
    const money = await open({ redisUrl, dataDir: config.dataDir, logger, metrics: metrics.money });
    metrics.money.watch(money);
    // No payment waits for the gateway's own token behind reads.
    const tokenRest = (clientId: string, authorize: Authorize) => gatewayRest(clientId, authorize, 'money');
    const auth = await createAuthenticator(config, tokenRest, logger, metrics.serving.tokens);
    const monotonic = () => time.monotonic();
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
    const callerKeys = new CallerKeys();
    const services: Services = {
      logger,
      money,
      ingress: addresses,
      receiptOwner,
      polls: new Polls(clock, config.pollsPerSecond),
      refusedKeys: createRefusedKeys(),
      utcOffset: config.upstreamUtcOffset,
      clock,
    };
    const createContext = createContextFactory({
      http,
      auth,
      banks: createBankCache(config.bankFieldNames, BANKS_TTL_MS, monotonic),
      lists,
      listsMaxAgeMs: config.listsMaxAgeMs,
      utcOffset: config.upstreamUtcOffset,
      maxItems: config.limits.cost,
      now: monotonic,
      turns,
      events,
      services,
      upstreamTimeoutMs: config.upstreamTimeoutMs,
      operationTimeoutMs: config.operationTimeoutMs,
      reads,
      keyGuesses: new Guesses(KEY_GUESSES),
      callerKeys,
      onInvalidate: shared.forget,
      clock,
      onCall: tracing === undefined ? metrics.upstreamCall : countedAndTraced(metrics, tracing),
    });
    const drain = createDrain();
    const connections = createConnections((response, milliseconds) => {
      const path = pathOf(response.req);
      const status = response.headersSent ? response.statusCode : undefined;
      if (path !== 'stream') metrics.serving.answered(path, status, milliseconds);
    });
    const openStreams = createOpenStreams(config.streams);
    const addressOfClient = createClientAddress(config.trustedProxies);
    const nearestAddress = createNearestAddress(addressOfClient);
    const rounds = new Rounds(clock);
    const graph = createGraph(config, {
      path: GRAPHQL_PATH,
      logger,
      metrics,
      drain,
      shared,
      rounds,
      createContext,
    });
    const requests = createRequests({
      turns,
      callerKeys,
      addressOf: nearestAddress,
      verifiesItself: auth.verifiesItself,
      identify: async (brought) => createContext(brought).identity.identify(),
    });
    const serveGraph = createGraphHttp(graph, config, { logger, shared }, requests);

    const incoming = (request: IncomingMessage, response: ServerResponse): Incoming => {
      const addressOf = () => nearestAddress(request);
      return incomingOf(request, response, addressOf, (owner, kept) => {
        const place = openStreams.enter(addressOfClient(request));
        if (typeof place === 'string') return place;
        response.once('close', () => place.leave());
        const claimed = place.claim(owner);
        if (claimed !== 'claimed') return claimed;
        return place.keep(response, kept) ? undefined : 'kept-full';
      });
    };

    /** To find out whether a store can be written, as much is written as an event may take. */
    const stores = recent(
      () => Promise.all([events.health(), money.isAvailable(), money.held()]),
      STORES_LOOKED_AT_MS,
      monotonic,
    );
    const ready = async () => {
      const [health, paymentsAvailable, hold] = await stores();
      const { writable, available, spooled, unreadableSpools = [], reasons, risks } = health;
      return readiness({
        draining: drain.announced,
        writable,
        eventsAvailable: available,
        paymentsAvailable,
        paymentsHeld: hold !== undefined,
        upstreamAvailable: !breaker.isOpen(),
        spooled,
        unreadableSpools,
        reasons,
        risks,
      });
    };
    metrics.serving.watchState(async () => {
      const [{ status, body }, [{ redis }]] = await Promise.all([ready(), stores()]);
      return { ready: status === 200, degraded: body.degraded ?? [], redis };
    });
    const route = createRouter({
      graphPath: GRAPHQL_PATH,
      graph(request, response) {
        const context = {
          incoming: incoming(request, response),
          cut: () => void response.destroy(),
          isIdentified: callerKeys.findBearer(request.headers.authorization) !== undefined,
        };
        const serve = () => serveGraph(request, response, context);
        return tracing === undefined ? serve() : tracing.within(request.headers, serve);
      },
      webhook(request, response, path) {
        const take = () => ingress.handle(request, response);
        return tracing === undefined ? take() : tracing.webhook(path, response, take);
      },
      page: createWorkbench(GRAPHQL_PATH, config.introspection, config.workbench),
      showsPage: config.workbench !== undefined,
      readiness: ready,
      metrics: metrics.registry,
      logger,
    });

    const server = createServer(
      {
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        connectionsCheckingInterval: TIMEOUT_CHECK_MS,
        keepAliveTimeout: config.keepAliveTimeoutMs,
      },
      (request, response) => {
        connections.watch(response);
        route(request, response);
      },
    );
    server.timeout = STALL_MS;
    server.maxConnections = config.streams.total + OTHER_CONNECTIONS;
    boundConnections(server, config.streams.perAddress + OTHER_CONNECTIONS_PER_ADDRESS, addressOfClient);
    const sockets = serveWebSockets(server, graph, {
      path: GRAPHQL_PATH,
      allowsOrigin: (origin, host) =>
        origin === `http://${host}` || origin === `https://${host}` || config.allowsOrigin(origin),
      metrics: metrics.fanOut,
      onClosed: metrics.serving.socketClosed,
      rounds,
      openStream: (request) => openStreams.enter(addressOfClient(request)),
      addressOf: nearestAddress,
      turns,
      laneOf: (authorization, address) => callerKeys.laneOf(authorization, address),
      identify: async (incoming, again) => createContext(incoming, 'streams').identity.identify(again),
      isRefusal,
      clock,
      onTold: shared.forget,
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

    stopGateway = () => {
      stopWatching?.();
      return shutDown(config.shutdown, {
        server,
        connections,
        drain,
        ingress,
        sockets,
        events,
        last: [money, auth, { stop: () => http.close() }],
        logger,
      });
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

const countedAndTraced =
  (metrics: Metrics, tracing: Tracing): Metrics['upstreamCall'] =>
  (call) => {
    metrics.upstreamCall(call);
    tracing.call(call);
  };

function addressOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
