import { type Authenticator, UnauthenticatedError } from './auth/authenticator.ts';
import type { Caller } from './auth/caller.ts';
import { assertHolds, systemClock, untilLapse } from './auth/lapse.ts';
import type { EventLog, EventType } from './events/log.ts';
import type { Money } from './money/execute.ts';
import type { UpstreamHttp } from './upstream/http.ts';
import { type Authorize, type CallRecord, createRest, fixedCredential, type Rest } from './upstream/rest.ts';
import { type BankCache, createSession, type ForeseenList, type Session } from './upstream/session.ts';
import type { SourceOwners } from './upstream/source-owners.ts';

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
  /** Names lists that the operation is going to need, before anything is read: they are read beside its first call. */
  foresee(lists: readonly ForeseenList[]): void;
  /**
   * Drops what the loaders remember, and gives the calls to come a deadline of their own: before each event.
   *
   * @throws UnauthenticatedError when the caller's credential has ended meanwhile: nothing is delivered any more.
   */
  renewSession(): void;
  /** Whether the socket that carries the operation is closed when the credential ends. */
  readonly endsWithSocket: boolean;
  /**
   * Resolves with the reason when the caller's credential holds no longer; undefined once the signal is aborted. Rejects
   * when the caller cannot be identified to begin with.
   */
  untilLapse(signal: AbortSignal): Promise<Error | undefined>;
  /** Drops what the loaders remember in the midst of an operation: after a call that has changed something. */
  forgetReads(): void;
  /** Offset of upstream timestamps that carry none, also where nobody is identified. */
  readonly utcOffset: string;
  /** The caller's own `x-api-key`, for the two bootstrap fields alone. */
  readonly apiKey: string | undefined;
  /** Whether those two are served at all: not where the gateway holds the credentials. */
  readonly servesBootstrap: boolean;
  /** REST calls under the caller's own `x-api-key`, for a client that it names (spec, "Authentication"). */
  bootstrapRest(apiKey: string, clientId: string): Rest;
  readonly events: EventLog;
  /** The cursor that a stream continues from when its `after` is older: what the client itself saw last. */
  readonly lastEventId: string | undefined;
  readonly money: Money;
  /** When the operation must be over, in milliseconds since the epoch. */
  readonly deadline: number;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  readonly ingress: IngressAddresses;
  /** The REST calls made so far, in the order in which they were answered. */
  readonly calls: readonly CallRecord[];
}

/** The gateway's own receiver of webhooks, as the graph needs to know it. */
export interface IngressAddresses {
  /** Where the provider reaches it for this client and type; undefined when `PUBLIC_URL` is not set. */
  url(clientId: string, type: EventType): string | undefined;
  /** The token that a webhook feeding it is registered with. */
  token(clientId: string, type: EventType): string;
  /** Whether deliveries to this address reach it. */
  feeds(url: string): boolean;
  /** The address with its signature masked; any other address as it is. */
  mask(url: string): string;
}

/** What a request brings, whichever transport it came over. */
export interface Incoming {
  /** The header `Last-Event-ID` of a stream that is taken up again (WHATWG HTML, 9.2); a cursor. */
  readonly lastEventId: string | undefined;
  readonly requestId: string;
  /** The value of `Authorization`, from the header or from `connectionParams`. */
  readonly authorization: string | undefined;
  readonly apiKey: string | undefined;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal | undefined;
  /** Closes the socket that carries the operation, as its credential has ended; undefined over HTTP. */
  readonly closeSocket: (() => void) | undefined;
}

export interface ContextOptions {
  readonly http: UpstreamHttp;
  readonly auth: Authenticator;
  readonly banks: BankCache;
  readonly sourceOwners: SourceOwners;
  readonly events: EventLog;
  readonly money: Money;
  readonly ingress: IngressAddresses;
  readonly logger: Logger;
  readonly upstreamTimeoutMs: number;
  readonly operationTimeoutMs: number;
  readonly utcOffset: string;
  readonly onCall: (call: CallRecord) => void;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i;

/** Makes the contexts of a server's operations. */
export function createContextFactory(options: ContextOptions): (incoming: Incoming) => Context {
  return (incoming) => {
    const { requestId, authorization, apiKey, signal, closeSocket } = incoming;
    const calls: CallRecord[] = [];
    let deadline = Date.now() + options.operationTimeoutMs;
    let identifying: Promise<Caller> | undefined;
    let caller: Caller | undefined;
    let session: Session | undefined;
    let foreseen: readonly ForeseenList[] = [];

    const token = BEARER.exec(authorization ?? '')?.[1];

    const rest = (clientId: string, authorize: Authorize, abort?: AbortSignal): Rest =>
      createRest({
        http: options.http,
        clientId,
        authorize,
        headers: { 'x-request-id': requestId, accept: 'application/json' },
        timeoutMs: options.upstreamTimeoutMs,
        deadline,
        ...(abort ? { signal: abort } : {}),
        onCall: (call) => {
          calls.push(call);
          options.onCall(call);
        },
      });

    const ask = async (fresh: boolean): Promise<Caller> => {
      if (token === undefined) {
        throw new UnauthenticatedError(
          authorization === undefined
            ? 'An access token is needed: Authorization: Bearer <token>; over WebSocket, connectionParams.authorization.'
            : 'Authorization must have the form: Bearer <token>.',
        );
      }
      // The answer serves whoever else presents this token meanwhile, so one caller's leaving must not end it.
      return options.auth.identify(token, rest, fresh);
    };

    return {
      requestId,
      logger: options.logger,
      apiKey,
      servesBootstrap: options.auth.servesBootstrap,
      events: options.events,
      lastEventId: incoming.lastEventId,
      money: options.money,
      get deadline() {
        return deadline;
      },
      signal: signal ?? new AbortController().signal,
      ingress: options.ingress,
      calls,
      async identify() {
        identifying ??= ask(false);
        caller = await identifying;
        return caller;
      },
      endsWithSocket: closeSocket !== undefined,
      async untilLapse(until) {
        const again = () => {
          deadline = Date.now() + options.operationTimeoutMs;
          return ask(true);
        };
        return untilLapse(await this.identify(), again, systemClock, until);
      },
      get caller() {
        if (caller === undefined) throw new Error('The caller is used before it is identified.');
        return caller;
      },
      get session() {
        const { clientId, customerId } = this.caller;
        if (session === undefined) {
          session = createSession(
            rest(clientId, options.auth.authorize(token ?? ''), signal),
            customerId,
            options,
          );
          session.foresee(foreseen);
        }
        return session;
      },
      foresee(lists) {
        foreseen = lists;
      },
      renewSession() {
        try {
          assertHolds(this.caller, Date.now());
        } catch (error) {
          closeSocket?.();
          throw error;
        }
        session = undefined;
        deadline = Date.now() + options.operationTimeoutMs;
        calls.length = 0;
      },
      forgetReads() {
        session = undefined;
      },
      utcOffset: options.utcOffset,
      bootstrapRest: (key, clientId) => rest(clientId, fixedCredential({ 'x-api-key': key }), signal),
    };
  };
}
