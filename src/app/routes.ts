import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Drain } from '../graphql/plugins/drain.ts';
import type { Graph } from '../graphql/yoga.ts';
import type { Incoming } from '../operation/incoming.ts';
import { createGraphHttp } from '../transport/http.ts';
import { incomingOf } from '../transport/incoming.ts';
import { readiness } from '../transport/readiness.ts';
import { createRequests } from '../transport/requests.ts';
import { createRouter, type Route } from '../transport/router.ts';
import type { OpenStreams } from '../transport/sockets/open-streams.ts';
import { createWorkbench } from '../workbench/workbench.ts';
import type { Base } from './base.ts';
import type { Operations } from './operations.ts';
import type { Stores } from './stores.ts';

export const GRAPHQL_PATH = '/graphql';

/** The parts that answer requests. */
export interface RouteParts {
  readonly graph: Graph;
  readonly drain: Drain;
  readonly openStreams: OpenStreams;
  /** Returns the client's address, as far as trusted proxies tell it; undefined if it is not known. */
  addressOfClient(request: IncomingMessage): string | undefined;
  /** Returns the client's address, or that of the nearest proxy if the client's is not known. */
  nearestAddress(request: IncomingMessage): string;
}

/** Returns the handler that passes each request to the part that answers it. */
export function createRoutes(base: Base, stores: Stores, operations: Operations, parts: RouteParts): Route {
  const { config, logger, metrics, turns } = base;
  const { tracing } = config;
  const { callerKeys, createContext, shared, documents, ingress } = operations;
  const { graph, nearestAddress } = parts;
  const requests = createRequests({
    turns,
    callerKeys,
    addressOf: nearestAddress,
    verifiesItself: stores.auth.verifiesItself,
    identify: async (brought) => createContext(brought).identity.identify(),
  });
  const serveGraph = createGraphHttp(graph, config, { logger, shared, documents }, requests);
  const ready = () => readinessOf(base, stores, parts.drain);
  metrics.serving.watchState(async () => {
    const [{ status, body }, condition] = await Promise.all([ready(), stores.condition()]);
    return { ready: status === 200, degraded: body.degraded ?? [], redis: condition?.events.redis };
  });
  return createRouter({
    graphPath: GRAPHQL_PATH,
    graph(request, response) {
      const context = {
        incoming: incoming(request, response, parts),
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
}

/** Returns what a request brings to its operation. A stream that it opens counts until its response closes. */
function incoming(
  request: IncomingMessage,
  response: ServerResponse,
  { openStreams, addressOfClient, nearestAddress }: RouteParts,
): Incoming {
  const addressOf = () => nearestAddress(request);
  return incomingOf(request, response, addressOf, (holder, kept) => {
    // Its `close` has been told already: a seat would never be given back. Its body ends the stream as it begins.
    if (response.destroyed) return undefined;
    const seat = openStreams.enter(addressOfClient(request), 'sse');
    if (typeof seat === 'string') return seat;
    response.once('close', () => seat.leave());
    const claimed = seat.claim(holder);
    if (claimed !== 'claimed') return claimed;
    return seat.keep(response, kept);
  });
}

async function readinessOf({ restService }: Base, stores: Stores, { isEnding: draining }: Drain) {
  const { breaker } = restService;
  const suspended = breaker.isOpenForAll() ? 'all' : breaker.isOpen() ? 'some' : undefined;
  const known = await stores.condition();
  const unwritten = stores.money.unwritten();
  if (known === undefined) return readiness({ draining, unwritten, suspended, stores: undefined });
  const { events, paymentsAvailable, paymentsProblem, paymentsHeld, ageMs, silentMs } = known;
  const { writable, available, spooled, unreadableSpools = [], spoolProblem, reasons, risks } = events;
  return readiness({
    draining,
    unwritten,
    suspended,
    stores: {
      ageMs,
      silentMs,
      writable,
      eventsAvailable: available,
      paymentsAvailable,
      paymentsProblem,
      paymentsHeld,
      spooled,
      unreadableSpools,
      spoolProblem,
      reasons,
      risks,
    },
  });
}
