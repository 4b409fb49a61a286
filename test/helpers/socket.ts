import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { until } from './until.ts';

interface Message {
  readonly type: string;
  readonly id?: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it asked for.
  readonly payload?: any;
}

/** A socket that is initialised, and what it is sent. */
export async function connect({ graphql }: { readonly graphql: string }, authorization: string) {
  const socket = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  const got: Message[] = [];
  socket.on('message', (data) => got.push(JSON.parse(String(data))));
  await once(socket, 'open');
  const send = (message: object) => socket.send(JSON.stringify(message));
  send({ type: 'connection_init', payload: { authorization } });
  await until(() => got.some(({ type }) => type === 'connection_ack'));
  return {
    got,
    send,
    ask: (id: string, query: string) => send({ type: 'subscribe', id, payload: { query } }),
    /** Sends messages that come with the same bytes. */
    together(messages: readonly object[]): void {
      const { _socket: stream } = socket as unknown as { readonly _socket: Duplex };
      stream.cork();
      for (const message of messages) send(message);
      stream.uncork();
    },
    /** Resolves with the next message, as soon as it comes. */
    heard: () => once(socket, 'message'),
    /** How an operation has ended. */
    end: (id: string) => until(() => got.find((one) => one.id === id && one.type !== 'next')),
    /** Resolves with the code that the other side closes it with. */
    closed: async (): Promise<number> => {
      const [code] = await once(socket, 'close');
      return code;
    },
    async close() {
      socket.close();
      await once(socket, 'close');
    },
  };
}
