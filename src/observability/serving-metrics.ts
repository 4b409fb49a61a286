import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { SingleFlight } from '../common/single-flight.ts';

/** What the process says of itself, as far as it is counted. */
interface State {
  readonly ready: boolean;
  readonly degraded: readonly string[];
  /** Undefined where the gateway keeps its own log. */
  readonly redis: { readonly answers: boolean; readonly milliseconds: number } | undefined;
}

/** How the process serves: its connections, its readiness, and what it rests on. */
export interface ServingMetrics {
  /**
   * An answer is out, or its client has gone.
   *
   * @param status undefined where no answer had begun.
   */
  answered(path: string, status: number | undefined, milliseconds: number): void;
  socketClosed(code: number): void;
  /** Whom to ask how many seats of streams are taken, by what they came over. */
  watchSeats(ask: () => Readonly<Record<string, number>>): void;
  /** Whom to ask how the process is. */
  watchState(ask: () => Promise<State>): void;
  /** Callers' tokens, where the gateway verifies them itself. */
  readonly tokens: {
    tokenRefused(reason: string): void;
    keysRead(isRead: boolean): void;
    ownTokenAsked(isIssued: boolean): void;
  };
}

/** Every status that a webhook may be answered with; 0 where its sender has left before. */
const WEBHOOK_STATUSES = [0, 201, 400, 401, 405, 408, 413, 422, 500, 503];
const PARTS = ['events', 'spool', 'payments', 'redis', 'upstream'];
const TOKEN_FAILURES = ['expired', 'unknown-key', 'signature', 'claims', 'malformed', 'keys'];
/** A client may close with any code: those that say something here (RFC 6455, 7.4.1; graphql-transport-ws). */
const CLOSE_CODES = [
  1000, 1001, 1005, 1006, 1007, 1008, 1009, 1012, 1013, 4400, 4401, 4403, 4406, 4408, 4409, 4429, 4500,
];

/** What is running. */
interface Build {
  readonly version: string;
  /** The layers that are switched off, comma-separated. */
  readonly layersOff: string;
}

/** Makes the metrics in a registry. */
export function createServingMetrics(registry: Registry, build: Build): ServingMetrics {
  const registers = [registry];
  const requests = new Histogram({
    name: 'pasarela_http_request_duration_seconds',
    help: 'From a request until its answer is out, by path and status (0 when no answer had begun); not of event streams.',
    labelNames: ['path', 'status'],
    buckets: [0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  const closes = new Counter({
    name: 'pasarela_socket_closes_total',
    help: 'WebSockets that were closed, by the code of the close.',
    labelNames: ['code'],
    registers,
  });
  // A series that begins at 1 has no increase: an alert would miss the first webhook that is refused.
  for (const status of WEBHOOK_STATUSES) requests.zero({ path: '/webhooks/', status: String(status) });
  for (const code of [...CLOSE_CODES, 'other']) closes.inc({ code: String(code) }, 0);
  watchedBuild(registers, build);
  return {
    answered: (path, status, milliseconds) =>
      requests.observe({ path, status: String(status ?? 0) }, milliseconds / 1000),
    socketClosed: (code) => closes.inc({ code: CLOSE_CODES.includes(code) ? String(code) : 'other' }),
    watchSeats: seatMetrics(registers),
    watchState: stateMetrics(registers),
    tokens: tokenMetrics(registers),
  };
}

function watchedBuild(registers: Registry[], { version, layersOff }: Build): void {
  new Gauge({
    name: 'pasarela_build_info',
    help: 'Always 1; the labels say what is running.',
    labelNames: ['version', 'node', 'layers_off'],
    registers,
  }).set({ version, node: process.versions.node, layers_off: layersOff }, 1);
}

function seatMetrics(registers: Registry[]): ServingMetrics['watchSeats'] {
  let ask = (): Readonly<Record<string, number>> => ({});
  new Gauge({
    name: 'pasarela_open_streams',
    help: 'Seats of LIMIT_STREAMS that are taken, by kind: one for each WebSocket, and one for each stream over SSE.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, count] of Object.entries(ask())) this.set({ kind }, count);
    },
  });
  return (whom) => {
    ask = whom;
  };
}

function stateMetrics(registers: Registry[]): ServingMetrics['watchState'] {
  let ask: (() => Promise<State>) | undefined;
  const looks = new SingleFlight<State | undefined>();
  // All gauges are collected at the same time, so that one look serves them.
  const look = () => looks.run('', async () => ask?.().catch(() => undefined));
  new Gauge({
    name: 'pasarela_degraded',
    help: '1 while a part is missing, as /readyz says it.',
    labelNames: ['part'],
    registers,
    async collect() {
      const state = await look();
      for (const part of PARTS) this.set({ part }, state?.degraded.includes(part) ? 1 : 0);
    },
  });
  new Gauge({
    name: 'pasarela_redis_up',
    help: '1 while the Redis of the event log answers; absent without Redis.',
    labelNames: ['store'],
    registers,
    async collect() {
      const redis = (await look())?.redis;
      if (redis !== undefined) this.set({ store: 'events' }, redis.answers ? 1 : 0);
    },
  });
  new Gauge({
    name: 'pasarela_redis_ping_seconds',
    help: 'How long the Redis of the event log took to answer a PING when it was looked at last.',
    labelNames: ['store'],
    registers,
    async collect() {
      const redis = (await look())?.redis;
      if (redis !== undefined) this.set({ store: 'events' }, redis.milliseconds / 1000);
    },
  });
  new Gauge({
    name: 'pasarela_ready',
    help: '1 while /readyz answers 200.',
    registers,
    async collect() {
      this.set((await look())?.ready === true ? 1 : 0);
    },
  });
  return (whom) => {
    ask = whom;
  };
}

function tokenMetrics(registers: Registry[]): ServingMetrics['tokens'] {
  const refused = new Counter({
    name: 'pasarela_tokens_refused_total',
    help: 'Verifications of callers’ tokens that failed, in service mode, by reason; a request may count twice for `keys`.',
    labelNames: ['reason'],
    registers,
  });
  const reads = new Counter({
    name: 'pasarela_jwks_reads_total',
    help: 'Times that the keys of the identity provider were read, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const issued = new Counter({
    name: 'pasarela_own_token_requests_total',
    help: 'Times that the gateway asked the REST service for an access token of its own, in service mode, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  for (const reason of TOKEN_FAILURES) refused.inc({ reason }, 0);
  for (const outcome of ['ok', 'error']) {
    reads.inc({ outcome }, 0);
    issued.inc({ outcome }, 0);
  }
  return {
    tokenRefused: (reason) => refused.inc({ reason }),
    keysRead: (isRead) => reads.inc({ outcome: isRead ? 'ok' : 'error' }),
    ownTokenAsked: (isIssued) => issued.inc({ outcome: isIssued ? 'ok' : 'error' }),
  };
}
