import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { CURSOR } from './graphql-js.ts';

const EVENT_STREAM = 'text/event-stream';
/** A comment this often keeps proxies from closing a quiet stream, in milliseconds. */
const PING_MS = 12_000;

/**
 * Streams of events over SSE, in the distinct-connections form of graphql-sse: `next` for each result, then `complete`.
 * Unlike Yoga's own, each event has its cursor as `id:`, which a client sends back as `Last-Event-ID`.
 */
export function useServerSentEvents(): Plugin {
  return {
    onResultProcess({ request, result, setResultProcessor }) {
      if (!isAsyncIterable(result) || !request.headers.get('accept')?.includes(EVENT_STREAM)) return;
      setResultProcessor((_, fetchAPI) => {
        // Only subscriptions give iterables here, and those are of results.
        const body = encode(result as AsyncIterable<ExecutionResult>);
        return new fetchAPI.Response(body, {
          headers: {
            'content-type': EVENT_STREAM,
            'cache-control': 'no-cache',
            connection: 'keep-alive',
            'x-accel-buffering': 'no',
          },
        });
      }, EVENT_STREAM);
    },
  };
}

/** Reads on only as fast as the client does: what waits, waits in the event log's bounded queue. */
function encode(results: AsyncIterable<ExecutionResult>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = results[Symbol.asyncIterator]();
  let ping: NodeJS.Timeout | undefined;
  return new ReadableStream<Uint8Array>({
    start(controller) {
      // Headers reach some clients only with the first byte of the body.
      controller.enqueue(encoder.encode(':\n\n'));
      ping = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(':\n\n'));
      }, PING_MS);
    },
    async pull(controller) {
      const step = await iterator.next();
      if (step.done) {
        clearInterval(ping);
        controller.enqueue(encoder.encode('event: complete\ndata:\n\n'));
        controller.close();
        return;
      }
      controller.enqueue(encoder.encode(eventOf(step.value)));
    },
    async cancel() {
      clearInterval(ping);
      await iterator.return?.();
    },
  });
}

function eventOf(result: ExecutionResult): string {
  const cursor: unknown = Reflect.get(result, CURSOR);
  const id = typeof cursor === 'string' ? `id: ${cursor}\n` : '';
  return `event: next\n${id}data: ${JSON.stringify(result)}\n\n`;
}
