import type { Answered, Attempt } from './http.ts';

/** Headers that say who is calling: `authorization`, or `x-api-key` for the bootstrap alone. */
export type AuthHeaders = Readonly<Record<string, string>>;

/**
 * Where a call gets its credential from.
 *
 * @param refused one that the service has just answered with 401.
 * @returns the credential to use; in place of a refused one undefined, where there is no other.
 * @throws UpstreamError when there should be one and cannot be had. Nothing has been sent then.
 */
export type Authorize = (refused?: AuthHeaders) => Promise<AuthHeaders | undefined>;

/** For a credential that the gateway cannot renew: its caller gets the 401. */
export const fixedCredential =
  (credential: AuthHeaders): Authorize =>
  async (refused) =>
    refused === undefined ? credential : undefined;

/** Whether a request that was answered with this 401 may leave once more with another credential. */
export type MayRenew = (refused: Answered) => boolean;

/** How often one call may be repeated with a fresher credential: another process may have renewed it meanwhile. */
const MAX_RENEWALS = 2;

const isRefusedCredential = (attempt: Attempt): attempt is Answered =>
  attempt.kind === 'answered' && attempt.status === 401;

/**
 * One call under the credential of the moment, repeated with a fresher one where the service refuses it.
 *
 * @param once sends the request with these headers.
 * @throws what `authorize` throws.
 */
export async function underCredential(
  authorize: Authorize,
  once: (credential: AuthHeaders | undefined) => Promise<Attempt>,
  mayRenew?: MayRenew,
): Promise<Attempt> {
  let credential = await authorize();
  for (let renewals = 0; ; renewals += 1) {
    const attempt = await once(credential);
    if (!isRefusedCredential(attempt) || renewals === MAX_RENEWALS) return attempt;
    if (mayRenew?.(attempt) === false) return attempt;
    credential = await authorize(credential);
    if (credential === undefined) return attempt;
  }
}
