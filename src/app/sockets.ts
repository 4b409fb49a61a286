import type { Server } from 'node:http';
import { GraphQLError } from 'graphql';
import { createRareLines } from '../common/rare-lines.ts';
import type { Rounds } from '../common/rounds.ts';
import { documentOf } from '../graphql/plugins/trusted-documents.ts';
import { locationsOf, toDocumentError } from '../graphql/public-errors.ts';
import { serveWebSockets, type WebSocketTransport } from '../transport/websocket.ts';
import type { Base } from './base.ts';
import type { Operations } from './operations.ts';
import { GRAPHQL_PATH, type RouteParts } from './routes.ts';

/** How much of a header that anybody may write stands in a line of the log, in characters. */
const LONGEST_SHOWN = 200;

/** Serves the graph over WebSocket on the upgrades of an HTTP server. */
export function serveSockets(
  { config, logger, metrics, turns }: Base,
  { createContext, callerKeys, expiries, onTold }: Operations,
  server: Server,
  parts: RouteParts & { readonly rounds: Rounds },
): WebSocketTransport {
  const { graph, drain, openStreams, addressOfClient, nearestAddress, rounds } = parts;
  const isDue = createRareLines();
  return serveWebSockets(server, graph, {
    path: GRAPHQL_PATH,
    allowsOrigin: (origin, host) =>
      origin === `http://${host}` || origin === `https://${host}` || config.allowsOrigin(origin),
    onForeignOrigin(origin, host = '') {
      if (!isDue('origin')) return;
      const shown = { origin: origin.slice(0, LONGEST_SHOWN), host: host.slice(0, LONGEST_SHOWN) };
      logger.warn(
        shown,
        'a WebSocket was refused: its Origin is neither that of its Host nor in CORS_ORIGINS',
      );
    },
    metrics: metrics.fanOut,
    lifetimeMs: config.socketLifetimeMs,
    operationTimeoutMs: config.operationTimeoutMs,
    onClosed: metrics.serving.socketClosed,
    rounds,
    openStream: (request) => openStreams.enter(addressOfClient(request), 'websocket'),
    addressOf: nearestAddress,
    turns,
    turnKeyOf: (authorization, address) => callerKeys.turnKeyOf(authorization, address),
    identify: async (incoming) => createContext(incoming, 'streams').identity.identify(),
    expiries,
    drain,
    onTold,
    onFailed: (err) => logger.error({ err }, 'An operation over a WebSocket failed unexpectedly'),
    documentOf: (request) => documentOf(config.trustedDocuments, request),
    publicForm,
  });
}

/** Returns the form of an error that callers may read. Over a socket it has no HTTP status. */
function publicForm(error: GraphQLError, requestId: string): GraphQLError {
  const { message, extensions } = toDocumentError(error);
  const { http: _status, ...known } = extensions;
  return new GraphQLError(message, { ...locationsOf(error), extensions: { ...known, requestId } });
}
