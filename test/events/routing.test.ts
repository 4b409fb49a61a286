import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DrainingError, EventsGapError } from '../../src/events/errors.ts';
import type { EventStream, EventType, StoredEvent } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { LogReader } from '../../src/events/reader.ts';
import { createEventTopics, idTopic, ownerTopic, typeTopic } from '../../src/resolvers/events/topics.ts';
import { until } from '../helpers/until.ts';
import { MemorySource } from './memory-source.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const OWNERS = ['a', 'b', 'c'].map((name) => `${name.repeat(8)}-0000-4000-8000-000000000000`);
const TYPES: readonly EventType[] = ['MONEY_IN', 'CEP', 'STATUS_UPDATE'];

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const owner = fc.constantFrom(...OWNERS);

/** What an event is about. A receipt names a transaction, whose owner has to be asked for. */
const happening = fc.record({
  kind: fc.constant('event' as const),
  type: fc.constantFrom(...TYPES),
  owner,
  carried: fc.constantFrom<'once' | 'twice' | 'lost'>('once', 'once', 'once', 'twice', 'lost'),
});

/** Somebody who begins to follow: what for, and from how many events back; null for from now on. */
const following = fc.record({
  kind: fc.constant('follow' as const),
  what: fc.oneof(
    fc.record({ of: fc.constant('everything' as const) }),
    fc.record({ of: fc.constant('types' as const), types: fc.subarray([...TYPES], { minLength: 1 }) }),
    fc.record({ of: fc.constant('credits' as const), owner }),
    fc.record({ of: fc.constant('customer' as const), owner }),
    fc.record({ of: fc.constant('receipts' as const), owner }),
  ),
  back: fc.option(fc.nat({ max: 20 })),
  watches: fc.boolean(),
});
type Following = typeof following extends fc.Arbitrary<infer T> ? T : never;

const step = fc.oneof(
  { weight: 6, arbitrary: happening },
  { weight: 3, arbitrary: following },
  { weight: 4, arbitrary: fc.constant({ kind: 'turn' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'doubt' as const }) },
);

function payload(type: EventType, ownerId: string): object {
  if (type === 'MONEY_IN') return { body: { id: `${ownerId}`, owner_id: ownerId } };
  return type === 'CEP' ? { payload: { body: { id: ownerId, status: 'DELAYED' } } } : {};
}

const ownerOf = (event: StoredEvent): string | undefined => {
  const { body, payload: inner } = event.payload as {
    body?: { owner_id: string };
    payload?: { body: { id: string } };
  };
  return body?.owner_id ?? inner?.body.id;
};

/** The topics that somebody waits for, and the plain filter of the same. */
function wanted({ what }: Following): {
  readonly topics: readonly string[] | undefined;
  readonly needsLookup: boolean;
  readonly matches: (event: StoredEvent) => boolean;
} {
  switch (what.of) {
    case 'everything':
      return { topics: undefined, needsLookup: false, matches: () => true };
    case 'types':
      return {
        topics: what.types.map(typeTopic),
        needsLookup: false,
        matches: ({ type }) => what.types.some((one) => one === type),
      };
    case 'credits':
      return {
        topics: [ownerTopic('MONEY_IN', what.owner)],
        needsLookup: false,
        matches: (event) => event.type === 'MONEY_IN' && ownerOf(event) === what.owner,
      };
    case 'receipts':
      return {
        topics: [idTopic('CEP', what.owner)],
        needsLookup: false,
        matches: (event) => event.type === 'CEP' && ownerOf(event) === what.owner,
      };
    default:
      return {
        topics: [ownerTopic('MONEY_IN', what.owner), ownerTopic('CEP', what.owner)],
        needsLookup: true,
        matches: (event) => event.type !== 'STATUS_UPDATE' && ownerOf(event) === what.owner,
      };
  }
}

/** Asking takes some turns, more for some than for others; what is asked for at once is asked once. */
function startLog() {
  const source = new MemorySource();
  let asked = 0;
  const asking = new Map<string, Promise<string>>();
  const topics = createEventTopics((_client, event) => {
    const owner = event.bodyId ?? '';
    let answer = asking.get(event.id);
    if (answer === undefined) {
      asked += 1;
      answer = (async () => {
        for (let turns = asked % 4; turns > 0; turns -= 1) await turn();
        asking.delete(event.id);
        return owner;
      })();
      asking.set(event.id, answer);
    }
    return answer;
  });
  return {
    source,
    log: new LogReader(source, silentMetrics, topics),
    asked: () => asked,
  };
}

interface Follower {
  readonly seen: string[];
  readonly stream: EventStream | undefined;
  readonly matches: (event: StoredEvent) => boolean;
  /** How many events there had been where it began. */
  readonly from: number;
}

/** Reads until the log stops. */
async function read(stream: EventStream, seen: string[]): Promise<void> {
  try {
    for await (const event of stream) seen.push(event.id);
  } catch (error) {
    if (!(error instanceof DrainingError)) throw error;
  }
}

