import { clock } from '../../common/clock.ts';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { Party } from '../../common/party.ts';
import { left, UpstreamError } from './errors.ts';
import type { Answered, Attempt } from './http.ts';

/** Headers that say who is calling: `authorization`, or `x-api-key` for the bootstrap alone. */
export type AuthHeaders = Readonly<Record<string, string>>;

/**
 * Where a call gets its credential from.
 *
 * @param refused a credential that the service has just answered with 401.
 * @returns the credential to use, without a promise where it is at hand; undefined if a refused one cannot be replaced.
 * @throws UpstreamError when there should be one and cannot be had. Nothing has been sent then.
 */
export type Authorize = (refused?: AuthHeaders) => MaybePromise<AuthHeaders | undefined>;

/** For a credential that the gateway cannot renew: its caller gets the 401. */
export const fixedCredential =
  (credential: AuthHeaders): Authorize =>
  (refused) =>
    refused === undefined ? credential : undefined;

/** Whether a request that was answered with this 401 may leave once more with another credential. */
export type MayRenew = (refused: Answered) => boolean;

/** How often one call may be repeated with a fresher credential: another process may have renewed it meanwhile. */
const MAX_RENEWALS = 2;

const isRefusedCredential = (attempt: Attempt): attempt is Answered =>
  attempt.kind === 'answered' && attempt.status === 401;

/**
 * Waits for a credential while somebody waits for the call. A renewal goes on for the others when all who wait for this call have left.
 *
 * @throws UpstreamError `UPSTREAM_TIMEOUT` once the time of the last of them is over; `UPSTREAM_UNAVAILABLE` once all have left.
 */
async function inTime(
  asked: Promise<AuthHeaders | undefined>,
  party: Party,
): Promise<AuthHeaders | undefined> {
  const settled = asked.then(
    (credential) => ({ credential }),
    (error: unknown) => ({ error }),
  );
  let told: Awaited<typeof settled> | undefined;
  void settled.then((one) => {
    told = one;
  });
  // Another caller may join meanwhile, and have more time.
  while (told === undefined && !party.isGone && party.deadline > clock.now()) {
    await party.pause(party.deadline - clock.now(), settled);
  }
  if (told === undefined && party.isGone) throw left();
  if (told === undefined) {
    throw new UpstreamError(
      'UPSTREAM_TIMEOUT',
      'The time of the operation was over before the gateway had an access token.',
      { dispatched: false },
    );
  }
  if ('error' in told) throw told.error;
  return told.credential;
}

/**
 * One call under the credential of the moment, repeated with a fresher one where the service refuses it.
 *
 * @param once sends the request with these headers.
 * @param party who waits for the call
 * @throws what `authorize` throws, `UPSTREAM_TIMEOUT` where no credential came in time, and `UPSTREAM_UNAVAILABLE` where the
 * service refuses each that the gateway renews: the caller's own token is none of them.
 */
export async function underCredential(
  authorize: Authorize,
  once: (credential: AuthHeaders | undefined) => Promise<Attempt>,
  party: Party,
  mayRenew?: MayRenew,
): Promise<Attempt> {
  const ask = (refused?: AuthHeaders): MaybePromise<AuthHeaders | undefined> => {
    const asked = authorize(refused);
    return asked instanceof Promise ? inTime(asked, party) : asked;
  };
  let credential = await ask();
  for (let renewals = 0; ; renewals += 1) {
    const attempt = await once(credential);
    if (!isRefusedCredential(attempt) || mayRenew?.(attempt) === false) return attempt;
    credential = await ask(credential);
    if (credential === undefined) return attempt;
    if (renewals === MAX_RENEWALS) {
      throw new UpstreamError(
        'UPSTREAM_UNAVAILABLE',
        "The service does not accept the gateway's own access token.",
        { dispatched: false },
      );
    }
  }
}
