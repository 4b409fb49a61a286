import type { ServerConfig } from '../../src/app/server-config.ts';
import { Secret } from '../../src/common/secret.ts';
import { BANK_FIELD_NAMES } from '../../src/upstream/banks.ts';

const WEBHOOK_SECRET = 'a secret for tests that is long enough';

/**
 * For tests of what a gateway answers, not of when: it is in one process with its sandbox, and gives up no call while both stand still. Not for
 * those in which something lasts as long as an operation may.
 */
export const PATIENT = {
  upstreamTimeoutMs: 60_000,
  operationTimeoutMs: 60_000,
} satisfies Partial<ServerConfig>;

/** A gateway on a free port of loopback, with neither Redis nor anything that has to be allowed. */
export const gatewayConfig = (upstreamUrl: string, dataDir: string): ServerConfig => ({
  host: '127.0.0.1',
  port: 0,
  reusePort: false,
  keepAliveTimeoutMs: 75_000,
  socketLifetimeMs: 0,
  shutdown: { delayMs: 0, graceMs: 40_000 },
  upstreamUrl,
  upstreamTimeoutMs: 9_000,
  operationTimeoutMs: 10_000,
  upstreamAnswerBytes: 64 * 1024 * 1024,
  upstreamCallsPerCaller: 16,
  operationsQueue: 500,
  listsMaxAgeMs: 5_000,
  upstreamUtcOffset: '-06:00',
  bankFieldNames: BANK_FIELD_NAMES,
  tokenClientClaims: ['client_id', 'clientId', 'cid', 'sub'],
  service: undefined,
  redisUrl: undefined,
  dataDir,
  eventsRetention: 10_000,
  pollsPerSecond: 20,
  publicUrl: 'self',
  webhookSecrets: [new Secret(WEBHOOK_SECRET)],
  webhookTokenHeader: undefined,
  moneyInDecisionUrl: undefined,
  allowsOrigin: () => false,
  introspection: true,
  upstreamReport: false,
  layersOff: new Set(),
  workbench: undefined,
  limits: { tokens: 2_000, depth: 15, aliases: 30, directives: 50, cost: 10_000 },
  streams: { total: 10_000, perAddress: 1_000, perCaller: 10_000, perClient: 10_000 },
  trustedProxies: ['127.0.0.0/8', '::1'],
  trustedDocuments: undefined,
});
