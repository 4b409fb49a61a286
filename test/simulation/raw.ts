import type { WebSocket } from 'ws';
import type { AppWorld } from './apps.ts';

/** A result as GraphQL has it. */
export interface Told {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly ToldError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

interface ToldError {
  readonly message: string;
  readonly path?: readonly unknown[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

export interface Asked {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** How a question comes: by the fast path, by Yoga's own transport, or over a WebSocket. */
export type Way = 'fast' | 'yoga' | 'socket';
export const WAYS: readonly Way[] = ['fast', 'fast', 'yoga', 'socket'];

export const codesOf = ({ errors = [] }: Told): readonly string[] =>
  errors.map(({ extensions }) => String(extensions?.['code']));

/** Asks once. Rejects where no answer came. @param signal leaves */
export function ask(
  { network }: AppWorld,
  url: string,
  token: string,
  asked: Asked,
  { way, signal }: { readonly way: Way; readonly signal: AbortSignal },
): Promise<Told> {
  if (way === 'socket') return overSocket(network.socketClass(), url, token, asked, signal);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    // Another charset is not everyday.
    accept: way === 'fast' ? 'application/json' : 'application/json;charset=utf-8, */*;q=0.5',
  };
  return network
    .fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify(asked), signal })
    .then(async (response) => JSON.parse(await response.text()) as Told);
}

function overSocket(
  Socket: typeof WebSocket,
  url: string,
  token: string,
  asked: Asked,
  signal: AbortSignal,
): Promise<Told> {
  return new Promise((resolve, reject) => {
    const stream = open(Socket, url, token, asked, {
      next: (told) => {
        resolve(told);
        stream.leave();
      },
      completed: () => reject(new Error('completed without an answer')),
      closed: (code) => reject(new Error(`closed with ${code}`)),
      mark() {},
    });
    signal.addEventListener('abort', () => {
      stream.leave();
      reject(new Error('left'));
    });
  });
}

/** Told of what comes over a raw socket with one operation. */
export interface Hears {
  next(told: Told): void;
  completed(): void;
  closed(code: number): void;
  mark(cursor: string): void;
}

/** What is done with a raw socket. */
export interface RawStream {
  leave(): void;
  /** Breaks off without a word. */
  terminate(): void;
}

/** One operation over a socket of its own, in plain graphql-transport-ws. */
export function open(
  Socket: typeof WebSocket,
  url: string,
  token: string,
  asked: Asked,
  hears: Hears,
  subscribed: () => void = () => {},
): RawStream {
  const socket = new Socket(`${url.replace(/^http/, 'ws')}/graphql`, 'graphql-transport-ws');
  let isOver = false;
  const send = (message: object): void => {
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message));
  };
  socket.on('error', () => {});
  socket.on('open', () => send({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }));
  socket.on('close', (code: number) => {
    if (!isOver) hears.closed(code);
    isOver = true;
  });
  socket.on('message', (text: Buffer) => {
    if (isOver) return;
    const message = JSON.parse(String(text)) as {
      readonly type: string;
      readonly payload?: Told & { readonly bookmarks?: Readonly<Record<string, string>> };
    };
    const { type, payload } = message;
    if (type === 'connection_ack') {
      send({ id: '1', type: 'subscribe', payload: asked });
      subscribed();
    } else if (type === 'ping') {
      send({ type: 'pong' });
      const mark = payload?.bookmarks?.['1'];
      if (mark !== undefined) hears.mark(mark);
    } else if (type === 'next' && payload !== undefined) hears.next(payload);
    else if (type === 'error') hears.next({ errors: payload as unknown as readonly ToldError[] });
    else if (type === 'complete') hears.completed();
  });
  return {
    leave() {
      if (isOver) return;
      isOver = true;
      send({ id: '1', type: 'complete' });
      socket.close(1000);
    },
    terminate() {
      isOver = true;
      socket.terminate();
    },
  };
}
