import { once } from 'node:events';
import { connect } from 'node:net';
import { WebSocket } from 'ws';

/** What comes over a stream, as a client by hand reads it, in its order. */
export type Heard =
  | { readonly kind: 'event'; readonly id: string; readonly cursor: string; readonly stream: string }
  | { readonly kind: 'bookmark'; readonly cursor: string; readonly stream: string }
  | {
      readonly kind: 'error';
      readonly code: string;
      readonly extensions: Readonly<Record<string, unknown>>;
      readonly stream: string;
    }
  | { readonly kind: 'complete'; readonly stream: string }
  | { readonly kind: 'closed'; readonly code: number | undefined; readonly stream: string };

/** A subscription to a field `events` that selects `id` and `cursor`. */
export interface WireRequest {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A connection that its reader can leave unread. */
export interface Wire extends AsyncDisposable {
  readonly heard: readonly Heard[];
  /** Subscribes once more, under this name. Only a socket can. */
  subscribe(stream: string, request: WireRequest): void;
  stall(): void;
  resume(): void;
}

interface Result {
  readonly data?: { readonly events: { readonly id: string; readonly cursor: string } } | null;
  readonly errors?: readonly { readonly extensions: Readonly<Record<string, unknown>> }[];
}

function told(stream: string, { data, errors = [] }: Result): Heard[] {
  const codes = errors.map(
    ({ extensions }) =>
      ({ kind: 'error', code: String(extensions['code']), extensions, stream }) satisfies Heard,
  );
  return data == null ? codes : [...codes, { kind: 'event', ...data.events, stream }];
}

/** Speaks graphql-transport-ws by hand; resolves once it may subscribe. The first stream is named `1`. */
export async function wireOverWebSocket(graphql: string, token: string, request: WireRequest): Promise<Wire> {
  const socket = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const heard: Heard[] = [];
  const subscribe = (stream: string, payload: WireRequest) =>
    socket.send(JSON.stringify({ id: stream, type: 'subscribe', payload }));
  const acknowledged = Promise.withResolvers<void>();
  socket.on('error', () => {});
  socket.on('close', (code) => heard.push({ kind: 'closed', code, stream: '' }));
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type === 'connection_ack') acknowledged.resolve();
    if (message.type === 'next') heard.push(...told(message.id, message.payload));
    if (message.type === 'error') heard.push(...told(message.id, { errors: message.payload }));
    if (message.type === 'complete') heard.push({ kind: 'complete', stream: message.id });
    if (message.type === 'ping') {
      socket.send(JSON.stringify({ type: 'pong', payload: message.payload }));
      for (const [stream, cursor] of Object.entries(message.payload?.bookmarks ?? {}))
        heard.push({ kind: 'bookmark', cursor: String(cursor), stream });
    }
  });
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  await acknowledged.promise;
  subscribe('1', request);
  return {
    heard,
    subscribe,
    stall: () => socket.pause(),
    resume: () => socket.resume(),
    async [Symbol.asyncDispose]() {
      if (heard.some(({ kind }) => kind === 'closed')) return;
      const closed = once(socket, 'close');
      socket.resume();
      socket.terminate();
      await closed;
    },
  };
}

/** Reads a stream of server-sent events by hand. */
async function wireOverSse(graphql: string, token: string, request: WireRequest): Promise<Wire> {
  const { hostname, port, host } = new URL(graphql);
  const socket = connect(Number(port), hostname);
  const heard: Heard[] = [];
  let text = '';
  socket.on('error', () => {});
  socket.on('close', () => heard.push({ kind: 'closed', code: undefined, stream: '1' }));
  socket.setEncoding('utf8').on('data', (chunk) => {
    // Lines of chunked transfer coding stand among those of the stream, and never within one of its short ones.
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) heard.push(...read(block));
  });
  await once(socket, 'connect');
  const body = JSON.stringify(request);
  const head = [
    'POST /graphql HTTP/1.1',
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    'Accept: text/event-stream',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return {
    heard,
    subscribe: () => {
      throw new Error('one connection carries one stream');
    },
    stall: () => socket.pause(),
    resume: () => socket.resume(),
    async [Symbol.asyncDispose]() {
      if (heard.some(({ kind }) => kind === 'closed')) return;
      const closed = once(socket, 'close');
      socket.resume();
      socket.destroy();
      await closed;
    },
  };
}

function read(block: string): Heard[] {
  const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1];
  const [id, event, data] = [field('id'), field('event'), field('data')];
  if (event === 'complete') return [{ kind: 'complete', stream: '1' }];
  if (event === 'next') return told('1', JSON.parse(data ?? '{}'));
  return id === undefined ? [] : [{ kind: 'bookmark', cursor: id, stream: '1' }];
}

export const WIRES = [
  ['WebSocket', wireOverWebSocket],
  ['SSE', wireOverSse],
] as const;
