import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  getOperationAST,
} from 'graphql';
import { CloseCode, GRAPHQL_TRANSPORT_WS_PROTOCOL, type Context as SocketContext } from 'graphql-ws';
import { type Extra, useServer } from 'graphql-ws/use/ws';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Incoming } from './context.ts';
import type { Graph } from './graph.ts';
import type { DocumentRequest } from './plugins/trusted-documents.ts';

/** The longest message that is read, in bytes (security.md, "sockets"). */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** How long a socket may stay silent before `connection_init`, in milliseconds. */
const INIT_TIMEOUT_MS = 3_000;
const MAX_OPERATIONS = 20;
/** Close code for a credential that has ended; clients come back from it with another (graphql-transport-ws). */
const FORBIDDEN: number = CloseCode.Forbidden;
/** Close code for a reader that fell behind (IANA, WebSocket close codes); clients connect again after it. */
const TRY_AGAIN_LATER = 1013;
/** How long a closing socket may take to answer, in milliseconds. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Sockets are closed one after another, so that clients do not all come back at once. */
const SPREAD_PER_SOCKET_MS = 5;
const MAX_SPREAD_MS = 3_000;

export interface WebSocketOptions {
  readonly path: string;
  /** Whether pages of this origin may connect. Clients that send no `Origin` are no pages. */
  allowsOrigin(origin: string, host: string | undefined): boolean;
  /** Resolves with the reason when the credential of a socket holds no longer; rejects when it never held. */
  untilLapse(incoming: Incoming, signal: AbortSignal): Promise<Error | undefined>;
  /** The text of the document that a message asks for. Throws GraphQLError when it may not run. */
  documentOf(request: DocumentRequest): string;
  /** The form of an error in which callers may read it. */
  publicForm(error: GraphQLError, requestId: string): GraphQLError;
}

export interface WebSocketTransport {
  /** Closes every socket with 1012, so that clients reconnect elsewhere, and waits until they are gone. */
  stop(): Promise<void>;
}

type Connection = SocketContext<Record<string, unknown>, Extra>;

/**
 * Serves the graph over `graphql-transport-ws` on the HTTP server's upgrade requests. The executor, its plugins and the
 * context are those of the HTTP transport, so that an operation means the same over both.
 */
