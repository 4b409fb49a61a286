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

const failed = (extensions: object) => ({ errors: [{ message: 'Played by the suite.', extensions }] });
/** What a client asks for beyond the script, such as how much it has missed. */
const NOT_PLAYED = failed({ code: 'UPSTREAM_UNAVAILABLE', retryable: true });

function kindOf(query: string): Arrival['kind'] | undefined {
  if (/^\s*subscription\b/.test(query)) return 'subscribe';
  if (/^\s*mutation\b/.test(query)) return 'mutation';
  return /\beventCursor\b/.test(query) ? 'eventCursor' : undefined;
}

/** An event as the gateway sends it. */
const result = ({ cursor, errors }: Extract<Send, { send: 'event' }>) => ({
  data: { moneyIn: { id: `event ${cursor}`, cursor, amount: { amount: '10.00' } } },
  ...(errors && { errors }),
});

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  arrived: (arrival: Arrival) => void,
): Promise<void> {
  const { query, variables } = JSON.parse(await text(request)) as Request;
  const kind = kindOf(query);
  const { authorization = '', accept = '', 'last-event-id': last } = request.headers;
  if (kind === undefined) answer(response, NOT_PLAYED);
  else if (kind === 'subscribe' && !accept.includes('text/event-stream'))
    answer(response, failed({ code: 'BAD_USER_INPUT' }), 406);
  else
    arrived({
      kind,
      token: authorization.replace(/^Bearer /, ''),
      after: last ?? variables?.after,
      input: variables?.input,
      at: performance.now(),
      reply: (send) => replyByHttp(response, send),
    });
}

function answer(response: ServerResponse, body: object, status = 200, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function replyByHttp(response: ServerResponse, send: Send): void {
  const write = (block: string) => {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
    response.write(`${block}\n\n`);
  };
  const complete = () => {
    write('event: complete\ndata: ');
    response.end();
  };
  const fail = (extensions: object) => {
    write(`event: next\ndata: ${JSON.stringify(failed(extensions))}`);
    complete();
  };
  if ('answer' in send) answer(response, send.answer);
  else if (send.send === 'event')
    write(`event: next\nid: ${send.cursor}\ndata: ${JSON.stringify(result(send))}`);
  else if (send.send === 'bookmark') write(`id: ${send.cursor}`);
  else if (send.send === 'ping') write(':');
  else if (send.send === 'error') fail(send.extensions);
  else if (send.send === 'token refused') fail({ code: 'UNAUTHENTICATED' });
  else if (send.send === 'complete') complete();
  else if (send.send === 'later')
    answer(response, failed({ code: 'DRAINING', retryable: true }), 503, { 'retry-after': '1' });
  else if (send.send === 'defect')
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>No such page</h1>');
  else response.destroy();
}

interface Message {
  readonly type: string;
  readonly id?: string;
  readonly payload?: unknown;
}

/** The message that a client has sent; undefined where the text is no JSON. */
function messageIn(text: string): Message | undefined {
  try {
    // A value that is no object has no type, and is passed over.
    return Object(JSON.parse(text)) as Message;
  } catch {
    return undefined;
  }
}

/** One socket: each operation that comes over it is an arrival. */
function talk(socket: WebSocket, arrived: (arrival: Arrival) => void): void {
  let token: string | undefined;
  socket.on('error', () => socket.terminate());
  socket.on('message', (data) => {
    const message = messageIn(String(data));
    if (message === undefined) {
      // The gateway closes with this code, too.
      socket.close(CLOSE_CODES.defect);
      return;
    }
    const { type, id = '', payload } = message;
    if (type === 'ping') say(socket, { type: 'pong', payload });
    if (type === 'connection_init') {
      const { authorization } = (payload ?? {}) as { readonly authorization?: unknown };
      token = String(authorization).replace(/^Bearer /, '');
      say(socket, { type: 'connection_ack' });
    }
    if (type !== 'subscribe' && type !== 'pong') return;
    const { query = '', variables } = (payload ?? {}) as Partial<Request>;
    const kind = type === 'pong' ? type : kindOf(query);
    if (type === 'subscribe' && token === undefined) socket.close(4401);
    else if (kind === undefined) replyBySocket(socket, id, { answer: NOT_PLAYED });
    else
      arrived({
        kind,
        token,
        after: variables?.after,
        input: variables?.input,
        at: performance.now(),
        reply: (send) => replyBySocket(socket, id, send),
      });
  });
}

const say = (socket: WebSocket, message: Message): void => socket.send(JSON.stringify(message));

const CLOSE_CODES = { drain: 1012, later: 1013, 'token refused': 4403, defect: 4400 } as const;

function replyBySocket(socket: WebSocket, id: string, send: Send): void {
  const next = (payload: object) => say(socket, { id, type: 'next', payload });
  const last = (payload: object) => {
    next(payload);
    say(socket, { id, type: 'complete' });
  };
  if ('answer' in send) last(send.answer);
  else if (send.send === 'event') next(result(send));
  else if (send.send === 'bookmark')
    say(socket, { type: 'ping', payload: { bookmarks: { [id]: send.cursor } } });
  else if (send.send === 'ping') say(socket, { type: 'ping', payload: send.payload });
  else if (send.send === 'error') last(failed(send.extensions));
  else if (send.send === 'complete') say(socket, { id, type: 'complete' });
  else if (send.send === 'cut') socket.terminate();
  else socket.close(CLOSE_CODES[send.send]);
}
