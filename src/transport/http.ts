import { Bodies } from '../common/bodies.ts';
import { documentOf } from '../graphql/plugins/trusted-documents.ts';
import {
  type Graph,
  type GraphConfig,
  type GraphContext,
  type GraphParts,
  MAX_BODY_BYTES,
  maskThrown,
} from '../graphql/yoga.ts';
import { createJsonPost, type Transport } from './http-fast-path.ts';
import type { Requests } from './requests.ts';

/** What the bodies of requests under way may take, in bytes. */
const BODIES = { total: 64 * 1024 * 1024, strangers: 16 * 1024 * 1024, perKey: 8 * 1024 * 1024 };

/**
 * HTTP for the graph, in the cheapest way that each request allows. A body counts until its request is answered, or its stream
 * begins, which keeps nothing of it.
 */
export function createGraphHttp(
  graph: Graph,
  { allowsOrigin, trustedDocuments }: GraphConfig,
  { logger, shared }: Pick<GraphParts, 'logger' | 'shared'>,
  { senderOf, turn }: Requests,
): Transport<GraphContext> {
  const bodies = new Bodies(BODIES);
  return createJsonPost(graph, {
    maxBodyBytes: MAX_BODY_BYTES,
    async readBody(request, response) {
      const body = await bodies.read(request, { ...senderOf(request), maxBytes: MAX_BODY_BYTES });
      if (body.kind === 'whole') {
        response.once('close', body.release);
        if (response.destroyed) body.release();
      }
      return body;
    },
    turn: (_request, { incoming }) => turn(incoming),
    allowsOrigin,
    documentOf: (request) => documentOf(trustedDocuments, request),
    mask: (error) => maskThrown(error, logger),
    stringify: shared.stringify,
  });
}
