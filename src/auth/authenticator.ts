import type { MaybePromise } from '../upstream/list-loader.ts';
import type { Authorize, Rest } from '../upstream/rest.ts';
import type { Caller } from './caller.ts';

/** Nobody that the upstream, or the operator's identity provider, knows. */
export class UnauthenticatedError extends Error {
  override readonly name = 'UnauthenticatedError';
  readonly code = 'UNAUTHENTICATED';
}

/** REST calls for a candidate client, under a credential. */
export type RestFor = (clientId: string, authorize: Authorize) => Rest;

/** One of the two ways to be known (docs/authentication.md, "Who is calling"). */
export interface Authenticator {
  /**
   * Finds out which caller a bearer token stands for. For a known token it returns no promise, so the operation goes on at once.
   *
   * @param fresh true to ask again, whatever was found a moment ago.
   * @throws UnauthenticatedError when it stands for nobody.
   * @throws UpstreamError when the service that must be asked cannot be reached.
   */
  identify(token: string, restFor: RestFor, fresh: boolean): MaybePromise<Caller>;
  /** The credential of the REST calls made for the bearer of this token. */
  authorize(token: string): Authorize;
  /** Whether callers reach the upstream's bootstrap, credentials and token issue, with an API key of their own. */
  readonly servesBootstrap: boolean;
  stop(): Promise<void>;
}
