import type { UnauthenticatedError } from '../auth/authenticator.ts';
import type { Caller } from '../auth/caller.ts';
import type { Waiters } from '../common/waiters.ts';
import type { KeptBytes, StreamHolder, StreamRefusal } from './streams.ts';

/** What a request brings, whichever transport it came over. */
export interface Incoming {
  /**
   * Who is calling, where that is known: a stream for several credentials whose callers may see the same. It has none of
   * these credentials, so that it has no REST calls in a caller's name (`Identity.authorize`).
   */
  readonly caller?: Caller | undefined;
  /** The header `Last-Event-ID` of a stream that is taken up again (WHATWG HTML, 9.2); a cursor. */
  readonly lastEventId: string | undefined;
  /** Whether a stream is to begin with what comes, whatever its `after` says: it is shared by those who ask for that. */
  readonly startsNow?: boolean | undefined;
  readonly requestId: string;
  /** The value of `Authorization`, from the header or from `connectionParams`. */
  readonly authorization: string | undefined;
  /** Why the token was refused as it was verified before the turn of the request; undefined where it was not. */
  readonly refusal?: UnauthenticatedError | undefined;
  readonly apiKey: string | undefined;
  /** Who waits for the result; undefined where it is not told when they are gone. */
  readonly waiters: Waiters | undefined;
  /** The network address that it came from; undefined where it is not known. */
  readonly addressOf?: (() => string | undefined) | undefined;
  /** Counts a stream of a caller, or says why it may not begin. Undefined where the socket is counted. */
  readonly openStream?: ((holder: StreamHolder, kept: KeptBytes) => StreamRefusal | undefined) | undefined;
  /**
   * Tells all that hold the credential that it has ended: WebSockets are closed, and streams over SSE end. Undefined over HTTP, where
   * `graphql/plugins/credential-end.ts` ends each stream by itself, with an error.
   */
  readonly closeSockets: (() => void) | undefined;
}
