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
/** Why a credential is refused once its end has come. */
export const expired = (): UnauthenticatedError => new UnauthenticatedError('The access token has expired.');

/** @throws UnauthenticatedError once the credential has ended. */
export function assertHolds({ expiresAt }: Pick<Caller, 'expiresAt'>, now: number): void {
  if (expiresAt !== undefined && expiresAt <= now) throw expired();
}

/** True if an error says that a credential is no longer valid. */
export const isRefusal = (error: unknown): error is Error =>
  error instanceof UnauthenticatedError ||
  (error instanceof UpstreamError && (error.code === 'UNAUTHENTICATED' || error.code === 'FORBIDDEN'));
