import type { Logger } from '../common/logger.ts';
import type { Rounds } from '../common/rounds.ts';
import { CallerGoneError } from '../common/waiters.ts';
import { createLimitLog } from '../observability/limit-log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Tracing } from '../observability/tracing.ts';
import type { ContextFactory } from '../operation/context.ts';
import type { Incoming } from '../operation/incoming.ts';
import type { Transport, Way } from '../operation/way.ts';
import type { DocumentCache } from './documents/document-cache.ts';
import { preparedOperation } from './documents/prepared-operation.ts';
import { withOneExecutionHook } from './execution-hook.ts';
import { useGraphQLJs } from './executor/graphql-js.ts';
import { countGap } from './gaps.ts';
import { inPluginOrder, type SwitchedLayer } from './layers.ts';
import { useAdmission } from './plugins/admission.ts';
import { useCredentialEnd } from './plugins/credential-end.ts';
import { useCsrfPrevention } from './plugins/csrf-prevention.ts';
import { useDeclaredVariables } from './plugins/declared-variables.ts';
import { useDisableIntrospection } from './plugins/disable-introspection.ts';
import type { Drain } from './plugins/drain.ts';
import { useErrorMasking } from './plugins/error-masking.ts';
import { useKeptDocuments } from './plugins/kept-documents.ts';
import { type Limits, useLimits } from './plugins/limits.ts';
import { useMediaTypes } from './plugins/media-types.ts';
import { useOperationContext } from './plugins/operation-context.ts';
import { type Done, useOperationMetrics } from './plugins/operation-metrics.ts';
import { usePrefetch } from './plugins/prefetch.ts';
import { usePushedStreams } from './plugins/pushed-streams.ts';
import type { QueryDeduplication } from './plugins/query-deduplication.ts';
import { useServerSentEvents } from './plugins/sse.ts';
import type { CuttableConnection } from './plugins/sse-body.ts';
import { useStreamLimit } from './plugins/stream-limit.ts';
import { type TrustedDocuments, useTrustedDocuments } from './plugins/trusted-documents.ts';
import { useUpstreamReport } from './plugins/upstream-report.ts';
import { locationsOf, noteRefusedFields, toDocumentError, toPublicError } from './public-errors.ts';
import { createRefusedRequestLog } from './refused-requests.ts';

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
  /** How many operations of one caller may wait for a seat. */
  readonly operationsQueue: number;
  /** The only documents that run; undefined lets any run. */
  readonly trustedDocuments: TrustedDocuments | undefined;
  /** The layers that are switched off, to find a fault. */
  readonly layersOff: ReadonlySet<SwitchedLayer>;
  /** Where operations, REST calls and webhooks are traced; undefined for nowhere. Its creator stops it. */
  readonly tracing?: Tracing | undefined;
}

/** What an operation's context is made from. */
export interface GraphContext extends CuttableConnection {
  readonly incoming: Incoming;
  /** Whether its caller has been identified before. */
  readonly isIdentified?: boolean;
  /** Which transport brings it, and whether its document was kept. */
  readonly transport?: Transport;
  readonly isKept?: boolean;
}

export interface GraphParts {
  readonly path: string;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly drain: Drain;
  readonly shared: QueryDeduplication;
  /** Documents that identified callers have run. */
  readonly documents: DocumentCache;
  /** When each reader of a stream is told where it stands. */
  readonly rounds: Rounds;
  readonly createContext: ContextFactory;
}

/** All that stands between a transport and the executor, in the order of {@link inPluginOrder}. */
export function pluginsOf(config: GraphConfig, parts: GraphParts): ReturnType<typeof withOneExecutionHook> {
  const { logger, metrics, drain, shared, rounds, documents } = parts;
  const { layersOff, introspection } = config;
  const tellLimit = createLimitLog(logger);
  const unless = <T>(layer: SwitchedLayer, plugin: T): T | undefined =>
    layersOff.has(layer) ? undefined : plugin;
  const plugins = inPluginOrder({
    'kept-documents': unless('kept-documents', useKeptDocuments(documents)),
    'declared-variables': useDeclaredVariables(),
    plans: useGraphQLJs({ hideSuggestions: !introspection, plansQueries: !layersOff.has('plans') }),
    'operation-context': useOperationContext(contextMaker(parts)),
    prefetch: unless('prefetch', usePrefetch()),
    admission: unless(
      'admission',
      useAdmission({
        perCaller: config.upstreamCallsPerCaller,
        queue: config.operationsQueue,
        onWaiting: metrics.operationsWaiting,
        onWaited: metrics.operationWaited,
        onRefused(group, full) {
          metrics.operationRefused(full);
          tellLimit('operations', group, full);
        },
      }),
    ),
    sharing: unless('sharing', shared.plugin),
    'media-types': useMediaTypes(),
    'csrf-prevention': useCsrfPrevention(),
    'trusted-documents': useTrustedDocuments(config.trustedDocuments),
    'stream-limit': useStreamLimit(),
    'credential-end': useCredentialEnd(),
    'error-masking': useErrorMasking({
      translate: toPublicError,
      translateInvalid: toDocumentError,
      locationsOf,
      onErrors: noteRefusedFields,
      onMasked(error, requestId) {
        if (error instanceof CallerGoneError) return;
        logger.error({ err: error, requestId }, 'An operation failed unexpectedly');
      },
      onFailed: (result) => countGap(metrics.fanOut, result, 1),
      tellRefused: createRefusedRequestLog(logger),
    }),
    limits: useLimits(config.limits),
    drain: drain.plugin,
    'server-sent-events': useServerSentEvents(metrics.fanOut, rounds),
    'operation-metrics': useOperationMetrics(metrics.operation, (way, done) => tellWay(way, done, parts)),
    'upstream-report': config.upstreamReport ? useUpstreamReport() : undefined,
    introspection: introspection ? undefined : useDisableIntrospection(),
    tracing: config.tracing?.plugin(preparedOperation),
    'pushed-streams': usePushedStreams(),
  });
  return withOneExecutionHook(plugins);
}

const contextMaker =
  ({ createContext }: GraphParts) =>
  ({ incoming, transport, isKept }: GraphContext, isStream: boolean) => {
    const context = createContext(incoming, isStream ? 'streams' : 'operations');
    context.report.cameBy(transport ?? 'yoga', isKept === true ? 'kept' : 'read');
    return context;
  };

function tellWay(way: Way, done: Done, { metrics, logger }: GraphParts): void {
  metrics.way(way);
  logger.debug({ ...done, ...way }, 'An operation has its result');
}
