import type { Server } from 'node:http';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import type { Drain } from '../graphql/plugins/drain.ts';
import type { Ingress } from '../ingress/ingress.ts';
import type { Connections } from '../transport/connections.ts';

/** How long requests in flight may take once the server is stopping, in milliseconds. */
const DRAIN_TIMEOUT_MS = 10_000;

/** The part of the remaining time that requests under way may take; then sockets; then event streams. */
const IN_FLIGHT_PART = 1 / 4;
const SOCKETS_PART = 0.6;
const STREAMS_PART = 0.8;

/** The times of a process that is told to end, in milliseconds. */
export interface ShutdownTimes {
  /** How long it still serves everything, while `/readyz` says that it will end. */
  readonly delayMs: number;
  /** How long it may take after that. */
  readonly graceMs: number;
}

interface Stoppable {
  stop(): Promise<unknown>;
}

interface Spreading {
  /** @param withinMs over how many milliseconds the clients are sent elsewhere. */
  stop(withinMs: number): Promise<unknown>;
}

/** The parts of a listening gateway that its end needs. */
export interface Running {
  readonly server: Server;
  readonly connections: Connections;
  readonly drain: Drain;
  readonly ingress: Ingress;
  readonly sockets: Spreading;
  /** Stopped once no socket is open. */
  readonly events: Spreading;
  /**
   * Stopped last, in this order. A payment whose request was cut off goes on, and its record is written before the store
   * closes.
   */
  readonly last: readonly Stoppable[];
  readonly logger: Logger;
}

/**
 * Says by `/readyz` that it will end, and serves on for the delay. Then stops accepting, waits for work under way, and closes
 * sockets, then stores.
 */
export async function shutDown({ delayMs, graceMs }: ShutdownTimes, running: Running): Promise<void> {
  const { server, connections, drain, ingress, sockets, events, last, logger } = running;
  drain.markEnding();
  // Each connection of a proxy ends after an answer, so that none is closed under a request.
  connections.end();
  if (delayMs > 0) {
    logger.info({ delayMs }, 'Told to end: /readyz says draining, and everything else is still served');
    await clock.sleep(delayMs);
  }

  const endsAt = clock.monotonic() + graceMs;
  const left = (): number => Math.max(0, endsAt - clock.monotonic());
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const expired = clock.sleep(Math.min(DRAIN_TIMEOUT_MS, graceMs * IN_FLIGHT_PART), { ref: false });
  // Work under way is answered while its socket is still open: webhooks, then payments.
  await Promise.race([Promise.all([drain.begin(), ingress.drain()]), expired]);
  await sockets.stop(left() * SOCKETS_PART);
  await events.stop(left() * STREAMS_PART);
  await Promise.race([closed, expired.then(() => server.closeAllConnections())]);
  for (const part of last) await part.stop();
}
