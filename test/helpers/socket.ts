import { once } from 'node:events';
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
