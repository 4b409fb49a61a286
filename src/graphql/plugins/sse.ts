import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { endUnread, NOT_ACCEPTABLE } from '../../common/undelivered.ts';
import type { DeliveryMetrics } from '../../observability/metrics.ts';
import { originOf } from '../executor/graphql-js.ts';
import { countDelivery } from './deliveries.ts';

const EVENT_STREAM = 'text/event-stream';
/** A comment this often keeps proxies from closing a quiet stream, in milliseconds. */
const PING_MS = 12_000;

/** What this plugin needs of the transport that an operation came over. */
export interface CuttableConnection {
  /** Ends the connection in the midst of an answer; undefined where an operation has no connection of its own. */
  readonly cut?: () => void;
  /** Lets go of the request's body, of which a stream keeps nothing. */
  readonly releaseBody?: () => void;
  readonly incoming?: {
    /** Who waits for the result; its signal is aborted once nobody does. */
    readonly waiters: { readonly signal: AbortSignal } | undefined;
  };
}

/**
 * Streams of events over SSE, in the distinct-connections form of graphql-sse: `next` for each result, then `complete`.
 * Unlike Yoga's own, each event has its cursor as `id:`, which a client sends back as `Last-Event-ID`.
 *
 * A client takes an error for the end, and a connection that is lost for a reason to come back: a stream that goes on
 * elsewhere, or later, is cut off, and one that can only begin later is answered with the status 503.
 *
 * A stream that is not delivered is ended: where the client does not accept it, or has gone before it began.
 */
export function useServerSentEvents(metrics: DeliveryMetrics): Plugin<object, CuttableConnection> {
  return {
    onResultProcess({ request, result, serverContext, setResultProcessor }) {
      const accept = request.headers.get('accept');
      if (!isAsyncIterable(result)) {
        if (accept?.includes(EVENT_STREAM) !== true) return;
        // Batches are switched off: what is no stream is one result.
        const single = result as ExecutionResult;
        if (!canBegin(single)) return;
        setResultProcessor(
          (_, fetchAPI) => fetchAPI.Response.json(single, { status: 503, headers: { 'retry-after': '1' } }),
          EVENT_STREAM,
        );
        return;
      }
      if (!acceptsStream(accept)) {
        setResultProcessor(async (_, fetchAPI) => {
          await endUnread(result);
          return fetchAPI.Response.json(NOT_ACCEPTABLE, { status: 406 });
        }, 'application/json');
        return;
      }
      serverContext.releaseBody?.();
      setResultProcessor((_, fetchAPI) => {
        // Only subscriptions give iterables here, and those are of results.
        const body = encode(result as AsyncIterable<ExecutionResult>, serverContext, metrics);
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
function encode(
  results: AsyncIterable<ExecutionResult>,
  { cut, incoming }: CuttableConnection,
  metrics: DeliveryMetrics,
): ReadableStream<Uint8Array> {
  const since = Date.now();
  const waiters = incoming?.waiters;
  const encoder = new TextEncoder();
  const iterator = results[Symbol.asyncIterator]();
  let ping: NodeJS.Timeout | undefined;
  const leave = async (): Promise<void> => {
    clearInterval(ping);
    waiters?.signal.removeEventListener('abort', leave);
    await iterator.return?.();
  };
  return new ReadableStream<Uint8Array>({
    async start(controller) {
      // A response that nobody reads any more when it is handed out is never cancelled.
      if (waiters?.signal.aborted === true) {
        await leave();
        controller.close();
        return;
      }
      waiters?.signal.addEventListener('abort', leave);
      // Headers reach some clients only with the first byte of the body.
      controller.enqueue(encoder.encode(':\n\n'));
      ping = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(':\n\n'));
      }, PING_MS);
    },
    async pull(controller) {
      const step = await iterator.next();
      if (step.done) {
        await leave();
        controller.enqueue(encoder.encode('event: complete\ndata:\n\n'));
        controller.close();
        return;
      }
      if (goesOn(step.value)) {
        cut?.();
        return;
      }
      countDelivery(metrics, step.value, 1, since);
      controller.enqueue(encoder.encode(eventOf(step.value)));
    },
    cancel: leave,
  });
}

/** Media ranges that a stream of events is in. Without the header, anything is accepted (RFC 9110, 12.5.1). */
const STREAM_RANGES: readonly (string | undefined)[] = [EVENT_STREAM, 'text/*', '*/*'];

const acceptsStream = (accept: string | null): boolean =>
  accept === null ||
  accept.split(',').some((range) => STREAM_RANGES.includes(range.split(';', 1)[0]?.trim().toLowerCase()));

/** Whether a stream that could not begin now can begin later or elsewhere. */
const canBegin = ({ data, errors }: ExecutionResult): boolean =>
  data == null && errors?.some(({ extensions }) => extensions['retryable'] === true) === true;

/** What ends a stream that goes on where it is taken up again. Other ends are for the client to know of. */
const RESUMED_AFTER: readonly unknown[] = ['DRAINING', 'SLOW_CONSUMER'];

const goesOn = ({ errors }: ExecutionResult): boolean =>
  errors?.some(({ extensions }) => RESUMED_AFTER.includes(extensions['code'])) === true;

function eventOf(result: ExecutionResult): string {
  const cursor = originOf(result)?.cursor;
  const id = cursor === undefined ? '' : `id: ${cursor}\n`;
  return `event: next\n${id}data: ${JSON.stringify(result)}\n\n`;
}
