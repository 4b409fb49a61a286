import { Bodies } from '../common/bodies.ts';
import type { GraphConfig, GraphContext, GraphParts } from '../graphql/plugin-stack.ts';
import { documentOf } from '../graphql/plugins/trusted-documents.ts';
import { createRefusedRequestLog } from '../graphql/refused-requests.ts';
import { type Graph, MAX_BODY_BYTES, maskThrown } from '../graphql/yoga.ts';
import { createLimitLog } from '../observability/limit-log.ts';
import { createFastPath, type GraphHandler } from './http-fast-path.ts';
import type { Requests } from './requests.ts';

/** What the bodies of requests under way may take, in bytes. */
const BODIES = { total: 64 * 1024 * 1024, strangers: 16 * 1024 * 1024, perKey: 8 * 1024 * 1024 };

/**
 * Serves the graph over HTTP, in the cheapest way that each request allows. A body counts until its request is answered, or
 * until its stream begins, which keeps nothing of it.
 */
export function createGraphHttp(
  graph: Graph,
  { allowsOrigin, trustedDocuments, layersOff }: GraphConfig,
  { logger, shared, documents }: Pick<GraphParts, 'logger' | 'shared' | 'documents'>,
  { senderOf, turn }: Requests,
): GraphHandler<GraphContext> {
  const bodies = new Bodies(BODIES);
  const tellLimit = createLimitLog(logger);
  return createFastPath(graph.yoga, {
    schema: graph.schema,
    execute: graph.execute,
    isOn: !layersOff.has('fast-path'),
    maxBodyBytes: MAX_BODY_BYTES,
    async readBody(request, response) {
      const sender = senderOf(request);
      const body = await bodies.read(request, { ...sender, maxBytes: MAX_BODY_BYTES });
      if (body.kind === 'full' && body.whose === 'own') tellLimit('bodies_of_sender', sender.key);
      // Only a request whose connection stands has a whole body, so that its response has still to be closed.
      if (body.kind === 'whole') response.on('close', body.release);
      return body;
    },
    turn: (_request, { incoming }) => turn(incoming),
    allowsOrigin,
    documentOf: (request) => documentOf(trustedDocuments, request),
    findKept: (text) => documents.find(text),
    mask: (error) => maskThrown(error, logger),
    requestIdOf: ({ incoming }) => incoming.requestId,
    tellRefused: createRefusedRequestLog(logger),
    stringify: shared.stringify,
  });
}
