import type { Caller } from './auth/caller.ts';
import type { EventLog } from './events/log.ts';
import type { Session } from './upstream/session.ts';

/** What a log call needs; pino's loggers fit. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What one GraphQL operation carries. A subscription has one context, whose `session` is made anew for every event. */
export interface Context {
  readonly requestId: string;
  readonly logger: Logger;
  /**
   * Who is calling, asked of the upstream at most once per operation. Rejects with an error of code `UNAUTHENTICATED`.
   * Root fields ask through their auth scope, so that below them `caller` and `session` are there.
   */
  identify(): Promise<Caller>;
  /** The identified caller. Throws when no root field has asked for it. */
  readonly caller: Caller;
  /** The caller's view of the REST service, with the loaders of this operation. Throws like `caller`. */
  readonly session: Session;
  /** Drops what the loaders remember: called before each event of a subscription. */
  renewSession(): void;
  /** The caller's own `x-api-key`, for the two bootstrap fields alone. */
  readonly apiKey: string | undefined;
  readonly events: EventLog;
  readonly ingress: IngressAddresses;
}

/** The gateway's own receiver of webhooks, as the graph needs to know it. */
export interface IngressAddresses {
  /** Where the provider reaches it for this client and type; undefined when `PUBLIC_URL` is not set. */
  url(clientId: string, type: string): string | undefined;
  /** The token that a webhook feeding it is registered with. */
  token(clientId: string, type: string): string;
  /** Whether deliveries to this address reach it. */
  feeds(url: string): boolean;
  /** The address with its signature masked; any other address as it is. */
  mask(url: string): string;
}
