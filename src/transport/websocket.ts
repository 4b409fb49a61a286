import type { IncomingMessage, Server } from 'node:http';
import { type DocumentNode, type ExecutionArgs, GraphQLError, OperationTypeNode } from 'graphql';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL, makeServer, type Context as SocketContext } from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { UnauthenticatedError } from '../auth/authenticator.ts';
import type { Caller } from '../auth/caller.ts';
import type { AlarmClock } from '../common/alarms.ts';
import { entropy } from '../common/entropy.ts';
import { PushStream } from '../common/push-stream.ts';
import type { Rounds } from '../common/rounds.ts';
import { sizeOf } from '../common/size.ts';
import { stagger } from '../common/stagger.ts';
import { dropUndeclared } from '../graphql/plugins/declared-variables.ts';
import { preparedOperation } from '../graphql/plugins/prepared-operation.ts';
import { unwrapped } from '../graphql/plugins/pushed-streams.ts';
import { keptOf, refusedStream } from '../graphql/plugins/stream-limit.ts';
import type { DocumentRequest } from '../graphql/plugins/trusted-documents.ts';
import type { Graph } from '../graphql/yoga.ts';
import type { FanOutMetrics } from '../observability/event-metrics.ts';
import { laneOfAddress } from '../operation/caller-keys.ts';
import type { Incoming } from '../operation/incoming.ts';
import { STREAM_REFUSALS, streamOwner } from '../operation/streams.ts';
import { closeForRestart } from './sockets/close.ts';
import { createExpiryWatch } from './sockets/expiry-watch.ts';
import { createFanOut } from './sockets/fan-out.ts';
import { hasCode, type Subscribed } from './sockets/group.ts';
import { startHeartbeat } from './sockets/heartbeat.ts';
import { Peer, TRY_AGAIN_LATER } from './sockets/peer.ts';
import { just, running, runOf } from './sockets/run.ts';
import { streamKey } from './sockets/stream-key.ts';
import { acceptUpgrades, type UpgradeOptions } from './upgrades.ts';

/** The longest message that is read, in bytes (SECURITY.md). */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** How long a socket may stay silent before `connection_init`, in milliseconds. */
const INIT_TIMEOUT_MS = 3_000;
const MAX_OPERATIONS = 20;
/** The longest credential, in characters: it is kept with its socket, and HTTP takes no longer one in its headers. */
const MAX_CREDENTIAL = 16 * 1024;
/** How long a peer may take to answer that its socket is closed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 3_000;

export interface WebSocketOptions extends UpgradeOptions {
  /**
   * Finds out who is calling. Rejects with UnauthenticatedError where it is nobody, else where that cannot be told now.
   *
   * @param again true to ask again, whatever was found before.
   */
  identify(incoming: Incoming, again: boolean): Promise<Caller>;
  /** The lane in which the bearer of a credential, from an address, takes turns. */
  laneOf(authorization: string | undefined, address: string | undefined): string;
  /** Whether an error says that a credential holds no longer. */
  isRefusal(error: unknown): boolean;
  /** What the ends of credentials are measured by. */
  readonly clock: AlarmClock;
  /** Called with a caller's credential, and the client that it stands for, before it is told of an event. */
  onTold(credential: string, clientId: string): void;
  readonly metrics: FanOutMetrics;
  /** Called with the code of each socket that has been closed. */
  onClosed(code: number): void;
  /** When each reader is told where it stands. */
  readonly rounds: Rounds;
  /** The text of the document that a message asks for. Throws GraphQLError when it may not run. */
  documentOf(request: DocumentRequest): string;
  /** The form of an error in which callers may read it. */
  publicForm(error: GraphQLError, requestId: string): GraphQLError;
}

export interface WebSocketTransport {
  /**
   * Closes every socket with 1012, so that clients reconnect elsewhere, and waits until they are gone.
   *
   * @param withinMs over how many milliseconds they may be spread.
   */
  stop(withinMs: number): Promise<void>;
}

/** A function of its own in each listener would hold all that its socket's upgrade knew, the bytes of the request among it. */
const ignore = (): void => undefined;

type Connection = SocketContext<Record<string, unknown>, Peer>;

