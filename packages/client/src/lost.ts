/** A connection that could not be made, or broke. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
  /** The WebSocket's close code, or the HTTP status, if there is one. */
  readonly code: number | undefined;
  /** `retryAfterMs`, if the answer that came instead of the gateway's asks to wait. */
  declare readonly extensions?: Readonly<Record<string, unknown>>;

  constructor(message: string, code?: number, cause?: unknown) {
    super(message, (cause && { cause }) as ErrorOptions);
    this.code = code;
  }
}

/** An event of a connection that an app may want to log. */
export type ConnectionEvent =
  | { readonly state: 'open' }
  /** `code` is the WebSocket's close code, or the HTTP status. */
  | { readonly state: 'lost'; readonly code: number | undefined; readonly cause: unknown };

/** Returns the access token. Called before each connection or request. */
export type Token = (asked: {
  /** True if the gateway has refused the last token, so that giving it again is of no use. */
  readonly refused: boolean;
  /** Aborts if the token takes too long. */
  readonly signal: AbortSignal;
}) => string | Promise<string>;
