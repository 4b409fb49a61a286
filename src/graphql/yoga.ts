import { GraphQLError } from 'graphql';
import { createYoga, type YogaServerInstance } from 'graphql-yoga';
import type { Logger } from '../common/logger.ts';
import type { Rounds } from '../common/rounds.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Tracing } from '../observability/tracing.ts';
import type { ContextFactory } from '../operation/context.ts';
import type { Incoming } from '../operation/incoming.ts';
import { forgetRights } from '../schema/builder.ts';
import { buildSchema } from '../schema/index.ts';
import { useGraphQLJs } from './executor/graphql-js.ts';
import { useAdmission } from './plugins/admission.ts';
import { useCredentialExpiry } from './plugins/credential-expiry.ts';
import { useCsrfPrevention } from './plugins/csrf-prevention.ts';
import { useDeclaredVariables } from './plugins/declared-variables.ts';
import { useDisableIntrospection } from './plugins/disable-introspection.ts';
import type { Drain } from './plugins/drain.ts';
import { useErrorMasking } from './plugins/error-masking.ts';
import { type Limits, useLimits } from './plugins/limits.ts';
import { useOperationContext } from './plugins/operation-context.ts';
import { useOperationMetrics } from './plugins/operation-metrics.ts';
import { usePrefetch } from './plugins/prefetch.ts';
import { preparedOperation, usePreparedOperations } from './plugins/prepared-operation.ts';
import { usePushedStreams } from './plugins/pushed-streams.ts';
import type { QueryDeduplication } from './plugins/query-deduplication.ts';
import { useServerSentEvents } from './plugins/sse.ts';
import type { CuttableConnection } from './plugins/sse-body.ts';
import { useStreamLimit } from './plugins/stream-limit.ts';
import { type TrustedDocuments, useTrustedDocuments } from './plugins/trusted-documents.ts';
import { useUpstreamReport } from './plugins/upstream-report.ts';
import { placesOf, toDocumentError, toPublicError } from './public-errors.ts';

/** How the graph is served, whichever transport asks. */
export interface GraphConfig {
  /** Whether pages of an origin may use the graph. */
  readonly allowsOrigin: (origin: string) => boolean;
  /** Without it no error suggests a name either. */
  readonly introspection: boolean;
  readonly upstreamReport: boolean;
  /** What one operation may ask for at most. */
  readonly limits: Limits;
  /** How many REST calls of one caller may be under way at once, and how many operations. */
  readonly upstreamCallsPerCaller: number;
  /** How many operations of one caller may wait for their turn. */
  readonly operationsQueue: number;
  /** The only documents that run; undefined lets any run. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  /** Where operations, REST calls and webhooks are traced; undefined for nowhere. Its creator stops it. */
  readonly tracing?: Tracing | undefined;
}

/** What an operation's context is made from. */
export interface GraphContext extends CuttableConnection {
  readonly incoming: Incoming;
  /** Whether its caller has been identified before. */
  readonly isIdentified?: boolean;
}

export type Graph = YogaServerInstance<GraphContext, object>;

export interface GraphParts {
  readonly path: string;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly drain: Drain;
  readonly shared: QueryDeduplication;
  /** When each reader of a stream is told where it stands. */
  readonly rounds: Rounds;
  readonly createContext: ContextFactory;
}

/** The longest request body, in bytes. */
export const MAX_BODY_BYTES = 256 * 1024;
/** Documents of identified callers that are kept, with all that is derived from them, in bytes. */
const KEPT_DOCUMENTS_BYTES = 32 * 1024 * 1024;

/** The executor with its plugins, and HTTP and SSE on top of it. */
export function createGraph(config: GraphConfig, parts: GraphParts): Graph {
  const { path, logger, metrics, drain, shared, rounds, createContext } = parts;
  return createYoga<GraphContext>({
    schema: buildSchema(),
    graphqlEndpoint: path,
    plugins: [
      usePreparedOperations(KEPT_DOCUMENTS_BYTES),
      useDeclaredVariables(),
      useGraphQLJs({ hideSuggestions: !config.introspection }),
      useOperationContext(
        ({ incoming }: GraphContext, isStream) =>
          createContext(incoming, isStream ? 'streams' : 'operations'),
        forgetRights,
      ),
      usePrefetch(),
      shared.plugin,
      useAdmission({
        perCaller: config.upstreamCallsPerCaller,
        queue: config.operationsQueue,
        onWaiting: metrics.operationsWaiting,
        onRefused: metrics.operationRefused,
      }),
      shared.joining,
      useCsrfPrevention(),
      useTrustedDocuments(config.trustedDocuments),
      useStreamLimit(),
      useCredentialExpiry(),
      useErrorMasking({
        translate: toPublicError,
        translateInvalid: toDocumentError,
        placesOf,
        onMasked: (error, requestId) =>
          logger.error({ err: error, requestId }, 'An operation failed unexpectedly'),
      }),
      useLimits(config.limits),
      drain.plugin,
      useServerSentEvents(metrics.fanOut, rounds),
      useOperationMetrics(metrics.operation),
      ...(config.upstreamReport ? [useUpstreamReport()] : []),
      ...(config.introspection ? [] : [useDisableIntrospection()]),
      ...(config.tracing === undefined ? [] : [config.tracing.plugin(preparedOperation)]),
      usePushedStreams(),
    ],
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
        ? { origin: [origin], credentials: false, methods: ['GET', 'POST'], maxAge: 600 }
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
}

/** Errors from before an operation runs: those of GraphQL and HTTP are for the caller, others are not. */
export function maskThrown(error: unknown, logger: Logger): GraphQLError {
  if (error instanceof GraphQLError && error.extensions['code'] === 'REQUEST_ENTITY_TOO_LARGE') {
    return new GraphQLError(`The request is longer than the ${MAX_BODY_BYTES} bytes that are allowed.`, {
      extensions: { ...error.extensions, code: 'TOO_COMPLEX' },
    });
  }
  const known = error instanceof GraphQLError ? toPublicError(error) : undefined;
  if (known !== undefined) return known;
  logger.error({ err: error }, 'A request failed unexpectedly');
  return new GraphQLError('Unexpected error', { extensions: { code: 'INTERNAL' } });
}
