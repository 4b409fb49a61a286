import type { ExecutionResult } from 'graphql';
import { MappedStream, PushStream } from '../../common/push-stream.ts';
import { hasCode, type Subscribed } from './shared-stream.ts';

/**
 * Holds back what a subscription cannot be given because its credential has ended. Its sockets are closed instead, which clients come back
 * from: an event that lacks what had to be read comes again, and a status is not taken for one that has ended.
 *
 * @param hasEnded asks about the credential, which an operation has just been refused for, and closes its sockets where it has ended.
 */
export const withheld = (subscribed: Subscribed, hasEnded: () => Promise<boolean>): Subscribed =>
  subscribed instanceof PushStream
    ? new MappedStream(subscribed, (result: ExecutionResult) =>
        hasCode(result, 'UNAUTHENTICATED')
          ? hasEnded().then((ended) => (ended ? new Promise<never>(() => undefined) : result))
          : result,
      )
    : subscribed;
