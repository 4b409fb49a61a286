import type { IncomingMessage } from 'node:http';
import { UnauthenticatedError } from '../auth/authenticator.ts';
import type { Turns } from '../common/turns.ts';
import { addressKey, type CallerKeys } from '../operation/caller-keys.ts';
import type { Incoming } from '../operation/incoming.ts';

/** The sender of a request, which has a share of the memory for bodies. */
interface Sender {
  readonly key: string;
  /** True if the sender was verified before. */
  readonly isKnown: boolean;
}

/** Finds the sender of a request, and waits for its turn, before the request is worked on. */
export interface Requests {
  senderOf(request: IncomingMessage): Sender;
  /** Waits for the sender's turn. Returns no promise if the turn is now. */
  turn(incoming: Incoming): Promise<unknown> | undefined;
}

export interface RequestsOptions {
  readonly turns: Turns;
  readonly callerKeys: CallerKeys;
  addressOf(request: IncomingMessage): string;
  /** True if callers are identified without the REST service. */
  readonly verifiesItself: boolean;
  /** Finds out who is calling. */
  identify(incoming: Incoming): Promise<unknown>;
}

/** Requests take turns by their verified callers; those without one, by their network addresses. */
export function createRequests(options: RequestsOptions): Requests {
  const { turns, callerKeys, addressOf, verifiesItself, identify } = options;
  return {
    senderOf(request) {
      const turnKey = callerKeys.findBearer(request.headers.authorization)?.turnKey;
      return { key: turnKey ?? addressKey(addressOf(request)), isKnown: turnKey !== undefined };
    },
    turn(incoming) {
      const { authorization } = incoming;
      // The address is read only if no caller is known, because it costs more to read than the caller.
      const begin = (turnKey = callerKeys.findBearer(authorization)?.turnKey) =>
        turns.turn('operations', turnKey ?? addressKey(incoming.addressOf?.()));
      const turnKey = callerKeys.findBearer(authorization)?.turnKey;
      if (turnKey !== undefined || !verifiesItself || authorization === undefined) return begin(turnKey);
      // Verifying a token costs less than refusing it, so a first log-in does not wait for strangers of its address.
      return identify(incoming).then(
        () => begin(),
        (error: unknown) => {
          if (error instanceof UnauthenticatedError) Object.assign(incoming, { refusal: error });
          return begin();
        },
      );
    },
  };
}
