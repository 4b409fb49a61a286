import type { IncomingMessage, Server } from 'node:http';
import { GRAPHQL_TRANSPORT_WS_PROTOCOL } from 'graphql-ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { clock } from '../common/clock.ts';
import { stagger } from '../common/stagger.ts';
import type { Graph } from '../graphql/yoga.ts';
import { addressKey } from '../operation/caller-keys.ts';
import { closeForRestart } from './sockets/close.ts';
import { startHeartbeat } from './sockets/heartbeat.ts';
import { startLifetimes } from './sockets/lifetime.ts';
import { Peer } from './sockets/peer.ts';
import { createProtocol, type ProtocolOptions } from './sockets/protocol.ts';
import { acceptUpgrades, type UpgradeOptions } from './upgrades.ts';

/** The longest message that is read, in bytes (SECURITY.md). */
const MAX_MESSAGE_BYTES = 64 * 1024;
/** In how many pieces a message may come, and into how many reads a piece may fall: each takes far more memory than its bytes. */
const MAX_PIECES = 1_024;
/** How long a peer may take to answer that its socket is closed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 3_000;

export interface WebSocketOptions extends UpgradeOptions, ProtocolOptions {
  /** Called with a caller's `Authorization`, and the client that it stands for, before it is told of an event. */
  onTold(authorization: string, clientId: string): void;
  /** Called with what an operation has failed with in a way that nobody has thought of. */
  onFailed(error: unknown): void;
  /** The lifetime of a socket, in milliseconds; 0 for no end. */
  readonly lifetimeMs: number;
  /** How long an operation may take, in milliseconds. */
  readonly operationTimeoutMs: number;
  /** Called with the code of each socket that has been closed. */
  onClosed(code: number): void;
}

export interface WebSocketTransport {
  /**
   * Closes every socket with 1012, so that clients reconnect elsewhere, and waits until they are gone. One that waits for the
   * answer to a query or a mutation is closed once it has it.
   *
   * @param withinMs over how many milliseconds they may be spread, and how long an answer may take.
   */
  stop(withinMs: number): Promise<void>;
}

/** With which codes ws closes a socket after an error of its peer (RFC 6455, 7.4.1). */
const CODES: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
};

/** The sockets that ws has closed after an error of their peers, with the code. It reads no answer to that, and says 1006 of the end. */
const broken = new WeakMap<WebSocket, number>();

/**
 * Shared by all sockets: a function made in a listener would hold all that its socket's upgrade knew, the bytes of the request
 * among it.
 */
function noteError(this: WebSocket, error: Error & { readonly code?: string }): void {
  const code = CODES[error.code ?? ''];
  if (code !== undefined) broken.set(this, code);
}

/**
 * Serves the graph over `graphql-transport-ws` on the HTTP server's upgrade requests. The executor, its plugins and the
 * context are those of the HTTP transport, so that an operation means the same over both.
 */
export function serveWebSockets(server: Server, graph: Graph, options: WebSocketOptions): WebSocketTransport {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    // ws has these options; its types do not name them yet.
    ...{ closeTimeout: CLOSE_TIMEOUT_MS, maxFragments: MAX_PIECES, maxBufferedChunks: MAX_PIECES },
    handleProtocols: (protocols) =>
      protocols.has(GRAPHQL_TRANSPORT_WS_PROTOCOL) ? GRAPHQL_TRANSPORT_WS_PROTOCOL : false,
  });
  const stopHeartbeat = startHeartbeat(sockets);
  const { onTold, onFailed, turns } = options;
  const peerOptions = { onTold, onFailed, turns };
  const lifetimes = startLifetimes(options.lifetimeMs, options.operationTimeoutMs);
  const protocol = createProtocol(graph, options, lifetimes);

  const peers = new Map<WebSocket, Peer>();
  const open = (socket: WebSocket, request: IncomingMessage, { address, seat }: Coming): void => {
    socket.on('error', noteError);
    const { authorization } = request.headers;
    const peer = new Peer(
      socket,
      { authorization, address, turnKey: addressKey(address), seat },
      peerOptions,
    );
    peers.set(socket, peer);
    const closed = protocol.opened(peer, peer);
    socket.once('close', (code, reason) => {
      peers.delete(socket);
      options.onClosed(broken.get(socket) ?? code);
      void closed(code, String(reason));
    });
    sockets.emit('connection', socket, request);
  };

  acceptUpgrades(server, options, ({ request, socket, head, address, seat }) =>
    sockets.handleUpgrade(request, socket, head, (webSocket) => open(webSocket, request, { address, seat })),
  );

  return {
    async stop(withinMs) {
      lifetimes.stop();
      const over = clock.sleep(withinMs, { ref: false });
      await stagger([...peers], ([socket, peer]) => closeForRestart(socket, peer, over), withinMs);
      stopHeartbeat();
      await new Promise((resolve) => sockets.close(resolve));
    },
  };
}

/** What is known of a socket besides its request. */
type Coming = Pick<Peer, 'address' | 'seat'>;
