import type { IncomingMessage } from 'node:http';
import type { Turns } from '../common/turns.ts';
import { addressKey, type CallerKeys } from '../operation/caller-keys.ts';
import type { Incoming } from '../operation/incoming.ts';

/** Whose a request is, for its share of what bodies may take. */
interface Sender {
  readonly key: string;
  /** Whether it was verified before. */
  readonly isKnown: boolean;
}

/** What is done with a request before it is worked on. */
export interface Requests {
  senderOf(request: IncomingMessage): Sender;
  /** Waits for the turn of its sender; no promise where that is at once. */
  turn(incoming: Incoming): Promise<unknown> | undefined;
}

export interface RequestsOptions {
  readonly turns: Turns;
  readonly callerKeys: CallerKeys;
  addressOf(request: IncomingMessage): string;
  /** Whether callers are known without the REST service. */
  readonly verifiesItself: boolean;
  /** Finds out who is calling. */
  identify(incoming: Incoming): Promise<unknown>;
}

/** Requests take turns by their verified callers, and where there is none, by their addresses. */
export function createRequests(options: RequestsOptions): Requests {
  const { turns, callerKeys, addressOf, verifiesItself, identify } = options;
  return {
    senderOf(request) {
      const turnKey = callerKeys.findBearer(request.headers.authorization)?.turnKey;
      return { key: turnKey ?? addressKey(addressOf(request)), isKnown: turnKey !== undefined };
    },
    turn(incoming) {
      const { authorization } = incoming;
      // A known caller's address, which costs more to read than its name, is not asked for.
      const begin = (turnKey = callerKeys.findBearer(authorization)?.turnKey) =>
        turns.turn('operations', turnKey ?? addressKey(incoming.addressOf?.()));
      const turnKey = callerKeys.findBearer(authorization)?.turnKey;
      if (turnKey !== undefined || !verifiesItself || authorization === undefined) return begin(turnKey);
      // To verify a token costs less than to refuse it: a first log-in waits for no stranger of its address.
      return identify(incoming).then(
        () => begin(),
        () => begin(),
      );
    },
  };
}
