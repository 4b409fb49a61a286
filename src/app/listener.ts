import type { IncomingMessage, Server } from 'node:http';
import type { ClientAddress } from '../common/client-address.ts';
import { noteRefusal } from '../common/refusals.ts';
import {
  boundConnections,
  boundRequests,
  type Connections,
  createConnections,
  pathOf,
  STALL_MS,
  WatchedResponse,
} from '../transport/connections.ts';
import type { Route } from '../transport/router.ts';
import { answerUnreadable } from '../transport/unreadable.ts';
import type { Base } from './base.ts';

// An import would read each export of the module. For one of them, `WebSocket`, Node loads a second undici: a twentieth of a
// start.
const { createServer } = process.getBuiltinModule('node:http');

/** How long a client may take to send its headers, and its whole request, in milliseconds. */
const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often connections are checked for that, in milliseconds. With Node's default they could be half a minute late. */
const TIMEOUT_CHECK_MS = 500;
/** Connections that may be open besides those that carry streams. */
const OTHER_CONNECTIONS = 10_000;
/** The same from one address (docs/proxies.md). */
const OTHER_CONNECTIONS_PER_ADDRESS = 1_000;

/** Makes the HTTP server with the bounds of its connections. It is not listening yet. */
export function createListener(
  { config, logger, metrics }: Base,
  route: Route,
  addressOfClient: ClientAddress,
): { readonly server: Server; readonly connections: Connections } {
  const connections = createConnections((response, milliseconds) => {
    const path = pathOf(response);
    const status = response.headersSent ? response.statusCode : undefined;
    if (path !== 'stream') metrics.serving.answered(path, status, milliseconds);
  });
  const isInBound = boundRequests();
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      keepAliveTimeout: config.keepAliveTimeoutMs,
      shouldUpgradeCallback: isForSocket,
      ServerResponse: WatchedResponse,
    },
    (request, response) => {
      const mayBeServed = isInBound(response);
      connections.watch(response);
      if (mayBeServed) {
        route(request, response);
        return;
      }
      noteRefusal('requests_of_connection');
      response.writeHead(429, { 'retry-after': '1', connection: 'close' }).end();
    },
  );
  server.timeout = STALL_MS;
  server.maxConnections = config.streams.total + OTHER_CONNECTIONS;
  server.on('drop', () => noteRefusal('connections'));
  answerUnreadable(server, logger);
  boundConnections(server, config.streams.perAddress + OTHER_CONNECTIONS_PER_ADDRESS, addressOfClient);
  return { server, connections };
}

/** Whether a request asks for a WebSocket. Any other upgrade is ignored (RFC 9110, 7.8): Java's client offers HTTP/2 so with an everyday request. */
const isForSocket = ({ headers }: IncomingMessage): boolean => headers.upgrade?.toLowerCase() === 'websocket';