export function serveWebSockets(server: Server, graph: Graph, options: WebSocketOptions): WebSocketTransport {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: (protocols) =>
      protocols.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false,
  });

  const incomingOf = ({ connectionParams, extra }: Connection): Incoming => ({
    requestId: randomUUID(),
    authorization: authorizationOf(connectionParams) ?? extra.request.headers.authorization,
    apiKey: undefined,
    lastEventId: undefined,
    audience: undefined,
    closeSocket: () => extra.socket.close(FORBIDDEN, 'Forbidden'),
  });

  const watched = new WeakSet<WebSocket>();
  /** Closes the socket when its credential ends. One that nobody could identify yet is watched from a later operation on. */
  const watch = (connection: Connection): void => {
    const { socket } = connection.extra;
    if (watched.has(socket)) return;
    watched.add(socket);
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    const incoming = incomingOf(connection);
    options.untilLapse(incoming, gone.signal).then(
      (reason) => {
        if (reason !== undefined) incoming.closeSocket?.();
      },
      () => watched.delete(socket),
    );
  };

  const disposable = useServer(
    {
      connectionInitWaitTimeout: INIT_TIMEOUT_MS,
      onConnect: watch,
      execute: (args) => envelopedOf(args).execute(args),
      subscribe: (args) => envelopedOf(args).subscribe(args),
      async onNext({ extra: { socket } }, _id, _payload, { document, operationName }, result) {
        // A client library takes an error for the end, and a closed socket for a reason to connect and resume.
        if (hasCode(result, 'SLOW_CONSUMER')) socket.close(TRY_AGAIN_LATER, 'Read too slowly');
        // This one is about to be closed, once what else it carries has been answered.
        const isStream = getOperationAST(document, operationName)?.operation === 'subscription';
        if (isStream && hasCode(result, 'DRAINING')) await once(socket, 'close');
      },
      // Messages of unexpected errors stay out of close frames.
      isProd: true,
      async onSubscribe(connection, _id, payload) {
        const incoming = incomingOf(connection);
        const refused = (errors: readonly GraphQLError[]) =>
          errors.map((error) => options.publicForm(error, incoming.requestId));
        if (Object.keys(connection.subscriptions).length > MAX_OPERATIONS) return refused([tooMany()]);
        watch(connection);
        const enveloped = graph.getEnveloped({ incoming });
        const document = documentOrError(() => enveloped.parse(options.documentOf(payload)));
        if (document instanceof GraphQLError) return refused([document]);
        const errors = enveloped.validate(enveloped.schema, document);
        if (errors.length > 0) return refused(errors);
        return {
          schema: enveloped.schema,
          operationName: payload.operationName,
          document,
          variableValues: payload.variables,
          contextValue: await enveloped.contextFactory(),
          rootValue: { execute: enveloped.execute, subscribe: enveloped.subscribe } satisfies Enveloped,
        };
      },
    },
    sockets,
  );

  // graphql-ws writes to the console what a peer does wrong, such as a message that is too long; ws has closed it by then.
  sockets.on('connection', (socket) => {
    socket.removeAllListeners('error');
    socket.on('error', () => undefined);
  });

  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const { origin, host } = request.headers;
    const [path] = (request.url ?? '').split('?');
    if (path !== options.path) {
      refuse(socket, '404 Not Found');
      return;
    }
    if (origin !== undefined && !options.allowsOrigin(origin, host)) {
      refuse(socket, '403 Forbidden');
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) =>
      sockets.emit('connection', webSocket, request),
    );
  };
  server.on('upgrade', onUpgrade);

  return {
    async stop() {
      server.off('upgrade', onUpgrade);
      const open = [...sockets.clients];
      const spreadMs = Math.min(MAX_SPREAD_MS, open.length * SPREAD_PER_SOCKET_MS);
      await Promise.all(open.map((socket, index) => close(socket, (index * spreadMs) / open.length)));
      await disposable.dispose();
    },
  };
}

/** Closes a socket after a delay; a peer that is gone without a word, and never answers, is cut off. */
async function close(socket: WebSocket, delayMs: number): Promise<void> {
  await sleep(delayMs);
  if (socket.readyState === socket.CLOSED) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.close(1012, 'Service restart');
  });
}

/** Carried as the root value, which no resolver of the schema reads. */
interface Enveloped {
  execute(args: ExecutionArgs): ReturnType<ReturnType<Graph['getEnveloped']>['execute']>;
  subscribe(args: ExecutionArgs): ReturnType<ReturnType<Graph['getEnveloped']>['subscribe']>;
}

// `onSubscribe` above is the only maker of these arguments.
const envelopedOf = (args: ExecutionArgs): Enveloped => args.rootValue as Enveloped;

function documentOrError(read: () => DocumentNode): DocumentNode | GraphQLError {
  try {
    return read();
  } catch (error) {
    if (error instanceof GraphQLError) return error;
    throw error;
  }
}

const hasCode = (
  { errors }: { readonly errors?: ExecutionResult['errors'] | undefined },
  code: string,
): boolean => errors?.some(({ extensions }) => extensions['code'] === code) === true;

const tooMany = (): GraphQLError =>
  new GraphQLError(`A socket carries at most ${MAX_OPERATIONS} operations at once.`, {
    extensions: { code: 'TOO_COMPLEX' },
  });

function authorizationOf(params: Readonly<Record<string, unknown>> | undefined): string | undefined {
  for (const name of ['authorization', 'Authorization']) {
    const value = params?.[name];
    if (typeof value === 'string') return value;
  }
  return undefined;
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
