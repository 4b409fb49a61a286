import type { Server } from 'node:http';
import { clock } from '../common/clock.ts';
import type { Logger } from '../common/logger.ts';
import type { Drain } from '../graphql/plugins/drain.ts';
import type { Ingress } from '../ingress/ingress.ts';
import type { Money } from '../money/execute.ts';
import { SETTLING_LEASE_MS } from '../money/settling/open-payment.ts';
import type { Connections } from '../transport/connections.ts';

/** How long the end waits for requests under way before it closes sockets, in milliseconds. They may take longer. */
const DRAIN_TIMEOUT_MS = 10_000;

/** The parts of the time left for which the end waits for requests under way, then for sockets, then for event streams. */
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

/** How long the stores take at the end of all, about, in milliseconds. */
const STORES_MS = 5_000;

/**
 * Returns after how long a process that is told to end has ended, in milliseconds, without the traces, which may take 2 s more. A kill before that
 * may cut a payment. docs/operations.md, "How long an end takes", has the same sum.
 *
 * @param operationTimeoutMs how long a payment may take that has begun before the grace
 */
export const longestEndMs = ({ delayMs, graceMs }: ShutdownTimes, operationTimeoutMs: number): number =>
  delayMs + Math.max(graceMs, operationTimeoutMs, SETTLING_LEASE_MS) + STORES_MS;

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
  /** Stopped once no socket is open. Then no event can be read or kept. */
  readonly events: Spreading;
  /**
   * From the end of the delay on it begins to settle and compare nothing by itself. It is stopped once the event log is: a payment whose
   * request was cut off goes on, and its record is written before the store closes, or tried as long as the grace lasts.
   */
  readonly money: Pick<Money, 'drain' | 'stop'>;
  /** Stopped last, in this order. */
  readonly last: readonly Stoppable[];
  readonly logger: Logger;
}

/**
 * Says by `/readyz` that it will end, and serves on for the delay. Then stops accepting, waits for work under way, and closes
 * sockets, then stores. ARCHITECTURE.md, "Follow an end", has each step with its time.
 */
export async function shutDown({ delayMs, graceMs }: ShutdownTimes, running: Running): Promise<void> {
  const { server, connections, drain, ingress, sockets, events, money, last, logger } = running;
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
  // A part that fails to end keeps no other open, least of all the payments.
  const ending = (work: Promise<unknown>): Promise<unknown> =>
    work.catch((err: unknown) => logger.error({ err }, 'a part of the gateway could not be closed'));
  // Work under way is answered while its socket is still open: webhooks, then payments. What looks for payments reads the log.
  await Promise.race([Promise.all([drain.begin(), ingress.drain(), money.drain()].map(ending)), expired]);
  await ending(sockets.stop(left() * SOCKETS_PART));
  await ending(events.stop(left() * STREAMS_PART));
  await Promise.race([closed, expired.then(() => server.closeAllConnections())]);
  await ending(money.stop(clock.timeoutSignal(Math.ceil(left()))));
  for (const part of last) await ending(part.stop());
}
