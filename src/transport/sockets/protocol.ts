import { type DocumentNode, type ExecutionArgs, GraphQLError, OperationTypeNode } from 'graphql';
import { makeServer, type Server, type Context as SocketContext, type SubscribePayload } from 'graphql-ws';
import { UnauthenticatedError } from '../../auth/authenticator.ts';
import type { Caller } from '../../auth/caller.ts';
import type { ExpiryWatch } from '../../auth/expiry-watch.ts';
import { entropy } from '../../common/entropy.ts';
import { PushStream } from '../../common/push-stream.ts';
import { noteRefusal } from '../../common/refusals.ts';
import type { Rounds } from '../../common/rounds.ts';
import { sizeOf } from '../../common/size.ts';
import { Waiters } from '../../common/waiters.ts';
import { type PreparedOperation, preparedOperation } from '../../graphql/documents/prepared-operation.ts';
import { dropUndeclared } from '../../graphql/plugins/declared-variables.ts';
import type { Drain } from '../../graphql/plugins/drain.ts';
import { unwrapped } from '../../graphql/plugins/pushed-streams.ts';
import { keptOf, refusedStream } from '../../graphql/plugins/stream-limit.ts';
import type { DocumentRequest } from '../../graphql/plugins/trusted-documents.ts';
import { unclearOperation } from '../../graphql/public-errors.ts';
import type { Graph } from '../../graphql/yoga.ts';
import type { FanOutMetrics } from '../../observability/event-metrics.ts';
import type { Incoming } from '../../operation/incoming.ts';
import { noteRefusedStream, STREAM_REFUSALS, streamHolder } from '../../operation/streams.ts';
import { Answer } from './answer.ts';
import { TRY_AGAIN_LATER } from './ends.ts';
import { createFanOut, type FanOut } from './fan-out.ts';
import type { Lifetimes } from './lifetime.ts';
import type { Peer } from './peer.ts';
import { just, running, runOf } from './run.ts';
import { hasCode, type Subscribed } from './shared-stream.ts';
import { streamKey, visibilityOf } from './stream-key.ts';
import { withheld } from './withheld.ts';

/** How long a socket may stay silent before `connection_init`, in milliseconds. */
const INIT_TIMEOUT_MS = 3_000;
const MAX_OPERATIONS = 20;
/**
 * The longest credential, in characters, because it is kept with its socket. HTTP takes no longer one in its headers either.
 */
const MAX_CREDENTIAL = 16 * 1024;

export interface ProtocolOptions {
  /**
   * Finds out who is calling. Rejects with UnauthenticatedError if that is nobody, else with another error if it cannot be
   * found out now.
   */
  identify(incoming: Incoming): Promise<Caller>;
  /** Returns the key by which the bearer of a credential takes turns; without a known caller, that of the address. */
  turnKeyOf(authorization: string | undefined, address: string | undefined): string;
  /** The credentials of all sockets and streams. */
  readonly expiries: ExpiryWatch;
  readonly drain: Pick<Drain, 'isDraining'>;
  readonly metrics: FanOutMetrics;
  /** Says when each reader is sent a bookmark. */
  readonly rounds: Rounds;
  /** Returns the text of the document that a message asks for. Throws GraphQLError when it may not run. */
  documentOf(request: DocumentRequest): string;
  /** Returns the form of an error that callers may read. */
  publicForm(error: GraphQLError, requestId: string): GraphQLError;
}

type Connection = SocketContext<Record<string, unknown>, Peer>;

/** Parts that all sockets share. */
interface Shared {
  readonly graph: Graph;
  readonly options: ProtocolOptions;
  readonly lifetimes: Lifetimes;
  readonly fanOut: FanOut;
  incomingOf(from: From): Incoming;
}

/** The asker of an operation, and its address. */
type From = Pick<Incoming, 'authorization' | 'caller'> & { readonly address?: string | undefined };

