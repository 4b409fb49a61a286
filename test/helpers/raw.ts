import { createClient as createSseClient } from 'graphql-sse';
import { WebSocket } from 'ws';
import type { GraphQLAnswer } from './gateway.ts';

/** What a request may hold, well-formed or not. */
export interface RawRequest {
  readonly query?: unknown;
  readonly variables?: unknown;
  readonly operationName?: unknown;
  readonly extensions?: unknown;
  readonly documentId?: unknown;
}

interface RawAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what its own document selects.
  readonly data?: any;
  readonly errors?: GraphQLAnswer['errors'];
}

/** One operation over a socket of its own; its first result or errors. */
async function askOverWebSocket(graphql: string, token: string, request: RawRequest): Promise<RawAnswer> {
  const socket = new WebSocket(graphql.replace(/^http/, 'ws'), 'graphql-transport-ws');
  try {
    return await new Promise<RawAnswer>((resolve, reject) => {
      socket.once('error', reject);
      socket.once('close', (code, reason) => reject(new Error(`closed with ${code} ${String(reason)}`)));
      socket.on('open', () =>
        socket.send(
          JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } }),
        ),
      );
      socket.on('message', (data) => {
        const message = JSON.parse(String(data));
        if (message.type === 'connection_ack') {
          socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: request }));
        }
        if (message.type === 'next') resolve(message.payload);
        if (message.type === 'error') resolve({ errors: message.payload });
      });
    });
  } finally {
    socket.removeAllListeners('close');
    socket.terminate();
  }
}

/** One operation over HTTP. */
async function askOverHttp(graphql: string, token: string, request: RawRequest): Promise<RawAnswer> {
  const response = await fetch(graphql, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify(request),
  });
  return (await response.json()) as RawAnswer;
}

/** One operation over SSE; its first result, or the errors that it is refused with. */
async function askOverSse(graphql: string, token: string, request: RawRequest): Promise<RawAnswer> {
  let refusal: RawAnswer | undefined;
  const client = createSseClient({
    url: graphql,
    headers: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
    fetchFn: async (...args: Parameters<typeof fetch>) => {
      const response = await fetch(...args);
      if (!response.ok) {
        const [, json = ''] =
          /^(?:.*data: )?(\{.*\})\s*(?:$|event: complete)/s.exec(await response.clone().text()) ?? [];
        refusal = JSON.parse(json);
      }
      return response;
    },
  });
  try {
    return await new Promise<RawAnswer>((resolve, reject) => {
      // The client's types want a text as `query`; what is not one is for the gateway to refuse.
      client.subscribe(request as { query: string }, {
        next: (result) => resolve(result as RawAnswer),
        error: (error) => (refusal === undefined ? reject(error) : resolve(refusal)),
        complete: () => reject(new Error('completed without a result')),
      });
    });
  } finally {
    client.dispose();
  }
}

export const ASKING = [
  ['HTTP', askOverHttp],
  ['WebSocket', askOverWebSocket],
  ['SSE', askOverSse],
] as const;
