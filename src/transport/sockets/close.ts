import type { WebSocket } from 'ws';
import { clock } from '../../common/clock.ts';

/** How long a peer may take to answer that its socket is closed while the server stops, in milliseconds. */
const STOP_TIMEOUT_MS = 1_000;

/** Closes a socket. Cuts the connection of a peer that does not answer in time. */
export async function closeForRestart(socket: WebSocket): Promise<void> {
  if (socket.readyState === socket.CLOSED) return;
  await new Promise<void>((resolve) => {
    const timer = clock.setTimeout(() => socket.terminate(), STOP_TIMEOUT_MS);
    socket.once('close', () => {
      clock.clearTimeout(timer);
      resolve();
    });
    socket.close(1012, 'Service restart');
  });
}