/** Handles the messages of `graphql-transport-ws`. */
export function createProtocol(graph: Graph, options: ProtocolOptions, lifetimes: Lifetimes): Server<Peer> {
  const { expiries } = options;
  const incomingOf = ({ authorization, caller, address }: From): Incoming => ({
    requestId: entropy.uuid(),
    authorization,
    addressOf: address === undefined ? undefined : () => address,
    apiKey: undefined,
    lastEventId: undefined,
    waiters: undefined,
    closeSockets: () => expiries.end(authorization),
    caller,
  });
  const fanOut = createFanOut(options.metrics, options.rounds);
  const shared: Shared = { graph, options, lifetimes, fanOut, incomingOf };

  return makeServer<Record<string, unknown>, Peer>({
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect: (connection) => admit(shared, connection),
    onClose(connection) {
      const { extra: peer } = connection;
      lifetimes.leave(connection);
      expiries.leave(peer, peer.authorization);
    },
    onSubscribe: async (connection, id, message) => {
      const { extra: peer } = connection;
      const prepared = peer.isEnding
        ? await peer.closed()
        : await peer.busyWith(() => prepare(shared, connection, id, message));
      // The socket is closed where it is undefined: the errors reach nobody.
      return prepared ?? [tooMany()];
    },
    execute: (args) => runOf(args).run(),
    subscribe: (args) => runOf(args).run(),
    async onNext({ extra: peer }, _id, _payload, args, result) {
      if (hasCode(result, 'DRAINING')) {
        peer.isDrained = true;
        if (isStream(args)) {
          peer.leaveIfDrained();
          await peer.closed();
        }
      }
      // A subscription is not ended: its client comes back from a socket that closes.
      if (isStream(args) && hasCode(result, 'UNAUTHENTICATED') && (await expiries.doubt(peer.authorization)))
        await peer.closed();
    },
    onComplete({ extra: peer }, _id, message) {
      peer.seat.letGo(message);
      peer.leaveIfDrained();
    },
  });
}

/** Identifies the caller of a socket. @returns whether the socket may stay */
async function admit(shared: Shared, connection: Connection): Promise<boolean> {
  const { options, lifetimes, incomingOf } = shared;
  const { expiries } = options;
  const { extra: peer } = connection;
  const { address } = peer;
  const authorization = authorizationOf(connection);
  if ((authorization?.length ?? 0) > MAX_CREDENTIAL) return false;
  // A stranger chose its size, and everything needed has been read. `delete` would double the memory of the rest of the
  // object.
  Object.assign(connection, { connectionParams: undefined });
  let caller: Caller;
  try {
    caller = await options.identify(incomingOf({ authorization, address }));
    // The socket has closed meanwhile. If it were watched now, nothing would end the watch.
    if (!peer.isOpen) return false;
    peer.clientId = caller.clientId;
    const claimed = peer.seat.claim(streamHolder(caller));
    if (claimed !== 'claimed') {
      noteRefusedStream(claimed);
      peer.close(TRY_AGAIN_LATER, STREAM_REFUSALS[claimed]);
      return false;
    }
  } catch (error) {
    if (error instanceof UnauthenticatedError) peer.refuse(error.message);
    else peer.close(TRY_AGAIN_LATER, 'Try again later');
    return false;
  }
  peer.authorization = authorization;
  peer.operations = connection.subscriptions;
  // From now on the socket takes turns as its caller.
  peer.turnKey = options.turnKeyOf(authorization, address);
  peer.address = undefined;
  expiries.watch(peer, authorization, caller);
  lifetimes.begin(connection);
  return true;
}

/** Prepares an operation: returns how it is to be run, or why it is refused. */
async function prepare(
  shared: Shared,
  connection: Connection,
  id: string,
  message: SubscribePayload,
): Promise<ExecutionArgs | readonly GraphQLError[]> {
  const { graph, options, incomingOf } = shared;
  const { extra: peer } = connection;
  const { authorization, payload } = peer;
  const incoming = incomingOf({ authorization });
  const refused = (errors: readonly GraphQLError[]) =>
    errors.map((error) => options.publicForm(error, incoming.requestId));
  const open = Object.keys(connection.subscriptions).length;
  // What a client has completed is counted until it has ended.
  if (Math.max(open, peer.executed + 1, peer.busy) > MAX_OPERATIONS) {
    noteRefusal('operations_of_socket');
    return refused([tooMany()]);
  }
  const enveloped = graph.yoga.getEnveloped({ incoming, isIdentified: true, transport: 'socket' });
  const document = documentOrError(() => enveloped.parse(options.documentOf(payload)));
  if (document instanceof GraphQLError) return refused([document]);
  const errors = enveloped.validate(enveloped.schema, document);
  if (errors.length > 0) return refused(errors);
  const { operationName, variables } = payload;
  const args = { schema: enveloped.schema, operationName, document, variableValues: variables };
  const operation = preparedOperation(args);
  if (operation === undefined) return refused([unclearOperation()]);
  dropUndeclared(operation, variables);
  const kept = keptOf(args);
  const refusal = peer.seat.keep(message, { ...kept, bytes: kept.bytes + sizeOf(id) });
  if (refusal !== undefined) return refused([refusedStream(refusal)]);
  const waiters = operation.type === OperationTypeNode.QUERY ? new Waiters() : undefined;
  Object.assign(incoming, { waiters });
  const contextValue = await enveloped.contextFactory();
  const execute = async () => peer.executing(() => enveloped.execute({ ...args, contextValue }));
  if (waiters !== undefined)
    return running(args, () => new Answer({ waiters, execute, failed: (error) => peer.failed(error) }));
  if (operation.type !== OperationTypeNode.SUBSCRIPTION) return running(args, () => peer.busyWith(execute));
  const alone = async () =>
    withheld(unwrapped(await enveloped.subscribe({ ...args, contextValue })), () =>
      options.expiries.doubt(authorization),
    );
  return running(args, just(await subscribe(shared, { args, operation, peer, id, incoming, alone })));
}

