/** A connection that could not be made, or broke. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  /** The WebSocket's close code, or the HTTP status, where there is one. */
  readonly code: number | undefined;

  constructor(message: string, code?: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** What an app may want to log of its connections. */
export type ConnectionEvent =
  | { readonly state: 'open' }
  /** `code` is the WebSocket's close code, or the HTTP status. */
  | { readonly state: 'lost'; readonly code: number | undefined; readonly cause: unknown };

/** Asked before each connection or request. */
export type Token = (asked: {
  /** Whether the gateway has refused the token that was given last: it is of no use to give it again. */
  readonly refused: boolean;
  /** Aborts where the token takes too long. */
  readonly signal: AbortSignal;
}) => string | Promise<string>;
