/**
 * Receives spans as a collector of OpenTelemetry does (OTLP/HTTP, JSON), in a process of its own. Its parent tells it on which port of
 * 127.0.0.1 to listen, or to be away (undefined), and is told which operations of callers have come.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { CALLER_SPAN } from './trace.ts';

/** What its parent sends; it sends the same back once that is so. */
export interface Listen {
  readonly port?: number;
}

/** Spans that have come: how many, and the traces of those that are an operation of a caller. */
export interface Received {
  readonly spans: number;
  readonly traceIds: readonly string[];
}

interface Sent {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly spans: readonly { readonly traceId: string; readonly parentSpanId?: string }[];
    }[];
  }[];
}

const server = createServer(async (request, response) => {
  // OpenTelemetry's exporter sends nothing else.
  const { resourceSpans } = (await json(request)) as Sent;
  const spans = resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
  const operations = spans.filter(({ parentSpanId }) => parentSpanId === CALLER_SPAN);
  const received: Received = { spans: spans.length, traceIds: operations.map(({ traceId }) => traceId) };
  process.send?.(received);
  response.end('{}');
});

// The parent is gone.
process.on('disconnect', () => process.exit(0));
process.on('message', async (message) => {
  const { port } = message as Listen;
  if (port === undefined) {
    server.close();
    server.closeAllConnections();
  } else {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  }
  process.send?.(message);
});
