import { type AlarmClock, systemAlarmClock } from '../common/alarms.ts';
import { createClientAddress, createNearestAddress } from '../common/client-address.ts';
import { clock as time } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import { Rounds } from '../common/rounds.ts';
import { Turns } from '../common/turns.ts';
import { createDrain } from '../graphql/plugins/drain.ts';
import { createGraph } from '../graphql/yoga.ts';
import { openMoney } from '../money/open-money.ts';
import { createLimitLog } from '../observability/limit-log.ts';
import { createMetrics } from '../observability/metrics.ts';
import type { IngressAddresses } from '../operation/services.ts';
import { undocumentedValues } from '../resolvers/open-enum.ts';
import { listen } from '../transport/listen.ts';
import { createOpenStreams } from '../transport/sockets/open-streams.ts';
import { serveComparisons } from './balance-comparisons.ts';
import type { Base } from './base.ts';
import { createListener } from './listener.ts';
import { serveOpenPayments } from './open-payments.ts';
import { createOperations } from './operations.ts';
import { createOwnAddresses } from './own-addresses.ts';
import { openRestService } from './rest-service.ts';
import { createRoutes, GRAPHQL_PATH } from './routes.ts';
import type { ServerConfig } from './server-config.ts';
import { shutDown } from './shutdown.ts';
import { serveSockets } from './sockets.ts';
import { openStores } from './stores.ts';
import { watchTrustedDocuments } from './trusted-documents-file.ts';

export interface Gateway {
  readonly ingress: IngressAddresses;
  /**
   * Opens the event log and listens.
   *
   * @returns the address it listens on, such as `http://127.0.0.1:4000`.
   */
  start(): Promise<string>;
  /** Stops accepting, waits for work under way, and closes sockets and stores. */
  stop(): Promise<void>;
}

/**
 * Builds a gateway that is not listening yet. `main` and every test make theirs here.
 *
 * @param open opens the part that moves money; a test may pass one over a store that fails.
 * @param clock the clock for the waits of subscriptions; a test may pass one that it advances.
 */
export function buildServer(
  config: ServerConfig,
  logger: Logger,
  open = openMoney,
  clock: AlarmClock = systemAlarmClock,
): Gateway {
  const metrics = createMetrics(undocumentedValues, logger, config.layersOff);
  const turns = new Turns(() => time.monotonic(), !config.layersOff.has('turns'));
  const addresses = createOwnAddresses(config);
  const restService = openRestService(config, { metrics, turns, logger });
  const base: Base = { config, logger, metrics, clock, turns, addresses, restService };
  let starting: Promise<Running> | undefined;
  return {
    ingress: addresses.ingress,
    async start() {
      starting = startGateway(base, open);
      const { url } = await starting;
      addresses.listensAt(url);
      return url;
    },
    async stop() {
      // A start under way may be told to end: what it opens is closed once all is open.
      const begun = starting;
      starting = undefined;
      const running = await begun?.catch(() => undefined);
      await running?.stop();
    },
  };
}

interface Running {
  readonly url: string;
  stop(): Promise<void>;
}

/** Opens the stores, makes the request handlers from them, and listens. */
async function startGateway(base: Base, open: typeof openMoney): Promise<Running> {
  const { config, logger, metrics, restService } = base;
  const stores = await openStores(base, open);
  const operations = createOperations(base, stores);
  const drain = createDrain();
  const openStreams = createOpenStreams(config.streams, createLimitLog(base.logger));
  metrics.serving.watchSeats(() => openStreams.taken);
  const addressOfClient = createClientAddress(config.trustedProxies);
  const nearestAddress = createNearestAddress(addressOfClient);
  const rounds = new Rounds(base.clock);
  const { createContext, shared, documents } = operations;
  const graph = createGraph(config, {
    path: GRAPHQL_PATH,
    logger,
    metrics,
    drain,
    shared,
    documents,
    rounds,
    createContext,
  });
  const parts = { graph, drain, openStreams, addressOfClient, nearestAddress, rounds };
  const route = createRoutes(base, stores, operations, parts);
  const { server, connections } = createListener(base, route, addressOfClient);
  const sockets = serveSockets(base, operations, server, parts);
  const stopWatching = watchTrustedDocuments(config.trustedDocuments, metrics, logger);
  const { events, money, auth } = stores;
  const http = { stop: () => restService.http.close() };
  let url: string;
  try {
    const { port, host, reusePort } = config;
    url = await listen(server, { port, host, reusePort });
  } catch (error) {
    stopWatching();
    // Why the start failed is what is told, whatever fails at the end.
    await Promise.allSettled([events, money, auth, http].map((part) => part.stop()));
    throw error;
  }
  serveOpenPayments(base, stores, operations.onSent);
  serveComparisons(base, stores);
  return {
    url,
    stop() {
      stopWatching();
      const { ingress } = operations;
      const last = [auth, http];
      return shutDown(config.shutdown, {
        server,
        connections,
        drain,
        ingress,
        sockets,
        events,
        money,
        last,
        logger,
      });
    },
  };
}
