import type { AlarmClock } from '../common/alarms.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { UnauthenticatedError } from './authenticator.ts';
import type { Caller } from './caller.ts';

/**
 * How long an accepted token is believed before it is asked about again, in milliseconds; and how often one without an end is asked about
 * while it has a socket or a stream (docs/authentication.md, "Until when").
 */
export const BELIEVED_MS = 60_000;
/**
 * How often the signature of a token that names its end is verified again while a stream is open, in milliseconds, where the identity provider
 * may withdraw the key before (docs/authentication.md, "Until when").
 */
export const VERIFIED_AGAIN_MS = 600_000;
/** The longest single wait, in milliseconds. A timer cannot take longer ones, so they are split. */
const LONGEST_SLEEP_MS = 3_600_000;

const expired = (): UnauthenticatedError => new UnauthenticatedError('The access token has expired.');

/** @throws UnauthenticatedError once the credential has ended. */
export function assertHolds({ expiresAt }: Pick<Caller, 'expiresAt'>, now: number): void {
  if (expiresAt !== undefined && expiresAt <= now) throw expired();
}

/**
 * Waits until a credential is no longer valid: until its end, or until it is first refused.
 *
 * @param again finds out again which caller it stands for. If that fails, it is tried again later.
 * @param againMs how often one that names its end is asked about before, in milliseconds; undefined for never.
 * @returns the reason; undefined if the signal was aborted before.
 */
export async function untilExpiry(
  caller: Caller,
  again: () => MaybePromise<Caller>,
  clock: AlarmClock,
  signal: AbortSignal,
  againMs = Number.POSITIVE_INFINITY,
): Promise<Error | undefined> {
  let { expiresAt } = caller;
  let asked = clock.now();
  while (!signal.aborted) {
    const now = clock.now();
    if (expiresAt !== undefined && expiresAt <= now) return expired();
    const askAt = asked + (expiresAt === undefined ? BELIEVED_MS : againMs);
    if (askAt <= now) {
      asked = now;
      try {
        expiresAt = (await again()).expiresAt;
      } catch (error) {
        if (isRefusal(error)) return error;
      }
      continue;
    }
    const left = Math.min(askAt, expiresAt ?? Number.POSITIVE_INFINITY) - now;
    const slept = await clock.sleep(Math.min(left, LONGEST_SLEEP_MS), signal).then(
      () => true,
      () => false,
    );
    if (!slept) return undefined;
  }
  return undefined;
}

/** True if an error says that a credential is no longer valid. */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof UnauthenticatedError ||
  (error instanceof UpstreamError && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN'));
