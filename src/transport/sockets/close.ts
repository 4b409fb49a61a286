import type { WebSocket } from 'ws';
import { clock } from '../../common/clock.ts';
import { CONNECT_AGAIN } from './lifetime.ts';
import type { Peer } from './peer.ts';

/** How long a peer may take to answer that its socket is closed while the server stops, in milliseconds. */
const STOP_TIMEOUT_MS = 1_000;

/**
 * Closes a socket once its queries and mutations are answered, and the connection has taken the answers, or when the time for that is
 * over. Then cuts the connection of a peer that does not answer in time.
 *
 * @param over resolves when no answer is waited for any more.
 */
export async function closeForRestart(
  socket: WebSocket,
  peer: Pick<Peer, 'executed' | 'unsent' | 'isDrained'>,
  over: Promise<unknown>,
): Promise<void> {
  if (socket.readyState === socket.CLOSED) return;
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  if (peer.executed > 0 || peer.unsent > 0) {
    peer.isDrained = true;
    await Promise.race([closed, over]);
  }
  const timer = clock.setTimeout(() => socket.terminate(), STOP_TIMEOUT_MS);
  socket.close(CONNECT_AGAIN, 'Service restart');
  await closed;
  clock.clearTimeout(timer);
}
