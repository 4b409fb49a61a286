import { clock } from '../../common/clock.ts';
import type { MaybePromise } from '../../common/maybe-promise.ts';
import type { Party } from '../../common/party.ts';
import { left, UpstreamError } from './errors.ts';
import type { Answered, Attempt } from './http.ts';

/** Headers that say who is calling: `authorization`, or `x-api-key` for the bootstrap alone. */
export type AuthHeaders = Readonly<Record<string, string>>;

/**
 * Returns the credential of a call.
 *
 * @param refused a credential that the service has just answered with 401.
 * @returns the credential to use, without a promise if it is at hand; undefined if a refused one cannot be replaced.
 * @throws UpstreamError if there should be one and it cannot be had. Nothing has been sent then.
 */
export type Authorize = (refused?: AuthHeaders) => MaybePromise<AuthHeaders | undefined>;

/** For a credential that the gateway cannot renew: its caller gets the 401. */
export const fixedCredential =
  (credential: AuthHeaders): Authorize =>
  (refused) =>
    refused === undefined ? credential : undefined;

/** Decides whether a request that got this 401 may be sent once more with another credential. */
export type MayRenew = (refused: Answered) => boolean;

/**
 * How often one call may be sent again with a newer credential. One may not be enough: another process may have renewed it
 * meanwhile.
 */
const MAX_RENEWALS = 2;

const isRefusedCredential = (attempt: Attempt): attempt is Answered =>
  attempt.kind === 'answered' && attempt.status === 401;

/**
 * Waits for a credential as long as somebody waits for the call. When all of them have left, the renewal still goes on for
 * other calls.
 *
 * @throws UpstreamError `UPSTREAM_TIMEOUT` once the time of the last of them is over; `UPSTREAM_UNAVAILABLE` once all have
 * left.
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
 * Makes one call under the present credential, and sends it again with a newer one if the service answers 401.
 *
 * @param once sends the request with these headers.
 * @param party who waits for the call
 * @throws what `authorize` throws; `UPSTREAM_TIMEOUT` if no credential came in time; `UPSTREAM_UNAVAILABLE` if the service
 * refuses each one that the gateway renews, because the caller's own token is not at fault.
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
