import { GraphQLError, type GraphQLSchema } from 'graphql';
import { createYoga, type YogaServerInstance } from 'graphql-yoga';
import type { Logger } from '../common/logger.ts';
import { noteRefusal } from '../common/refusals.ts';
import { buildServedSchema } from '../schema/index.ts';
import type { Execute } from './execution-hook.ts';
import { type GraphConfig, type GraphContext, type GraphParts, pluginsOf } from './plugin-stack.ts';
import { toPublicError } from './public-errors.ts';

/** The executor with its plugins, and HTTP and SSE on top of it. */
export interface Graph {
  readonly schema: GraphQLSchema;
  readonly yoga: YogaServerInstance<GraphContext, object>;
  /** Executes a query or a mutation as `yoga` does, without its readiness to wait for each plugin. */
  readonly execute: Execute;
}

/** The longest request body, in bytes. */
export const MAX_BODY_BYTES = 256 * 1024;

/** What a page of another origin may read of an answer besides its body: the least pause before it comes back. */
export const EXPOSED_HEADERS = ['Retry-After'];

export function createGraph(config: GraphConfig, parts: GraphParts): Graph {
  const { path, logger } = parts;
  const schema = buildServedSchema();
  const { execute, plugins } = pluginsOf(config, parts);
  const yoga = createYoga<GraphContext>({
    schema,
    graphqlEndpoint: path,
    plugins,
    // What it would keep, anybody could fill.
    parserAndValidationCache: false,
    extraParamNames: ['documentId'],
    // Errors of the result are masked by the plugin above; this masks what is thrown before there is one.
    maskedErrors: {
      errorMessage: 'Unexpected error',
      maskError: (error) => maskThrown(error, logger),
    },
    cors: (request) => {
      const origin = request.headers.get('origin');
      return origin !== null && config.allowsOrigin(origin)
        ? {
            origin: [origin],
            credentials: false,
            methods: ['GET', 'POST'],
            exposedHeaders: EXPOSED_HEADERS,
            maxAge: 600,
          }
        : false;
    },
    landingPage: false,
    batching: false,
    multipart: false,
    maxRequestBodySize: MAX_BODY_BYTES,
    // The page is workbench/.
    graphiql: false,
    // What it says of errors, the masking above has said already, and without what callers had sent.
    logging: false,
  });
  return { schema, yoga, execute };
}

/** Errors from before an operation runs: those of GraphQL and HTTP are for the caller, others are not. */
export function maskThrown(error: unknown, logger: Logger): GraphQLError {
  if (error instanceof GraphQLError && error.extensions['code'] === 'REQUEST_ENTITY_TOO_LARGE') {
    noteRefusal('body_length');
    return new GraphQLError(`The request is longer than the ${MAX_BODY_BYTES} bytes that are allowed.`, {
      extensions: { ...error.extensions, code: 'TOO_COMPLEX' },
    });
  }
  const known = error instanceof GraphQLError ? toPublicError(error) : undefined;
  if (known !== undefined) return known;
  logger.error({ err: error }, 'A request failed unexpectedly');
  return new GraphQLError('Unexpected error', { extensions: { code: 'INTERNAL' } });
}
