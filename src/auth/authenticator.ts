import type { MaybePromise } from '../common/maybe-promise.ts';
import type { Requester } from '../common/party.ts';
import type { Authorize } from '../upstream/call/credential.ts';
import type { Rest } from '../upstream/call/rest.ts';
import type { Asker } from '../upstream/call/shared-work.ts';
import type { Caller } from './caller.ts';

/** The credential stands for nobody that the upstream, or the operator's identity provider, knows. */
export class UnauthenticatedError extends Error {
  override readonly name = 'UnauthenticatedError';
  readonly code = 'UNAUTHENTICATED';
}

/**
 * Returns REST calls for a candidate client, under a credential.
 *
 * @param address the address whose share of the calls under way they take; undefined for the share of the operation's caller.
 */
export type RestFor = (clientId: string, authorize: Authorize, address?: string) => Rest;

/** One of the two ways in which callers are identified (docs/authentication.md, "Who is calling"). */
export interface Authenticator {
  /**
   * Finds out which caller a bearer token stands for. For a known token it returns no promise, so the operation goes on at
   * once.
   *
   * @param fresh true to ask again, whatever was found a moment ago.
   * @param asker who waits for it. A question to the service goes on while one of those who ask about the token waits.
   * @param stranger the address that the token came from if it has not been verified yet; undefined for a token that was
   * verified before.
   * @throws UnauthenticatedError if it stands for nobody.
   * @throws UpstreamError if the service that must be asked cannot be reached.
   */
  identify(
    token: string,
    restFor: RestFor,
    fresh: boolean,
    asker: Asker,
    stranger: string | undefined,
  ): MaybePromise<Caller>;
  /**
   * Returns for whom an operation runs whose token has not been verified yet.
   *
   * @param address the key of the address that it came from.
   */
  strangerOf(token: string, address: string): Requester;
  /** Returns the credential of the REST calls that are made for the bearer of this token, which stands for this client. */
  authorize(token: string, clientId: string): Authorize;
  /**
   * Returns the identity under which the REST service sees the bearer of a credential. Callers with the same identity may
   * share its answers.
   *
   * @param credential the same for one token, however its `Authorization` was written.
   * @param clientId the client that it stands for.
   */
  upstreamIdentity(credential: string, clientId: string): string;
  /** True if the REST service sees all callers of a client as one. */
  readonly sharesIdentity: boolean;
  /** True if it identifies callers without the REST service. */
  readonly verifiesItself: boolean;
  /**
   * How often a credential that names its end is to be asked about again while a stream is open, in milliseconds, because it may be withdrawn
   * before; undefined where it holds until its end.
   */
  readonly verifiedAgainMs: number | undefined;
  /** True if callers may use the upstream's credentials and token issue, with an API key of their own. */
  readonly servesBootstrap: boolean;
  stop(): Promise<void>;
}