describe('an event', () => {
  it('reaches those whom it concerns as if everybody were told everything and chose, whatever comes between', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const { source, log } = startLog();
        const followers: Follower[] = [];
        for (const next of steps) {
          if (next.kind === 'event') {
            source.append(CLIENT, next.type, payload(next.type, next.owner), next.carried);
          } else if (next.kind === 'turn') {
            await turn();
          } else if (next.kind === 'doubt') {
            source.resync();
          } else {
            const { topics, needsLookup, matches } = wanted(next);
            const seen: string[] = [];
            if (next.watches && topics !== undefined && !needsLookup) {
              // One that watches begins where the feed stands, which may be behind what the channel has lost.
              source.resync();
              for (let turns = 0; turns < 6; turns += 1) await turn();
              const watcher = { event: ({ id }: StoredEvent) => seen.push(id), end: () => {} };
              await log.watch(CLIENT, topics, watcher);
              followers.push({ seen, stream: undefined, matches, from: source.entries.length });
            } else {
              const head = source.entries.length;
              const from = next.back === null ? head : Math.max(0, head - next.back);
              const after = source.entries[from - 1]?.event.cursor ?? (await log.head(CLIENT));
              const start = from === 0 ? head : from;
              const stream = await log.follow(CLIENT, { after, topics, needsLookup });
              void read(stream, seen);
              followers.push({ seen, stream, matches, from: start });
            }
          }
        }
        source.resync();
        const plain = (follower: Follower) =>
          source.entries
            .slice(follower.from)
            .flatMap(({ event }) => (follower.matches(event) ? [event.id] : []));
        await until(() => followers.every((follower) => follower.seen.length >= plain(follower).length));
        for (let turns = 0; turns < 8; turns += 1) await turn();
        for (const follower of followers) expect(follower.seen).toEqual(plain(follower));
        await log.stop();
      }),
      { numRuns: 300 },
    );
  });

  it('whose owner must be asked for is asked about once, for however many customers', async () => {
    const { source, log, asked } = startLog();
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const topics = [ownerTopic('CEP', index === 0 ? (OWNERS[0] ?? '') : `customer ${index}`)];
        return log.follow(CLIENT, { topics, needsLookup: true });
      }),
    );
    const [first] = all;
    const next = first?.next();
    source.append(CLIENT, 'CEP', payload('CEP', OWNERS[0] ?? ''), 'once');
    expect((await next)?.value?.id).toBe('event-1');
    expect(asked()).toBe(1);
    await log.stop();
  });

  it('whose owner is being asked for keeps its place before those that came after it', async () => {
    const { source, log } = startLog();
    const [mine = ''] = OWNERS;
    const topics = [ownerTopic('CEP', mine), ownerTopic('MONEY_IN', mine)];
    const stream = await log.follow(CLIENT, { topics, needsLookup: true });
    for (const type of ['CEP', 'MONEY_IN', 'CEP', 'MONEY_IN'] as const) {
      source.append(CLIENT, type, payload(type, mine), 'once');
    }
    const seen: string[] = [];
    void read(stream, seen);
    await until(() => seen.length === 4);
    expect(seen).toEqual(['event-1', 'event-2', 'event-3', 'event-4']);
    await log.stop();
  });

  it.each([1, 300])(
    'whose owner takes long to be found keeps nobody from beginning to follow, who is told of the %i that come then',
    async (count) => {
      const source = new MemorySource();
      const [mine = ''] = OWNERS;
      const found = Promise.withResolvers<string>();
      const topics = createEventTopics(() => found.promise);
      const log = new LogReader(source, silentMetrics, topics);
      const start = await log.head(CLIENT);
      const of = { topics: [ownerTopic('CEP', mine), ownerTopic('MONEY_IN', mine)], needsLookup: true };
      const seen: [string[], string[], string[]] = [[], [], []];
      void read(await log.follow(CLIENT, of), seen[0]);
      const asked = source.append(CLIENT, 'CEP', payload('CEP', mine), 'once');
      // One begins now, one from before what is being asked about.
      void read(await log.follow(CLIENT, of), seen[1]);
      void read(await log.follow(CLIENT, { ...of, after: start }), seen[2]);
      const later = Array.from(
        { length: count },
        () => source.append(CLIENT, 'MONEY_IN', payload('MONEY_IN', mine), 'once').event.id,
      );
      await turn();
      expect([seen[0], seen[2]]).toEqual([[], []]);
      found.resolve(mine);
      const whole = [asked.event.id, ...later];
      await until(() => seen[0].length === whole.length && seen[2].length === whole.length);
      await until(() => seen[1].length >= later.length);
      for (let turns = 0; turns < 8; turns += 1) await turn();
      expect(seen).toEqual([whole, later, whole]);
      await log.stop();
    },
  );

  it('costs those whom it does not concern nothing, and a gap is told to everybody', async () => {
    const { source, log } = startLog();
    const told: string[] = [];
    let ends = 0;
    const watcher = {
      event: ({ id }: StoredEvent) => told.push(id),
      end: (error: Error) => {
        expect(error).toBeInstanceOf(EventsGapError);
        ends += 1;
      },
    };
    for (const id of OWNERS) await log.watch(CLIENT, [idTopic('CEP', id)], watcher);
    const lane = await log.follow(CLIENT, { topics: [ownerTopic('CEP', 'nobody')], needsLookup: true });
    const gap = expect(lane.next()).rejects.toBeInstanceOf(EventsGapError);
    source.append(CLIENT, 'CEP', payload('CEP', OWNERS[1] ?? ''), 'once');
    source.append(CLIENT, 'MONEY_IN', payload('MONEY_IN', OWNERS[0] ?? ''), 'once');
    expect(told).toEqual(['event-1']);
    source.entries.splice(0);
    source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
    source.resync();
    await gap;
    await until(() => ends === OWNERS.length);
  });
});
