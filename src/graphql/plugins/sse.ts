import type { ExecutionResult } from 'graphql';
import { isAsyncIterable, type Plugin } from 'graphql-yoga';
import { EVENT_STREAM, takesStreamsAlone } from '../../common/event-stream.ts';
import type { PushStream } from '../../common/push-stream.ts';
import type { Rounds } from '../../common/rounds.ts';
import { endUnread, notAcceptable } from '../../common/undelivered.ts';
import type { DeliveryMetrics } from '../../observability/event-metrics.ts';
import type { Incoming } from '../../operation/incoming.ts';
import { type CuttableConnection, EventStreamBody } from './sse-body.ts';

/** What this plugin needs of a request. */
interface StreamRequest extends CuttableConnection {
  readonly incoming: Pick<Incoming, 'requestId' | 'waiters'>;
}

/**
 * Streams of events over SSE, in the distinct-connections form of graphql-sse: `next` for each result, then `complete`.
 * Unlike Yoga's own, each event has its cursor as `id:`, which a client sends back as `Last-Event-ID`;
 * a block with nothing but `id:` says how far a stream has come that had nothing to show.
 *
 * A client takes an error for the end, and a connection that is lost for a reason to come back: a stream that goes on
 * elsewhere, or later, is cut off, and one that can only begin later is answered with the status 503.
 *
 * A stream that is not delivered is ended: where the client does not accept it, or has gone before it began.
 */
export function useServerSentEvents(metrics: DeliveryMetrics, rounds: Rounds): Plugin<object, StreamRequest> {
  return {
    onResultProcess({ request, result, serverContext, setResultProcessor }) {
      const accept = request.headers.get('accept');
      if (!isAsyncIterable(result)) {
        // Who takes JSON as well reads the errors in it.
        if (!takesStreamsAlone(accept ?? '')) return;
        // Batches are switched off: what is no stream is one result.
        const single = result as ExecutionResult;
        if (!canBeginLater(single)) return;
        setResultProcessor(
          (_, fetchAPI) => fetchAPI.Response.json(single, { status: 503, headers: { 'retry-after': '1' } }),
          EVENT_STREAM,
        );
        return;
      }
      if (!acceptsStream(accept)) {
        setResultProcessor(async (_, fetchAPI) => {
          await endUnread(result);
          return fetchAPI.Response.json(notAcceptable(serverContext.incoming.requestId), { status: 406 });
        }, 'application/json');
        return;
      }
      serverContext.releaseBody?.();
      setResultProcessor((_, fetchAPI) => {
        // Only subscriptions give iterables here: streams that push (pushed-streams.ts).
        const results = result as unknown as PushStream<ExecutionResult>;
        const body = new EventStreamBody(results, serverContext, { metrics, rounds });
        return new fetchAPI.Response(new ReadableStream(body), {
          headers: {
            'content-type': EVENT_STREAM,
            'cache-control': 'no-cache, no-transform',
            'x-accel-buffering': 'no',
          },
        });
      }, EVENT_STREAM);
    },
    onResponse({ response: { headers } }) {
      // Yoga asks for it with each answer that it streams, also where `transport/connections.ts` or the client makes the answer the last one.
      if (headers.has('connection')) headers.delete('connection');
      // With a single result as events Yoga sends `none`, which is no coding (RFC 9110, 8.4.1): a client that undoes codings gives up there, as Ktor's does.
      if (headers.get('content-encoding') === 'none') headers.delete('content-encoding');
    },
  };
}

/** Media ranges that a stream of events is in. Without the header, anything is accepted (RFC 9110, 12.5.1). */
const STREAM_RANGES: readonly (string | undefined)[] = [EVENT_STREAM, 'text/*', '*/*'];

const acceptsStream = (accept: string | null): boolean =>
  accept === null ||
  accept.split(',').some((range) => STREAM_RANGES.includes(range.split(';', 1)[0]?.trim().toLowerCase()));

/** Whether a stream that could not begin now can begin later or elsewhere. */
const canBeginLater = ({ data, errors }: ExecutionResult): boolean =>
  data == null && errors?.some(({ extensions }) => extensions['retryable'] === true) === true;