/** A subscription that may run. */
interface Subscribing {
  readonly args: ExecutionArgs;
  readonly operation: PreparedOperation;
  readonly peer: Peer;
  /** The operation's id on its socket. */
  readonly id: string;
  readonly incoming: Incoming;
  /** Subscribes for this socket alone. */
  alone(): Promise<Subscribed>;
}

/** Returns the stream of a subscription: the shared one of all who ask the same, or one of its own. */
async function subscribe(
  shared: Shared,
  { args, operation, peer, id, incoming, alone }: Subscribing,
): ReturnType<FanOut['subscribe']> {
  const { options, fanOut } = shared;
  const { authorization } = peer;
  // A caller that cannot be identified shares with its own credential alone, and gets the reason.
  const caller = await options.identify(incoming).catch(() => undefined);
  const stream = streamKey({
    operation,
    variables: args.variableValues,
    credential: authorization ?? '',
    visibility: caller && visibilityOf(caller),
  });
  const outlet = peer.outlet(id);
  // A reader that joins a shared stream passes no plugin. While the process drains each subscribes alone, and is refused.
  if (stream === undefined || options.drain.isDraining) {
    const subscribed = await alone();
    return subscribed instanceof PushStream ? fanOut.alone(outlet, subscribed) : subscribed;
  }
  const { key, resumes, ofAnyCredential } = stream;
  const open = () => subscribeForAll(shared, args, authorization, ofAnyCredential ? caller : undefined);
  return fanOut.subscribe({ key, outlet, open, alone, resumes });
}

/**
 * Subscribes for all who ask the same, from now on. With a `caller` that means all who may see the same, under no one's
 * credential. The position from which the first asker resumes is not used.
 */
async function subscribeForAll(
  { graph, options: { expiries }, incomingOf }: Shared,
  args: ExecutionArgs,
  authorization: string | undefined,
  caller: Caller | undefined,
): Promise<Subscribed> {
  // Otherwise the end of one caller's credential would end the stream of the others.
  const whose = caller
    ? { authorization: undefined, caller: { ...caller, expiresAt: undefined } }
    : { authorization };
  const enveloped = graph.yoga.getEnveloped({
    incoming: { ...incomingOf(whose), startsNow: true },
    transport: 'socket',
  });
  const contextValue = await enveloped.contextFactory();
  const subscribed = unwrapped(await enveloped.subscribe({ ...args, contextValue }));
  return caller ? subscribed : withheld(subscribed, () => expiries.doubt(authorization));
}

const isStream = (args: ExecutionArgs): boolean =>
  preparedOperation(args)?.type === OperationTypeNode.SUBSCRIPTION;

function documentOrError(read: () => DocumentNode): DocumentNode | GraphQLError {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    // As Yoga does for a document that comes over HTTP.
    error.extensions['code'] ??= 'GRAPHQL_PARSE_FAILED';
    return error;
  }
}

const tooMany = (): GraphQLError =>
  new GraphQLError(`A socket carries at most ${MAX_OPERATIONS} operations at once.`, {
    // Another may end meanwhile.
    extensions: { code: 'TOO_COMPLEX', retryable: true },
  });

function authorizationOf({ connectionParams, extra }: Connection): string | undefined {
  for (const name of ['authorization', 'Authorization']) {
    const value = connectionParams?.[name];
    if (typeof value === 'string') return value;
  }
  return extra.authorization;
}
