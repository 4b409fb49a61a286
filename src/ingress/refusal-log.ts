import type { Logger } from '../common/logger.ts';
import { createCountedLines } from '../common/rare-lines.ts';
import type { IngressAddress } from './addresses.ts';

/** Why a webhook was refused: what of it was not as it has to be, that this version does not know its type, or that no more bodies may be read (`full`). */
type RefusalReason = 'method' | 'address' | 'signature' | 'token' | 'type' | 'length' | 'time' | 'full';

/** A webhook that is not read, or not to its end. */
export interface Refusal {
  readonly status: 401 | 405 | 408 | 413 | 503;
  readonly reason: RefusalReason;
  /** What the address names; undefined where it could not be read, or was not looked at. */
  readonly target?: IngressAddress | undefined;
}

/** Anybody can send such requests, and name any client, so that all of one reason share a line. */
const OF_STRANGERS: readonly RefusalReason[] = ['method', 'address', 'signature'];

/**
 * Makes the function that logs why a webhook was refused. It writes one line a minute for each reason; for each client and
 * type apart where the request has shown a signature. `refused` of a line counts the refusals since the last one. No line
 * holds a signature or a token.
 */
export function createRefusalLog(logger: Logger): (refusal: Refusal) => void {
  const count = createCountedLines();
  return ({ status, reason, target }) => {
    const { clientId, type } = target ?? {};
    const named = target === undefined ? {} : { clientId, type };
    count(OF_STRANGERS.includes(reason) ? reason : `${reason} ${clientId} ${type}`, (refused) => {
      logger.warn({ status, reason, ...named, refused }, 'a webhook was refused');
    });
  };
}
