import type { ExecutionResult } from 'graphql';
import { PushStream } from '../../common/push-stream.ts';
import type { Rounds } from '../../common/rounds.ts';
import type { FanOutMetrics } from '../../observability/event-metrics.ts';
import { type Outlet, Reader } from './reader.ts';
import { type Results, SharedStream, type Subscribed } from './shared-stream.ts';

interface SocketSubscription {
  /** Equal for subscriptions to which every event gives the same result. */
  readonly key: string;
  readonly outlet: Outlet;
  /** Subscribes for all readers of the key, from now on. */
  readonly open: () => Promise<Subscribed>;
  /** Subscribes for this reader alone: from its position, or from now on if it has none. */
  readonly alone: () => Promise<Subscribed>;
  /** True if the reader resumes from a position of its own. */
  readonly resumes: boolean;
}

/**
 * Executes a subscription once for all sockets that ask the same, and sends all of them the same text. Results are sent, not
 * yielded: the iterators only end, when the stream does.
 *
 * Each reader gets every result from its position on, once and in order. A stream never ends without a reason: its reader is
 * sent the error, or its socket is closed with a code.
 */
export interface FanOut {
  /**
   * Subscribes a socket. A reader that resumes from another position than the others reads a stream of its own until it
   * reaches theirs.
   */
  subscribe(
    subscription: SocketSubscription,
  ): Promise<ExecutionResult | AsyncIterableIterator<ExecutionResult>>;
  /** Sends a stream that nobody shares. */
  alone(outlet: Outlet, stream: Results): AsyncIterableIterator<ExecutionResult>;
}

/** @param rounds says when each reader is sent a bookmark again. */
export function createFanOut(metrics: FanOutMetrics, rounds: Rounds): FanOut {
  const sharedStreams = new Map<string, SharedStream>();
  const parts = { metrics, rounds };

  const enter = ({ key, open }: SocketSubscription): SharedStream => {
    let shared = sharedStreams.get(key);
    if (shared === undefined) {
      shared = new SharedStream(open, metrics, () => sharedStreams.delete(key));
      sharedStreams.set(key, shared);
    }
    shared.enter();
    return shared;
  };

  const readAlone = async (subscription: SocketSubscription) => {
    const own = await subscription.alone();
    return own instanceof PushStream ? new Reader(subscription.outlet, parts, enter(subscription), own) : own;
  };

  return {
    async subscribe(subscription) {
      if (subscription.resumes) return readAlone(subscription);
      const shared = enter(subscription);
      try {
        const refused = await shared.opened;
        if (refused === undefined && shared.caughtUpTo() !== undefined)
          return new Reader(subscription.outlet, parts, shared, undefined);
        // A new reader does not get the results that the shared stream has still to send, nor its end if it has failed
        // meanwhile.
        const outcome = refused ?? (await readAlone(subscription));
        shared.leave();
        return outcome;
      } catch (error) {
        shared.leave();
        throw error;
      }
    },
    alone: (outlet, stream) => new Reader(outlet, parts, undefined, stream),
  };
}
