import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { Rest } from '../upstream/call/rest.ts';
import type { Asker } from '../upstream/call/shared-work.ts';
import type { Caller } from './caller.ts';

/** Nobody that the upstream, or the operator's identity provider, knows. */
export class UnauthenticatedError extends Error {
  override readonly name = 'UnauthenticatedError';
  readonly code = 'UNAUTHENTICATED';
}

/**
 * REST calls for a candidate client, under a credential.
 *
 * @param address the key of the address whose share of the calls under way they take; undefined for that of the operation's caller.
 */
export type RestFor = (clientId: string, authorize: Authorize, address?: string) => Rest;

/** One of the two ways to be known (docs/authentication.md, "Who is calling"). */
export interface Authenticator {
  /**
   * Finds out which caller a bearer token stands for. For a known token it returns no promise, so the operation goes on at once.
   *
   * @param fresh true to ask again, whatever was found a moment ago.
   * @param asker who waits for it. What is asked of the service goes on while one of those who ask about the token waits.
   * @param stranger where a token came from that nobody has verified yet; undefined for one that somebody has.
   * @throws UnauthenticatedError when it stands for nobody.
   * @throws UpstreamError when the service that must be asked cannot be reached.
   */
  identify(
    token: string,
    restFor: RestFor,
    fresh: boolean,
    asker: Asker,
    stranger: string | undefined,
  ): MaybePromise<Caller>;
  /** The credential of the REST calls made for the bearer of this token, which stands for this client. */
  authorize(token: string, clientId: string): Authorize;
  /**
   * Who the REST service takes the bearer of a credential for: those with the same may share what it answers.
   *
   * @param credential all that tells who is calling.
   * @param clientId the client that it stands for.
   */
  upstreamIdentity(credential: string, clientId: string): string;
  /** Whether all callers of a client are one to the REST service. */
  readonly sharesIdentity: boolean;
  /** Whether it knows callers without the REST service. */
  readonly verifiesItself: boolean;
  /** Whether callers reach the upstream's bootstrap, credentials and token issue, with an API key of their own. */
  readonly servesBootstrap: boolean;
  stop(): Promise<void>;
}
