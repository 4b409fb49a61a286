import type { ServiceOptions } from '../auth/service.ts';
import type { Secret } from '../common/secret.ts';
import type { GraphConfig } from '../graphql/plugin-stack.ts';
import type { ReconcilingOptions } from '../money/reconciling/reconciler.ts';
import type { StreamLimits } from '../transport/sockets/open-streams.ts';
import type { BankFieldNames } from '../upstream/banks.ts';
import type { WorkbenchOptions } from '../workbench/workbench.ts';
import type { ShutdownTimes } from './shutdown.ts';

/** The settings of one gateway process. Times are milliseconds. */
export interface ServerConfig extends GraphConfig {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** True if other processes may listen on the same port (SO_REUSEPORT). The kernel spreads connections over them. */
  readonly reusePort: boolean;
  /** How long a connection is kept for its client's next request. */
  readonly keepAliveTimeoutMs: number;
  /** The lifetime of a WebSocket, after which it is closed and its client connects again; 0 for no end. */
  readonly socketLifetimeMs: number;
  readonly shutdown: ShutdownTimes;
  /** Origin of the REST service. */
  readonly upstreamUrl: string;
  readonly upstreamTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** How long the gateway believes that it knows all items of a list. */
  readonly listsMaxAgeMs: number;
  /** The longest answer of the REST service that is read, in bytes. */
  readonly upstreamAnswerBytes: number;
  readonly upstreamUtcOffset: string;
  /** The names that the service's catalog of banks uses for its fields. */
  readonly bankFieldNames: BankFieldNames;
  readonly tokenClientClaims: readonly string[];
  /** The gateway's own credentials and how callers' tokens are verified; undefined for passthrough. */
  readonly service: Omit<ServiceOptions, 'utcOffset'> | undefined;
  readonly redisUrl: Secret | undefined;
  readonly dataDir: string;
  readonly eventsRetention: number;
  readonly eventsRetentionBytes?: number | undefined;
  /** True if this process sends no payment. */
  readonly arePaymentsOff?: boolean;
  /** How long lines of the journal of payments are kept. */
  readonly journalMs?: number | undefined;
  /** How balances are compared with what has moved, in service mode alone; undefined if they are not. */
  readonly reconciling?: ReconcilingOptions | undefined;
  /** How many readings a second of receipts and transactions whose webhook has not come, at most. */
  readonly pollsPerSecond: number;
  /** The address at which the provider reaches this gateway; `'self'` for the address on which it listens. */
  readonly publicUrl: string | 'self' | undefined;
  /** The first one signs; all are accepted. */
  readonly webhookSecrets: readonly [Secret, ...Secret[]];
  readonly webhookTokenHeader: string | undefined;
  readonly moneyInDecisionUrl: string | undefined;
  /** How many WebSockets and SSE streams may be open. */
  readonly streams: StreamLimits;
  /** Addresses and networks of proxies in front. What these say of a client's address is believed. */
  readonly trustedProxies: readonly string[];
  /** Settings of the page at `/graphql` (GraphiQL); undefined for no page. */
  readonly workbench: WorkbenchOptions | undefined;
}
