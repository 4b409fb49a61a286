import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { WebSocket, WebSocketServer } from 'ws';

/** A message of graphql-transport-ws. */
interface Message {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: an alteration reads what its own case is about.
  readonly payload?: any;
}

/** How a gateway differs from the real one behind it; what is missing is as it is there. */
export interface Alterations {
  /** A JSON answer over HTTP, and each result over a socket. */
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  answer?(answer: any): unknown;
  /** In the place of the content type of streams. */
  readonly streamType?: string;
  /** What stands in the place of a block of server-sent events. */
  block?(block: string): readonly string[];
  /** What stands in the place of a message. */
  message?(message: Message): readonly Message[];
  closes?(code: number): number;
  /** Whether ping frames are handed on. */
  readonly beats?: boolean;
  /** Headers of requests that are not handed on. */
  readonly drops?: string;
}

export interface AlteredGateway extends AsyncDisposable {
  readonly graphql: string;
}

/** Stands before a gateway as another that breaks a rule. */
export async function startAltered(graphql: string, alterations: Alterations): Promise<AlteredGateway> {
  const http = createServer((request, response) => {
    // A client that has heard enough breaks its request off.
    void relay(request, response, graphql, alterations).catch(() => response.destroy());
  });
  // Where this process stands still for long, an idle connection would be closed as it is used again.
  http.keepAliveTimeout = 0;
  const sockets = new WebSocketServer({ server: http, autoPong: false });
  sockets.on('connection', (client) => join(client, graphql, alterations));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  // It listens on a port.
  const { port } = http.address() as AddressInfo;
  return {
    graphql: `http://127.0.0.1:${port}/graphql`,
    async [Symbol.asyncDispose]() {
      for (const client of sockets.clients) client.terminate();
      http.closeAllConnections();
      http.close();
    },
  };
}

async function relay(
  request: IncomingMessage,
  response: ServerResponse,
  graphql: string,
  { answer = (same) => same, block = (same) => [same], streamType, drops }: Alterations,
): Promise<void> {
  const left = new AbortController();
  response.on('close', () => left.abort());
  const headers = ['authorization', 'content-type', 'accept', 'last-event-id'].flatMap((name) => {
    const value = request.headers[name];
    return typeof value === 'string' && name !== drops ? [[name, value] as [string, string]] : [];
  });
  const body = await text(request);
  const answered = await fetch(graphql, { method: 'POST', headers, body, signal: left.signal });
  const type = answered.headers.get('content-type') ?? '';
  if (!type.startsWith('text/event-stream')) {
    response.writeHead(answered.status, { 'content-type': type });
    response.end(JSON.stringify(answer(await answered.json())));
    return;
  }
  response.writeHead(answered.status, { 'content-type': streamType ?? type });
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of answered.body ?? []) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const one of blocks.flatMap(block)) response.write(`${one}\n\n`);
  }
  response.end();
}

function join(
  client: WebSocket,
  graphql: string,
  { answer, message = (same) => [same], closes = (same) => same, beats = true }: Alterations,
): void {
  const gateway = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const opened = once(gateway, 'open');
  client.on('message', (data) => void opened.then(() => gateway.send(String(data))));
  client.on('close', () => gateway.terminate());
  gateway.on('message', (data) => {
    const received: Message = JSON.parse(String(data));
    const { payload } = received;
    const answered =
      answer !== undefined && received.type === 'next' ? { ...received, payload: answer(payload) } : received;
    for (const one of message(answered)) client.send(JSON.stringify(one));
  });
  gateway.on('ping', () => beats && client.ping());
  gateway.on('close', (code) => (code === 1006 ? client.terminate() : client.close(closes(code))));
  for (const socket of [client, gateway]) socket.on('error', () => undefined);
}
