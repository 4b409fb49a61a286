import { WebSocket, type WebSocketServer } from 'ws';
import { clock } from '../../common/clock.ts';

/** How often each socket is pinged, and how long it may take to answer, in milliseconds. */
const PING_MS = 12_000;
/** Sockets are pinged in so many parts, one after the other. */
const PARTS = 12;

/**
 * Ends sockets whose peer does not answer pings, and keeps proxies from closing quiet ones. One timer serves all: a timer for
 * each would cost more than the rest of an idle socket.
 *
 * @returns a function that ends it.
 */
export function startHeartbeat(server: WebSocketServer): () => void {
  const parts = new WeakMap<WebSocket, number>();
  const silent = new WeakSet<WebSocket>();
  let next = 0;
  function heard(this: WebSocket): void {
    silent.delete(this);
  }
  server.on('connection', (socket) => {
    parts.set(socket, next % PARTS);
    next += 1;
    socket.on('pong', heard);
  });
  let tick = 0;
  const timer = clock.setInterval(() => {
    tick = (tick + 1) % PARTS;
    for (const socket of server.clients) {
      if (parts.get(socket) !== tick) continue;
      if (silent.has(socket)) {
        socket.terminate();
      } else {
        silent.add(socket);
        // A socket in another state is closing. It may stay so without a time-out, if its peer has closed its half and does
        // not read the rest.
        if (socket.readyState === WebSocket.OPEN) socket.ping();
      }
    }
  }, PING_MS / PARTS);
  timer.unref();
  return () => clock.clearInterval(timer);
}
