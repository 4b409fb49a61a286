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

/** HTTP for the graph, in the cheapest way that each request allows. */
export const createGraphHttp = (
  graph: Graph,
  { allowsOrigin, trustedDocuments }: GraphConfig,
  { logger, shared }: Pick<GraphParts, 'logger' | 'shared'>,
): Transport<GraphContext> =>
  createJsonPost(graph, {
    maxBodyBytes: MAX_BODY_BYTES,
    allowsOrigin,
    documentOf: (request) => documentOf(trustedDocuments, request),
    mask: (error) => maskThrown(error, logger),
    stringify: shared.stringify,
  });
