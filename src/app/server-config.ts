import type { ServiceOptions } from '../auth/service.ts';
import type { Secret } from '../common/secret.ts';
import type { GraphConfig } from '../graphql/plugin-stack.ts';
import type { ReconcilingOptions } from '../money/reconciling/reconciler.ts';
import type { StreamLimits } from '../transport/sockets/open-streams.ts';
import type { BankFieldNames } from '../upstream/banks.ts';
import type { WorkbenchOptions } from '../workbench/workbench.ts';
import type { ShutdownTimes } from './shutdown.ts';

/** What one gateway process is made from. Times are milliseconds. */
export interface ServerConfig extends GraphConfig {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the same port (SO_REUSEPORT); the kernel spreads connections over them. */
  readonly reusePort: boolean;
  /** How long a connection is kept for its client's next request. */
  readonly keepAliveTimeoutMs: number;
  /** After which a WebSocket is closed, so that its client connects anew; 0 for never. */
  readonly socketLifetimeMs: number;
  readonly shutdown: ShutdownTimes;
  /** Origin of the REST service. */
  readonly upstreamUrl: string;
  readonly upstreamTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** How long what is known of a list is believed: that it holds all items, or none of an id. */
  readonly listsMaxAgeMs: number;
  /** The longest answer of the REST service that is read, in bytes. */
  readonly upstreamAnswerBytes: number;
  readonly upstreamUtcOffset: string;
  /** Under which names the service's catalog of banks says what it says. */
  readonly bankFieldNames: BankFieldNames;
  readonly tokenClientClaims: readonly string[];
  /** The gateway's own credentials and how callers' tokens are verified; undefined for passthrough. */
  readonly service: Omit<ServiceOptions, 'utcOffset'> | undefined;
  readonly redisUrl: Secret | undefined;
  readonly dataDir: string;
  readonly eventsRetention: number;
  readonly eventsRetentionBytes?: number | undefined;
  /** Whether this process sends no payment. */
  readonly arePaymentsOff?: boolean;
  /** How long lines of the journal of payments are kept. */
  readonly journalMs?: number | undefined;
  /** How balances are compared with what has moved; undefined where they are not. In service mode alone. */
  readonly reconciling?: ReconcilingOptions | undefined;
  /** How often in a second receipts are read again, at most, where no webhook has come. */
  readonly pollsPerSecond: number;
  /** How the provider reaches this gateway; `'self'` for the address it listens on. */
  readonly publicUrl: string | 'self' | undefined;
  /** The first signs; all are accepted. */
  readonly webhookSecrets: readonly [Secret, ...Secret[]];
  readonly webhookTokenHeader: string | undefined;
  readonly moneyInDecisionUrl: string | undefined;
  /** How many WebSockets and SSE streams may be open. */
  readonly streams: StreamLimits;
  /** Proxies in front, as addresses and networks: what they say of a client's address is believed. */
  readonly trustedProxies: readonly string[];
  /** What the page for people has to know; undefined for no page. */
  readonly workbench: WorkbenchOptions | undefined;
}
