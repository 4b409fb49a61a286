import type { ExecutionResult } from 'graphql';
import { PushStream } from '../../common/push-stream.ts';
import type { Rounds } from '../../common/rounds.ts';
import type { FanOutMetrics } from '../../observability/event-metrics.ts';
import { type Outlet, Reader } from './reader.ts';
import { type Results, SharedStream, type Subscribed } from './shared-stream.ts';

interface SocketSubscription {
  /** The same for all whom every event gives the same result. */
  readonly key: string;
  readonly outlet: Outlet;
  /** Subscribes for all, from now on. */
  readonly open: () => Promise<Subscribed>;
  /** Subscribes for this one alone: from where it left off, or from now on where it has not said where. */
  readonly alone: () => Promise<Subscribed>;
  /** Whether it goes on from a position of its own. */
  readonly resumes: boolean;
}

/**
 * Executes a subscription once for all who ask the same, and sends all the same text. Results do not come through the
 * iterators given, which only end when the stream does: they are sent.
 *
 * Each reader is sent every result from its position on, once and in order. A stream never ends without a reason: its reader is
 * sent the error, or its socket is closed with a code.
 */
export interface FanOut {
  /** What a socket is to be given. One that stands elsewhere than the others reads alone until it stands where they do. */
  subscribe(
    subscription: SocketSubscription,
  ): Promise<ExecutionResult | AsyncIterableIterator<ExecutionResult>>;
  /** Sends a stream that nobody shares. */
  alone(outlet: Outlet, stream: Results): AsyncIterableIterator<ExecutionResult>;
}

/** @param rounds when each reader is told where it stands, beside the first time. */
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
        // Who begins now is not given what the shared one has still to send, nor the end of one that has failed meanwhile.
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
