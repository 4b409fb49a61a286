import { entropy } from '../common/entropy.ts';
import { Secret } from '../common/secret.ts';
import { BANK_FIELD_NAMES } from '../upstream/banks.ts';
import { serviceOf } from './config.ts';
import type { ServerConfig } from './server-config.ts';
import { openTrustedDocuments } from './trusted-documents-file.ts';
import type { Variables } from './variables.ts';

/** Streams that a caller of service mode may have open if `LIMIT_STREAMS_PER_CALLER` is not set. */
const STREAMS_PER_SUBJECT = 1_000;

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * By how much the clocks of the gateway and of the service may differ, including the time of the way between them, in
 * milliseconds.
 */
const CLOCKS_MS = 5_000;

const reconcilingOf = ({ RECONCILE_EVERY: every }: Variables) =>
  every === undefined ? undefined : { everyMs: every * 1_000, marginMs: CLOCKS_MS };

/** Returns the settings of a gateway in front of a REST service. */
export function configure(variables: Variables, upstreamUrl: string): ServerConfig {
  const origins = variables.CORS_ORIGINS ?? [];
  return {
    host: variables.HOST,
    port: variables.PORT,
    reusePort: variables.REUSE_PORT,
    keepAliveTimeoutMs: variables.KEEP_ALIVE_TIMEOUT_MS,
    socketLifetimeMs: variables.SOCKET_LIFETIME * 1_000,
    shutdown: { delayMs: variables.SHUTDOWN_DELAY_MS, graceMs: variables.SHUTDOWN_GRACE_MS },
    upstreamUrl,
    upstreamTimeoutMs: variables.UPSTREAM_TIMEOUT_MS,
    operationTimeoutMs: variables.OPERATION_TIMEOUT_MS,
    upstreamAnswerBytes: variables.UPSTREAM_ANSWER_BYTES,
    upstreamCallsPerCaller: variables.UPSTREAM_CALLS_PER_CALLER,
    operationsQueue: variables.OPERATIONS_QUEUE,
    listsMaxAgeMs: variables.LISTS_MAX_AGE * 1_000,
    upstreamUtcOffset: variables.UPSTREAM_UTC_OFFSET,
    bankFieldNames: variables.UPSTREAM_BANK_FIELDS ?? BANK_FIELD_NAMES,
    tokenClientClaims: variables.UPSTREAM_TOKEN_CLIENT_CLAIM,
    service: serviceOf(variables),
    redisUrl: variables.REDIS_URL,
    dataDir: variables.DATA_DIR ?? './data',
    eventsRetention: variables.EVENTS_RETENTION,
    eventsRetentionBytes: variables.EVENTS_RETENTION_BYTES,
    arePaymentsOff: variables.PAYMENTS === 'off',
    journalMs: variables.JOURNAL_RETENTION * DAY_MS,
    reconciling: reconcilingOf(variables),
    pollsPerSecond: variables.UPSTREAM_POLLS_PER_SECOND,
    publicUrl: variables.PUBLIC_URL,
    webhookSecrets: variables.WEBHOOK_SECRET ?? [new Secret(entropy.bytes(32).toString('base64url'))],
    webhookTokenHeader: variables.WEBHOOK_TOKEN_HEADER,
    moneyInDecisionUrl: variables.MONEY_IN_DECISION_URL,
    allowsOrigin: (origin) => origins.includes(origin),
    introspection: variables.INTROSPECTION ?? false,
    upstreamReport: variables.UPSTREAM_REPORT ?? false,
    layersOff: new Set(variables.LAYERS_OFF),
    workbench: variables.GRAPHIQL === true ? { sandbox: undefined, auth: variables.AUTH_MODE } : undefined,
    limits: {
      tokens: variables.LIMIT_TOKENS,
      depth: variables.LIMIT_DEPTH,
      aliases: variables.LIMIT_ALIASES,
      directives: variables.LIMIT_DIRECTIVES,
      cost: variables.LIMIT_COST,
    },
    streams: {
      total: variables.LIMIT_STREAMS,
      perAddress: variables.LIMIT_STREAMS_PER_ADDRESS,
      perClient: variables.LIMIT_STREAMS_PER_CLIENT,
      // In passthrough a caller is the client itself.
      perCaller:
        variables.LIMIT_STREAMS_PER_CALLER ??
        (variables.AUTH_MODE === 'service' ? STREAMS_PER_SUBJECT : variables.LIMIT_STREAMS_PER_CLIENT),
    },
    trustedProxies: variables.TRUSTED_PROXIES,
    trustedDocuments:
      variables.TRUSTED_DOCUMENTS === undefined
        ? undefined
        : openTrustedDocuments(variables.TRUSTED_DOCUMENTS),
  };
}

/** True if an origin is this machine's own. */
export const isLocalhost = (origin: string): boolean =>
  URL.canParse(origin) && ['localhost', '127.0.0.1', '[::1]'].includes(new URL(origin).hostname);