/**
 * Serves the graph over `graphql-transport-ws` on the HTTP server's upgrade requests. The executor, its plugins and the
 * context are those of the HTTP transport, so that an operation means the same over both.
 */
export function serveWebSockets(server: Server, graph: Graph, options: WebSocketOptions): WebSocketTransport {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    // ws has the option; its types do not name it yet.
    ...{ closeTimeout: CLOSE_TIMEOUT_MS },
    handleProtocols: (protocols) =>
      protocols.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false,
  });
  const stopHeartbeat = startHeartbeat(sockets);
  const { clock, isRefusal, onTold, turns } = options;
  const identify = (authorization: string | undefined, again: boolean): Promise<Caller> =>
    options.identify(incomingOf({ authorization }), again);
  const expiries = createExpiryWatch({ clock, identify, isRefusal });
  const peerOptions = { onTold, turns };
  const fanOut = createFanOut(options.metrics, options.rounds);

  const incomingOf = ({
    authorization,
    caller,
    address,
  }: Pick<Incoming, 'authorization' | 'caller'> & { readonly address?: string | undefined }): Incoming => ({
    requestId: entropy.uuid(),
    authorization,
    addressOf: address === undefined ? undefined : () => address,
    apiKey: undefined,
    lastEventId: undefined,
    waiters: undefined,
    closeSocket: () => expiries.end(authorization),
    caller,
  });

  /**
   * Subscribes for all who ask the same, from now on; with a caller for all who may see the same, under no credential. Where
   * the one who asked first goes on from is its own affair.
   */
  const subscribeForAll = async (
    args: ExecutionArgs,
    authorization: string | undefined,
    caller: Caller | undefined,
  ): Promise<Subscribed> => {
    // No credential of one may end what is others' too.
    const whose = caller
      ? { authorization: undefined, caller: { ...caller, expiresAt: undefined } }
      : { authorization };
    const enveloped = graph.getEnveloped({
      incoming: { ...incomingOf(whose), startsNow: true },
      transport: 'socket',
    });
    return unwrapped(await enveloped.subscribe({ ...args, contextValue: await enveloped.contextFactory() }));
  };

  const protocol = makeServer<Record<string, unknown>, Peer>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    async onConnect(connection) {
      const { extra: peer } = connection;
      const { address } = peer;
      const authorization = authorizationOf(connection);
      if ((authorization?.length ?? 0) > MAX_CREDENTIAL) return false;
      // A stranger chose its size; what is needed of it has been read. To delete it would double what the rest of the object takes.
      Object.assign(connection, { connectionParams: undefined });
      try {
        const caller = await options.identify(incomingOf({ authorization, address }), false);
        // Nobody would end the watch of a socket that has closed meanwhile.
        if (!peer.isOpen) return false;
        peer.clientId = caller.clientId;
        const claimed = peer.place.claim(streamOwner(caller));
        if (claimed !== 'claimed') {
          peer.close(TRY_AGAIN_LATER, STREAM_REFUSALS[claimed]);
          return false;
        }
      } catch (error) {
        if (error instanceof UnauthenticatedError) return false;
        peer.close(TRY_AGAIN_LATER, 'Try again later');
        return false;
      }
      peer.authorization = authorization;
      // From now on the socket counts as its caller's.
      peer.lane = options.laneOf(authorization, address);
      peer.address = undefined;
      expiries.watch(peer, authorization);
      return true;
    },
    onClose({ extra: peer }) {
      expiries.leave(peer, peer.authorization);
    },
    execute: (args) => runOf(args).run(),
    subscribe: (args) => runOf(args).run(),
    async onNext({ extra: peer }, _id, _payload, args, result) {
      // This one is about to be closed, once what else it carries has been answered.
      if (isStream(args) && hasCode(result, 'DRAINING')) await peer.closed();
    },
    onComplete({ extra: peer }, _id, message) {
      peer.place.letGo(message);
    },
    async onSubscribe(connection, id, message) {
      const { extra: peer } = connection;
      const payload = peer.inFull(message);
      const { authorization } = peer;
      const incoming = incomingOf({ authorization });
      const refused = (errors: readonly GraphQLError[]) =>
        errors.map((error) => options.publicForm(error, incoming.requestId));
      if (Object.keys(connection.subscriptions).length > MAX_OPERATIONS) return refused([tooMany()]);
      expiries.watch(peer, authorization);
      const enveloped = graph.getEnveloped({ incoming, isIdentified: true, transport: 'socket' });
      const document = documentOrError(() => enveloped.parse(options.documentOf(payload)));
      if (document instanceof GraphQLError) return refused([document]);
      const errors = enveloped.validate(enveloped.schema, document);
      if (errors.length > 0) return refused(errors);
      const { operationName, variables } = payload;
      const { schema } = enveloped;
      const args = { schema, operationName, document, variableValues: variables };
      const operation = preparedOperation(args);
      dropUndeclared(operation, variables);
      // The message is kept as long as the operation runs: what was read of it need not be.
      Object.assign(message, { query: '', variables: undefined, extensions: undefined });
      const kept = keptOf(args);
      const isCounted = peer.place.keep(message, { ...kept, bytes: kept.bytes + sizeOf(id) });
      if (!isCounted) return refused([refusedStream('kept-full')]);
      const contextValue = await enveloped.contextFactory();
      if (operation?.type !== OperationTypeNode.SUBSCRIPTION)
        return running(args, () => enveloped.execute({ ...args, contextValue }));

      // Who cannot be identified subscribes alone, and is told why not.
      const caller = await identify(authorization, false).catch(() => undefined);
      const stream = streamKey({
        operation,
        variables,
        credential: authorization ?? '',
        visibility: caller && visibilityOf(caller),
      });
      const alone = async () => unwrapped(await enveloped.subscribe({ ...args, contextValue }));
      const outlet = peer.outlet(id);
      if (stream === undefined) {
        const subscribed = await alone();
        return running(
          args,
          just(subscribed instanceof PushStream ? fanOut.alone(outlet, subscribed) : subscribed),
        );
      }
      const open = () => subscribeForAll(args, authorization, stream.ofAnyCredential ? caller : undefined);
      const { key, resumes } = stream;
      return running(args, just(await fanOut.subscribe({ key, outlet, open, alone, resumes })));
    },
  });

  const open = (socket: WebSocket, request: IncomingMessage, { address, place }: Coming): void => {
    // What a peer does wrong, such as a message that is too long, ws has closed the socket for already.
    socket.on('error', ignore);
    const { authorization } = request.headers;
    const peer = new Peer(
      socket,
      { authorization, address, lane: laneOfAddress(address), place },
      peerOptions,
    );
    const closed = protocol.opened(peer, peer);
    socket.once('close', (code, reason) => {
      options.onClosed(code);
      void closed(code, String(reason));
    });
    sockets.emit('connection', socket, request);
  };

  const stopUpgrades = acceptUpgrades(server, options, ({ request, socket, head, address, place }) =>
    sockets.handleUpgrade(request, socket, head, (webSocket) => open(webSocket, request, { address, place })),
  );

  return {
    async stop(withinMs) {
      stopUpgrades();
      await stagger([...sockets.clients], closeForRestart, withinMs);
      stopHeartbeat();
      await new Promise((resolve) => sockets.close(resolve));
    },
  };
}

/** What a socket comes with, beside its request. */
type Coming = Pick<Peer, 'address' | 'place'>;

/** The same for callers who may see the same of the client, and ask for the same. */
const visibilityOf = ({ clientId, customerId = '', scopes }: Caller): string =>
  `${clientId} ${customerId} ${[...scopes].sort().join(' ')}`;

const isStream = (args: ExecutionArgs): boolean =>
  preparedOperation(args)?.type === OperationTypeNode.SUBSCRIPTION;

function documentOrError(read: () => DocumentNode): DocumentNode | GraphQLError {
  try {
    return read();
  } catch (error) {
    if (error instanceof GraphQLError) return error;
    throw error;
  }
}

const tooMany = (): GraphQLError =>
  new GraphQLError(`A socket carries at most ${MAX_OPERATIONS} operations at once.`, {
    extensions: { code: 'TOO_COMPLEX' },
  });

function authorizationOf({ connectionParams, extra }: Connection): string | undefined {
  for (const name of ['authorization', 'Authorization']) {
    const value = connectionParams?.[name];
    if (typeof value === 'string') return value;
  }
  return extra.authorization;
}
