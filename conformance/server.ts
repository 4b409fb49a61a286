import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Send } from './case.ts';

/** An operation that the client has sent, or its pong. */
export interface Arrival {
  readonly kind: 'subscribe' | 'eventCursor' | 'mutation' | 'pong';
  readonly token: string | undefined;
  readonly after: unknown;
  readonly input: unknown;
  /** By `performance.now()`. */
  readonly at: number;
  reply(send: Send): void;
}

interface Request {
  readonly query: string;
  readonly variables?: { readonly after?: unknown; readonly input?: unknown };
}

const SUBPROTOCOL = 'graphql-transport-ws';

/** The gateway's side of one case: it says nothing by itself but what every gateway says. */
export async function startServer(arrived: (arrival: Arrival) => void) {
  const http = createServer((request, response) => {
    // A client that is killed breaks its request off.
    void serve(request, response, arrived).catch(() => response.destroy());
  });
  const sockets = new WebSocketServer({
    server: http,
    handleProtocols: (offered) => offered.has(SUBPROTOCOL) && SUBPROTOCOL,
  });
  sockets.on('connection', (socket) => talk(socket, arrived));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  // It listens on a port.
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/graphql`,
    close(): void {
      for (const socket of sockets.clients) socket.terminate();
      http.close();
      http.closeAllConnections();
    },
  };
}

const EVENT = (cursor: string) => ({
  moneyIn: { id: `event ${cursor}`, cursor, amount: { amount: '10.00' } },
});
const failed = (extensions: object) => ({ errors: [{ message: 'Played by the suite.', extensions }] });
/** What a client asks for beyond the script, such as how much it has missed. */
const NOT_PLAYED = failed({ code: 'UPSTREAM_UNAVAILABLE', retryable: true });

function kindOf(query: string): Arrival['kind'] | undefined {
  if (/^\s*subscription\b/.test(query)) return 'subscribe';
  if (/^\s*mutation\b/.test(query)) return 'mutation';
  return /\beventCursor\b/.test(query) ? 'eventCursor' : undefined;
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  arrived: (arrival: Arrival) => void,
): Promise<void> {
  const { query, variables } = JSON.parse(await text(request)) as Request;
  const kind = kindOf(query);
  const json = (body: object, status = 200, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  if (kind === undefined) return void json(NOT_PLAYED);
  const { authorization = '', accept = '', 'last-event-id': last } = request.headers;
  if (kind === 'subscribe' && !accept.includes('text/event-stream'))
    return void json(failed({ code: 'BAD_USER_INPUT' }), 406);
  const write = (block: string) => {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
    response.write(`${block}\n\n`);
  };
  const next = (body: object) => write(`event: next\ndata: ${JSON.stringify(body)}`);
  const complete = () => {
    write('event: complete\ndata: ');
    response.end();
  };
  const reply = (send: Send): void => {
    if ('answer' in send) return void json(send.answer);
    switch (send.send) {
      case 'event': {
        const body = JSON.stringify({
          data: EVENT(send.cursor),
          ...(send.errors && { errors: send.errors }),
        });
        return write(`event: next\nid: ${send.cursor}\ndata: ${body}`);
      }
      case 'bookmark':
        return write(`id: ${send.cursor}`);
      case 'ping':
        return write(':');
      case 'error':
        next(failed(send.extensions));
        return complete();
      case 'token refused':
        next(failed({ code: 'UNAUTHENTICATED' }));
        return complete();
      case 'complete':
        return complete();
      case 'later':
        return void json(failed({ code: 'DRAINING', retryable: true }), 503, { 'retry-after': '1' });
      default:
        response.destroy();
    }
  };
  arrived({
    kind,
    token: authorization.replace(/^Bearer /, ''),
    after: last ?? variables?.after,
    input: variables?.input,
    at: performance.now(),
    reply,
  });
}

interface Message {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

/** One socket: each operation that comes over it is an arrival. */
function talk(socket: WebSocket, arrived: (arrival: Arrival) => void): void {
  let token: string | undefined;
  const say = (message: Message) => socket.send(JSON.stringify(message));
  socket.on('error', () => socket.terminate());
  socket.on('message', (data) => {
    const { type, id = '', payload } = JSON.parse(String(data)) as Message;
    if (type === 'ping') return say({ type: 'pong', payload });
    if (type === 'connection_init') {
      token = String((payload as { authorization?: unknown })?.authorization).replace(/^Bearer /, '');
      return say({ type: 'connection_ack' });
    }
    if (type !== 'subscribe' && type !== 'pong') return;
    if (type === 'subscribe' && token === undefined) return socket.close(4401);
    const { query = '', variables } = (payload ?? {}) as Partial<Request>;
    const kind = type === 'pong' ? type : kindOf(query);
    const result = (body: object) => {
      say({ id, type: 'next', payload: body });
      say({ id, type: 'complete' });
    };
    if (kind === undefined) return result(NOT_PLAYED);
    const reply = (send: Send): void => {
      if ('answer' in send) return result(send.answer);
      switch (send.send) {
        case 'event': {
          const body = { data: EVENT(send.cursor), ...(send.errors && { errors: send.errors }) };
          return say({ id, type: 'next', payload: body });
        }
        case 'bookmark':
          return say({ type: 'ping', payload: { bookmarks: { [id]: send.cursor } } });
        case 'ping':
          return say({ type: 'ping', payload: send.payload });
        case 'error':
          return result(failed(send.extensions));
        case 'complete':
          return say({ id, type: 'complete' });
        case 'token refused':
          return socket.close(4403);
        case 'drain':
          return socket.close(1012);
        case 'later':
          return socket.close(1013);
        default:
          socket.terminate();
      }
    };
    const { after, input } = variables ?? {};
    arrived({ kind, token, after, input, at: performance.now(), reply });
  });
}
