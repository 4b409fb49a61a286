import { once } from 'node:events';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { clock } from '../../common/clock.ts';
import { type Connection, codeOf, ERRORS, Hearing, RESULT } from './connection.ts';

const SUBPROTOCOL = 'graphql-transport-ws';
/** How long connecting may take, in milliseconds. */
const CONNECT_MS = 15_000;

const MESSAGE = z.discriminatedUnion('type', [
  z.object({ type: z.literal('connection_ack') }),
  z.object({
    type: z.literal('next'),
    id: z.string(),
    payload: RESULT,
  }),
  z.object({ type: z.literal('error'), id: z.string(), payload: ERRORS }),
  z.object({ type: z.literal('complete'), id: z.string() }),
  z.object({
    type: z.literal('ping'),
    payload: z.object({ bookmarks: z.record(z.string(), z.string()).optional() }).optional(),
  }),
  z.object({ type: z.literal('pong'), payload: z.unknown().optional() }),
]);

/**
 * Opens a socket with the subprotocol, without a library.
 *
 * @param init true to send `connection_init`, and to wait for its acknowledgement before operations are sent
 * @throws Error if the gateway takes no socket with the subprotocol
 */
export async function connectBySocket(url: string, token: string, init: boolean): Promise<Connection> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), SUBPROTOCOL, { handshakeTimeout: CONNECT_MS });
  const heard = new Hearing();
  const acknowledged = Promise.withResolvers<void>();
  const say = (message: object) => socket.send(JSON.stringify(message));
  socket.on('message', (data) => {
    const message = MESSAGE.safeParse(parsed(String(data))).data;
    if (message === undefined) return;
    if (message.type === 'connection_ack') acknowledged.resolve();
    else if (message.type === 'next')
      heard.push({ kind: 'next', stream: message.id, result: message.payload });
    else if (message.type === 'error')
      heard.push({ kind: 'error', stream: message.id, code: String(codeOf({ errors: message.payload })) });
    else if (message.type === 'complete') heard.push({ kind: 'complete', stream: message.id });
    else if (message.type === 'pong') heard.push({ kind: 'pong', payload: message.payload });
    else {
      say({ type: 'pong' });
      for (const [stream, cursor] of Object.entries(message.payload?.bookmarks ?? {}))
        heard.push({ kind: 'bookmark', stream, cursor });
    }
  });
  socket.on('ping', () => heard.push({ kind: 'beat' }));
  socket.on('close', (code) => {
    acknowledged.resolve();
    heard.push({ kind: 'closed', code });
  });
  await once(socket, 'open');
  // From here on a close follows every error.
  socket.on('error', () => undefined);
  if (init) {
    say({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } });
    const late = clock.setTimeout(() => socket.terminate(), CONNECT_MS);
    await acknowledged.promise.finally(() => clock.clearTimeout(late));
  }
  const subscribe = async (id: string, payload: object) => say({ id, type: 'subscribe', payload });
  return {
    heard,
    query: subscribe,
    subscribe,
    send: async (text) => socket.send(text),
    async [Symbol.asyncDispose]() {
      if (socket.readyState === WebSocket.CLOSED) return;
      const closed = once(socket, 'close');
      socket.terminate();
      await closed;
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
