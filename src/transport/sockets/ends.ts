import { CloseCode } from 'graphql-ws';

/** Close code of a socket that its client may open again later (IANA, WebSocket close codes). */
export const TRY_AGAIN_LATER = 1013;

/** Why a socket is to be closed as soon as it has answered its mutations. */
export interface End {
  readonly code: number;
  readonly reason: string;
}

/** Its credential has ended. */
export const EXPIRED: End = { code: CloseCode.Forbidden, reason: 'The access token is no longer accepted.' };
/** Too many events wait for a reader, or for the stream that readers share. */
export const FELL_BEHIND: End = { code: TRY_AGAIN_LATER, reason: 'Too many events wait' };
/** An operation has failed in a way that nobody has thought of. */
export const FAILED: End = { code: CloseCode.InternalServerError, reason: 'Internal server error' };
