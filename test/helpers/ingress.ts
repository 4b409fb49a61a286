import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { EventLog, EventType } from '../../src/events/log.ts';
import { SqliteLog } from '../../src/events/sqlite/sqlite-log.ts';
import { ingressUrl } from '../../src/ingress/addresses.ts';
import { createIngress, type IngressOptions } from '../../src/ingress/ingress.ts';
import { countingMetrics, recordingLogger } from './events.ts';

export const SECRET = 'a-secret-of-the-tests';

export interface RunningIngress extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly clientId: string;
  readonly log: EventLog;
  readonly metrics: ReturnType<typeof countingMetrics>;
  readonly logger: ReturnType<typeof recordingLogger>;
  /** Posts to the signed address of a type; a value that is neither text nor bytes is sent as JSON. */
  post(
    type: EventType,
    body: unknown,
    headers?: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<Response>;
  /** The same at the address of another client. */
  postAs(clientId: string, type: EventType, body: unknown): Promise<Response>;
  drain(): Promise<void>;
  quarantined(): { reason: string; body: string }[];
}

/** An ingress on a real HTTP server, over the embedded log unless another is given. */
export async function startIngress(
  options: Partial<IngressOptions> & { clientId?: string; onConnection?: (socket: Socket) => void } = {},
): Promise<RunningIngress> {
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-ingress-'));
  const metrics = countingMetrics();
  const logger = recordingLogger();
  const { clientId = randomUUID(), onConnection = () => {}, ...given } = options;
  const own = given.log === undefined;
  const log = given.log ?? new SqliteLog({ dataDir, retention: 10_000, metrics, now: Date.now });
  const ingress = createIngress({
    ...{ log, secrets: [SECRET], dataDir, metrics, logger, refundOf: async () => undefined },
    ...given,
  });
  const server = createServer((request, response) => void ingress.handle(request, response));
  server.on('connection', onConnection);
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  const url = await listen(server);
  const post = (
    who: string,
    type: EventType,
    body: unknown,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ) =>
    fetch(ingressUrl(url, who, type, SECRET), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      ...(signal === undefined ? {} : { signal }),
      body: body instanceof Uint8Array ? new Blob([Buffer.from(body)]) : asText(body),
    });
  return {
    url,
    port: Number(new URL(url).port),
    clientId,
    log,
    metrics,
    logger,
    post: (type, body, headers, signal) => post(clientId, type, body, headers, signal),
    postAs: (who, type, body) => post(who, type, body),
    drain: () => ingress.drain(),
    quarantined: () => {
      const database = new DatabaseSync(join(given.dataDir ?? dataDir, 'quarantine.sqlite'));
      const rows = database.prepare('SELECT reason, CAST(body AS TEXT) AS body FROM quarantine').all();
      database.close();
      return rows.map((row) => ({ reason: String(row['reason']), body: String(row['body']) }));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await ingress.drain();
      if (own) await log.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export interface RunningDecider extends AsyncDisposable {
  readonly url: string;
  /** The envelopes it was asked about. */
  readonly asked: unknown[];
  /** What each request named: the path and the query. */
  readonly askedAt: string[];
}

/** A decider that gives the answer it is told to; `'silence'` never answers, and one that `stalls` never ends its answer. */
export async function startDecider(
  verdict: { status: number; body?: string; stalls?: true } | 'silence',
): Promise<RunningDecider> {
  const asked: unknown[] = [];
  const askedAt: string[] = [];
  const server = createServer(async (request, response) => {
    askedAt.push(String(request.url));
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    asked.push(JSON.parse(Buffer.concat(chunks).toString()));
    if (verdict === 'silence') return;
    response.writeHead(verdict.status, { location: '/' });
    if (verdict.stalls) response.write(verdict.body);
    else response.end(verdict.body);
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  const url = await listen(server);
  return {
    url: `${url}/decide?on=credits`,
    asked,
    askedAt,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** The envelope of an external credit, as the spec has it. */
export function speiCredit(changes: { id_msg?: unknown; body?: Record<string, unknown> } = {}): {
  id_msg: string;
  msg_name: string;
  msg_date: string;
  body: Record<string, unknown>;
} {
  return {
    // Tests that give something else than text say so to the gateway, not to this function's reader.
    id_msg: (changes.id_msg ?? randomUUID()) as string,
    msg_name: 'MONEY_IN',
    msg_date: '2026-03-02',
    body: {
      id: randomUUID(),
      beneficiary_account: '646180157000000004',
      beneficiary_name: 'Ana',
      beneficiary_rfc: 'ND',
      payer_account: '012180001234567897',
      payer_name: 'Luis',
      payer_rfc: 'ND',
      payer_institution: '40012',
      amount: '250.00',
      transaction_date: '2026-03-02 10:00:00',
      tracking_key: 'TRK1',
      payment_concept: 'Pago',
      numeric_reference: '1234567',
      sub_category: 'SPEI_CREDIT',
      registered_at: '2026-03-02T10:00:00-06:00',
      owner_id: randomUUID(),
      ...changes.body,
    },
  };
}

/** The wrapper of a CEP message, as the spec has it. */
export function cep(
  clientId: string,
  status: string,
  id_msg: string = randomUUID(),
): { client_id: string; webhook_type: string; payload: Record<string, unknown> } {
  return {
    client_id: clientId,
    webhook_type: 'CEP',
    payload: {
      id_msg,
      msg_name: 'CEP',
      msg_date: '2026-03-02',
      body: { id: 'tx-1', status, processed_at: null },
    },
  };
}

function asText(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return `http://127.0.0.1:${address.port}`;
}
