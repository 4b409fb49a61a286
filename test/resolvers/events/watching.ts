import type { AlarmClock } from '../../../src/common/alarms.ts';
import { EventsGapError } from '../../../src/events/errors.ts';
import type { StoredEvent, Watcher } from '../../../src/events/log.ts';
import { type States, StatusWatch } from '../../../src/resolvers/events/status-watch.ts';
import { createEventTopics } from '../../../src/resolvers/events/topics.ts';
import { UpstreamError } from '../../../src/upstream/call/errors.ts';
import { Polls } from '../../../src/upstream/session/polls.ts';
import type { Transaction } from '../../../src/upstream/transactions.ts';
import { until } from '../../helpers/until.ts';

const eventTopics = createEventTopics(() => Promise.reject(new Error('is not asked')));

export interface WatchOptions {
  readonly seesMessages?: boolean;
  /** Whether the feed remembers what came while the transaction was being read. */
  readonly remembers?: boolean;
  /** Until when the feed is being attached; asked each time. */
  readonly attached?: () => Promise<void> | undefined;
  readonly transactionId?: string;
  /** Whose readings they are. */
  readonly owner?: string;
}

/** Readings answered one by one; the last one is repeated. */
export type Reading = Transaction | null | Error | Promise<Transaction | null>;

/** A clock that stands still until the test lets a sleep end. */
function startClock() {
  const slept: number[] = [];
  let now = 1_000_000;
  let sleeping: { readonly until: number; wake(): void } | undefined;
  const clock: AlarmClock = {
    now: () => now,
    monotonic: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        slept.push(ms);
        const own = { until: now + ms, wake: resolve };
        sleeping = own;
        signal.addEventListener('abort', () => {
          if (sleeping === own) sleeping = undefined;
          reject(signal.reason);
        });
      }),
  };
  return {
    clock,
    slept,
    get isAsleep() {
      return sleeping !== undefined;
    },
    /** Lets the time pass that is being waited for, once something waits. */
    async ring() {
      await until(() => sleeping !== undefined);
      const current = sleeping;
      sleeping = undefined;
      now = Math.max(now, current?.until ?? 0);
      current?.wake();
      await settled();
    },
    /** Lets a time pass in which nothing is due. */
    pass(ms: number) {
      now += ms;
    },
  };
}

/** A turn in which everything goes on that does not wait for time. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface Shared {
  readonly time: ReturnType<typeof startClock>;
  readonly polls: Polls;
}

export function share(perSecond = 20): Shared {
  const time = startClock();
  return { time, polls: new Polls(time.clock, perSecond) };
}

interface Watched<Update> extends WatchOptions {
  readonly states: States<Update>;
  /** How an update is told in a test. */
  readonly name: (update: Update) => string;
  /** Whether the caller may be shown what another has read. */
  readonly sees?: boolean | Promise<boolean>;
}

/** A watch whose events, readings and clock the test moves by hand. */
export function startWatch<Update>(
  { time, polls }: Shared,
  {
    states,
    name,
    seesMessages = true,
    remembers = true,
    attached,
    transactionId = '',
    sees = true,
    owner = 'client',
  }: Watched<Update>,
  ...readings: [Reading, ...Reading[]]
) {
  /** What the feed tells; undefined before it is attached, and after the watch was stopped or let go of. */
  let current: { topics: readonly string[]; readonly watcher: Watcher } | undefined;
  let attachings = 0;
  let isOver = false;
  let reads = 0;
  const recent: StoredEvent[] = [];
  const failures: UpstreamError[] = [];
  /** What was asked of the source beside events and readings. */
  const told: string[] = [];
  const concerns = (stored: StoredEvent, by: readonly string[]) =>
    eventTopics.of(stored).some((topic) => by.includes(topic));
  const updates = new StatusWatch(
    {
      pollKey: `client ${transactionId}`,
      pollRequester: owner,
      seesMessages,
      async watch(topics, watcher) {
        const own = { topics, watcher };
        const since = recent.length;
        current = own;
        attachings += 1;
        await attached?.();
        return {
          add(more) {
            if (current !== own) return [];
            own.topics = [...own.topics, ...more];
            if (!remembers) return undefined;
            return recent.slice(since).filter((stored) => concerns(stored, own.topics));
          },
          stop() {
            if (current === own) current = undefined;
          },
        };
      },
      async read() {
        reads += 1;
        const [reading] = readings;
        if (readings.length > 1) readings.shift();
        if (reading instanceof Error) throw reading;
        return reading ?? null;
      },
      sees: () => sees,
      renew() {
        told.push('renew');
        if (isOver) throw new UpstreamError('UNAUTHENTICATED', 'The credential has ended.');
      },
      beforeUpdate: () => void told.push('tell'),
      idle: () => void told.push('idle'),
      readFailed: (error) => failures.push(error),
    },
    states,
    polls,
  );
  return {
    updates,
    failures,
    told,
    /** The caller's credential ends. */
    expire() {
      isOver = true;
    },
    slept: time.slept,
    ring: () => time.ring(),
    leave: () => updates.return(),
    get ended() {
      return attachings > 0 && current === undefined;
    },
    get reads() {
      return reads;
    },
    /** The log is lost, and the feed lets go of the watch. */
    lose() {
      const lost = current;
      current = undefined;
      lost?.watcher.end(
        new EventsGapError({ oldest: 'c0', head: 'c0' }, { clientId: 'client', reason: 'begun-anew' }),
      );
    },
    /** What comes on the client's log; the watch is told of what concerns it. */
    send(...events: StoredEvent[]) {
      for (const stored of events) {
        recent.push(stored);
        if (current && concerns(stored, current.topics)) current.watcher.event(stored);
      }
    },
    async next() {
      const step = await updates.next();
      return step.done ? 'completed' : name(step.value);
    },
  };
}
