import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

/** An answer of somebody in front of the service, before it is served or after. */
interface Page {
  readonly page: number;
  readonly served: boolean;
  /** What it says; its number without that. */
  readonly words?: string;
}

/**
 * What the upstream does with one request instead of serving it. Those `after` move the money first. A number is a status
 * that the service itself refuses with, in its documented form. `held` serves, and answers once {@link Upstream.letGo} is called.
 */
export type Fault =
  | 'reset-before'
  | 'reset-after'
  | 'hang-before'
  | 'hang-after'
  | 'truncate-after'
  | 'garbage-after'
  | 'no-transaction-after'
  | '502-after'
  | 'held'
  | 'other-amount-after'
  | Page
  | number;

interface Received {
  readonly path: string;
  readonly body: string;
  readonly idempotencyKey: string | undefined;
}

/**
 * A REST service with a ledger, over real HTTP. It knows money out (with the documented idempotency), internal
 * transactions, penny validations and refunds, each as `POST /{mutation}` with `{ reference, amount }`, and
 * `GET /original/{reference}`. The reference tells tests which key a movement belongs to.
 *
 * An amount of `0` is refused with the documented body; a credit may be refunded again and again, so that a second refund
 * is seen in the ledger.
 */
export interface Upstream extends AsyncDisposable {
  readonly url: string;
  /** Movements by reference. */
  readonly ledger: ReadonlyMap<string, number>;
  /** The POSTs that arrived, in order. */
  readonly received: readonly Received[];
  /** The faults to come, one per POST; after them the service is healthy. */
  readonly faults: Fault[];
  /** Likewise, for the reads of an original. */
  readonly readFaults: Fault[];
  /** Answers what is held. */
  letGo(): void;
  /** Forgets every idempotency key, as it does after a day. */
  forget(): void;
}

export async function startUpstream(): Promise<Upstream> {
  const ledger = new Map<string, number>();
  const received: Received[] = [];
  const faults: Fault[] = [];
  const readFaults: Fault[] = [];
  const kept = new Map<string, { body: string; answer: [number, string] }>();
  const held: (() => void)[] = [];

  const serve = ({ path, body, idempotencyKey }: Received): [number, string] => {
    const known = idempotencyKey === undefined ? undefined : kept.get(idempotencyKey);
    if (known !== undefined) return known.body === body ? known.answer : [409, '{"message":"another body"}'];
    const { reference, amount } = JSON.parse(body) as { reference: string; amount: string };
    const refused = amount === '0';
    if (!refused) ledger.set(reference, (ledger.get(reference) ?? 0) + 1);
    const answer: [number, string] = refused
      ? [400, serviceError(400)]
      : [200, JSON.stringify({ id: `${path.slice(1)}-${reference}-${ledger.get(reference)}`, amount })];
    if (idempotencyKey !== undefined) kept.set(idempotencyKey, { body, answer });
    return answer;
  };

  const post = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const key = request.headers['idempotency-key'];
    const idempotencyKey = typeof key === 'string' ? key : undefined;
    const call: Received = { path: request.url ?? '', body: await text(request), idempotencyKey };
    received.push(call);
    const fault = faults.shift();
    if (typeof fault === 'number') return reply(response, fault, serviceError(fault));
    if (typeof fault === 'object') {
      if (fault.served) serve(call);
      return reply(response, fault.page, `<html><h1>${fault.words ?? fault.page}</h1></html>`);
    }
    if (fault === 'reset-before') return void request.socket.resetAndDestroy();
    if (fault === 'hang-before') return;
    const [status, answer] = serve(call);
    switch (fault) {
      case 'reset-after':
        return void request.socket.resetAndDestroy();
      case 'hang-after':
        return;
      case 'truncate-after':
        response.writeHead(200, { 'content-length': answer.length });
        response.write(answer.slice(0, -3), () => request.socket.destroy());
        return;
      case 'garbage-after':
        return reply(response, 200, '<html>welcome</html>');
      case 'no-transaction-after':
        return reply(response, 200, '{"ok":true}');
      case 'other-amount-after':
        return reply(response, status, answer.replace(/"amount":"[^"]*"/, '"amount":"500.00"'));
      case '502-after':
        return reply(response, 502, '<html>bad gateway</html>');
      case 'held':
        return void held.push(() => reply(response, status, answer));
      case undefined:
        return reply(response, status, answer);
    }
  };

  const get = (request: IncomingMessage, response: ServerResponse): void => {
    const fault = readFaults.shift();
    const reference = decodeURIComponent(request.url?.replace('/original/', '') ?? '');
    const transactionStatus = ledger.has(reference) ? 'REFUNDED' : 'LIQUIDATED';
    if (typeof fault === 'number') reply(response, fault, '{"message":"fault"}');
    else if (fault !== undefined) request.socket.resetAndDestroy();
    else reply(response, 200, JSON.stringify({ id: `original-${reference}`, transactionStatus }));
  };

  const server = createServer((request, response) => {
    if (request.method === 'POST') void post(request, response);
    else get(request, response);
  }).listen(0, '127.0.0.1');
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  server.keepAliveTimeout = 0;
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');

  return {
    url: `http://127.0.0.1:${address.port}`,
    ledger,
    received,
    faults,
    readFaults,
    letGo: () => {
      for (const answer of held.splice(0)) answer();
    },
    forget: () => kept.clear(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The documented body of an error. */
export const serviceError = (status: number): string =>
  JSON.stringify({
    code: 9,
    message: 'API Error',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'FAILED_PRECONDITION',
        domain: 'CORE',
        metadata: { error_detail: 'A detail.', http_code: String(status), module: 'Transactions' },
      },
    ],
  });

function reply(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
