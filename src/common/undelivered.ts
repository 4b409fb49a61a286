import { isAsyncIterable } from 'graphql-yoga';

/** Ends a result that nobody is going to read. One that is no stream holds nothing. */
export async function endUnread(result: unknown): Promise<void> {
  if (isAsyncIterable(result)) await result[Symbol.asyncIterator]().return?.();
}

/** What a subscription is answered that was asked for in a form that cannot carry it. */
export const notAcceptable = (requestId: string) => ({
  errors: [
    {
      message:
        'A subscription is a stream: ask for it with "accept: text/event-stream", or over a WebSocket.',
      extensions: { code: 'BAD_USER_INPUT', requestId },
    },
  ],
});
