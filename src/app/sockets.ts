import type { Server } from 'node:http';
import { GraphQLError } from 'graphql';
import type { Rounds } from '../common/rounds.ts';
import { documentOf } from '../graphql/plugins/trusted-documents.ts';
import { locationsOf, toDocumentError } from '../graphql/public-errors.ts';
import { serveWebSockets, type WebSocketTransport } from '../transport/websocket.ts';
import type { Base } from './base.ts';
import type { Operations } from './operations.ts';
import { GRAPHQL_PATH, type RouteParts } from './routes.ts';

/** Serves the graph over WebSocket on the upgrades of an HTTP server. */
export function serveSockets(
  { config, logger, metrics, turns }: Base,
  { createContext, callerKeys, expiries, onTold }: Operations,
  server: Server,
  parts: RouteParts & { readonly rounds: Rounds },
): WebSocketTransport {
  const { graph, drain, openStreams, addressOfClient, nearestAddress, rounds } = parts;
  return serveWebSockets(server, graph, {
    path: GRAPHQL_PATH,
    allowsOrigin: (origin, host) =>
      origin === `http://${host}` || origin === `https://${host}` || config.allowsOrigin(origin),
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
