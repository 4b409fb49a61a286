import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Drain } from '../graphql/plugins/drain.ts';
import type { Ingress } from '../ingress/ingress.ts';
import type { Connections } from '../transport/connections.ts';

/** How long requests in flight may take once the server is stopping, in milliseconds. */
const DRAIN_TIMEOUT_MS = 10_000;

interface Stoppable {
  stop(): Promise<unknown>;
}

/** The parts of a gateway that is listening, as its end needs them. */
export interface Running {
  readonly server: Server;
  readonly connections: Connections;
  readonly drain: Drain;
  readonly ingress: Ingress;
  readonly sockets: Stoppable;
  /** Stopped once no socket is open any more. */
  readonly events: Stoppable;
  /** Stopped last, in this order. A payment whose request was cut off goes on, and its record is written before the store closes. */
  readonly last: readonly Stoppable[];
}

/** Stops accepting, lets what is in flight finish, closes sockets, then stores. */
export async function shutDown({
  server,
  connections,
  drain,
  ingress,
  sockets,
  events,
  last,
}: Running): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  connections.end();
  const expired = sleep(DRAIN_TIMEOUT_MS, undefined, { ref: false });
  // What is under way is answered while its socket is still open: webhooks, then payments.
  await Promise.race([Promise.all([drain.begin(), ingress.drain()]), expired]);
  await sockets.stop();
  await events.stop();
  await Promise.race([closed, expired.then(() => server.closeAllConnections())]);
  for (const part of last) await part.stop();
}
