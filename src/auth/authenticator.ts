import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Authorize, Rest } from '../upstream/rest.ts';
import type { Asker } from '../upstream/shared-work.ts';
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
   * @param asker who waits for it. What is asked of the service goes on while one of those who ask about the token waits.
   * @throws UnauthenticatedError when it stands for nobody.
   * @throws UpstreamError when the service that must be asked cannot be reached.
   */
  identify(token: string, restFor: RestFor, fresh: boolean, asker: Asker): MaybePromise<Caller>;
  /** The credential of the REST calls made for the bearer of this token. */
  authorize(token: string): Authorize;
  /**
   * Who the REST service takes the bearer of a credential for: those with the same may share what it answers.
   *
   * @param credential all that tells who is calling.
   */
  upstreamIdentity(credential: string): string;
  /** Whether all callers are one to the REST service. */
  readonly sharesIdentity: boolean;
  /** Whether callers reach the upstream's bootstrap, credentials and token issue, with an API key of their own. */
  readonly servesBootstrap: boolean;
  stop(): Promise<void>;
}
