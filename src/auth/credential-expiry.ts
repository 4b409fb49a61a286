import type { AlarmClock } from '../common/alarms.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import { UpstreamError } from '../upstream/call/errors.ts';
import { UnauthenticatedError } from './authenticator.ts';
import type { Caller } from './caller.ts';

/** How often the service is asked again about a token without an end (docs/assumptions.md, "token expiry"). */
const PROBE_MS = 60_000;
/** Longer waits than a timer can take are taken in parts. */
const LONGEST_SLEEP_MS = 3_600_000;

const expired = (): UnauthenticatedError => new UnauthenticatedError('The access token has expired.');

/** @throws UnauthenticatedError once the credential has ended. */
export function assertHolds({ expiresAt }: Pick<Caller, 'expiresAt'>, now: number): void {
  if (expiresAt !== undefined && expiresAt <= now) throw expired();
}

/**
 * Waits for the end of a credential: its own, or, where it has none, the first time that it is refused.
 *
 * @param again finds out again whom it stands for. A failure is tried again later.
 * @returns why it holds no longer; undefined when the signal was aborted before that.
 */
export async function untilExpiry(
  caller: Caller,
  again: () => MaybePromise<Caller>,
  clock: AlarmClock,
  signal: AbortSignal,
): Promise<Error | undefined> {
  let { expiresAt } = caller;
  while (!signal.aborted) {
    const left = expiresAt === undefined ? PROBE_MS : expiresAt - clock.now();
    if (left <= 0) return expired();
    const slept = await clock.sleep(Math.min(left, LONGEST_SLEEP_MS), signal).then(
      () => true,
      () => false,
    );
    if (!slept) return undefined;
    if (expiresAt !== undefined) continue;
    try {
      expiresAt = (await again()).expiresAt;
    } catch (error) {
      if (isRefusal(error)) return error;
    }
  }
  return undefined;
}

/** Whether an error says that a credential holds no longer. */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof UnauthenticatedError ||
  (error instanceof UpstreamError && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN'));
