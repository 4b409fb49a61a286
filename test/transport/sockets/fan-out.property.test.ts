import fc from 'fast-check';
import type { ExecutionResult } from 'graphql';
import { describe, expect, it } from 'vitest';
import { MappedStream } from '../../../src/common/push-stream.ts';
import { ROUND_MS, Rounds } from '../../../src/common/rounds.ts';
import type { EventsGapError } from '../../../src/events/errors.ts';
import type { StoredEvent } from '../../../src/events/log.ts';
import { silentMetrics } from '../../../src/events/metrics.ts';
import { LogReader } from '../../../src/events/reader.ts';
import { ORIGIN } from '../../../src/graphql/executor/graphql-js.ts';
import { createFanOut } from '../../../src/transport/sockets/fan-out.ts';
import type { Subscribed } from '../../../src/transport/sockets/shared-stream.ts';
import { MemorySource } from '../../events/memory-source.ts';
import { bell } from '../../helpers/bell.ts';
import { until } from '../../helpers/until.ts';
import { Client } from './client.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      carried: fc.constantFrom<'once' | 'twice' | 'lost'>('once', 'once', 'once', 'once', 'twice', 'lost'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('join' as const),
      /** From how many events back; null for from now on. */
      back: fc.option(fc.nat({ max: 12 })),
      /** Whether it shows every event, or one in three. */
      every: fc.constantFrom(1, 3),
      stalled: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('leave', 'stall', 'read'), who: fc.nat() }) },
  { weight: 6, arbitrary: fc.constant({ kind: 'turn' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'doubt' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('trim' as const), kept: fc.nat({ max: 6 }) }) },
  /** What reads for all who ask the same is refused at the next event. */
  { weight: 1, arbitrary: fc.constant({ kind: 'refuse' as const }) },
);

const numberOf = ({ id }: StoredEvent): number => Number(id.slice('event-'.length));

/** The number of the event that a cursor names; 0 for the place before the first. */
const placeOf = (cursor: string): number =>
  Number(Buffer.from(cursor, 'base64url').toString().split('|')[3]) || 0;

interface Reader {
  readonly client: Client;
  readonly every: number;
  /** The event that it goes on after; undefined for one that begins now. */
  readonly after: number | undefined;
  /** How many events there were when it asked. */
  readonly asked: number;
  left: boolean;
}

/** Sockets that ask the same of a real feed, over a log whose channel loses and repeats. */
function world(isSlow: boolean) {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const clock = bell();
  const fanOut = createFanOut(
    {
      sharing: () => undefined,
      slow: () => undefined,
      delivered: () => undefined,
      gap: () => undefined,
      failed: () => undefined,
      lag: () => undefined,
    },
    new Rounds(clock),
  );
  const readers: Reader[] = [];
  let isRefused = false;

  const failed = (error: unknown): ExecutionResult =>
    ({ errors: [{ message: 'failed', extensions: { code: (error as EventsGapError).code } }] }) as never;
  const subscribe = async (
    after: number | undefined,
    every: number,
    shared: boolean,
  ): Promise<Subscribed> => {
    const head = source.entries[(after ?? 0) - 1]?.event.cursor ?? source.origin(CLIENT);
    try {
      const events = await log.follow(CLIENT, after === undefined ? {} : { after: head });
      const result = (event: StoredEvent): ExecutionResult | undefined => {
        if (shared && isRefused) {
          isRefused = false;
          throw Object.assign(new Error('no'), { code: 'UNAUTHENTICATED' });
        }
        const number = numberOf(event);
        return number % every === 0 ? ({ data: { number }, [ORIGIN]: event } as ExecutionResult) : undefined;
      };
      return new MappedStream(events, isSlow ? (event) => turn().then(() => result(event)) : result, failed);
    } catch (error) {
      return failed(error);
    }
  };

  return {
    source,
    clock,
    readers,
    refuse: () => {
      isRefused = true;
    },
    join(back: number | null, every: number, stalled: boolean): void {
      const asked = source.entries.length;
      const after = back === null ? undefined : Math.max(0, asked - back);
      const client = new Client(fanOut);
      client.stalled = stalled;
      readers.push({ client, every, after, asked, left: false });
      const alone = () => subscribe(after, every, false);
      void client.subscribe(
        `every ${every}`,
        () => subscribe(undefined, every, true),
        alone,
        after !== undefined,
      );
    },
  };
}

type World = ReturnType<typeof world>;

/** What there is to show after one place and up to another. */
const shown = ({ every }: Reader, after: number, upTo: number): number[] =>
  Array.from({ length: Math.max(0, upTo - after) }, (_, index) => after + 1 + index).filter(
    (number) => number % every === 0,
  );

const numbers = ({ seen }: Client): number[] => seen.filter((item) => typeof item === 'number');

/** Whether a reader has been told why nothing more comes. */
const isTold = ({ client }: Reader): boolean =>
  client.closed || client.seen.some((item) => typeof item !== 'number');

/** Every event once and in order up to what it was told of last, and no mark before what it marks. */
function check(reader: Reader): void {
  const { client, after } = reader;
  const seen = numbers(client);
  const [first] = client.marks;
  if (first === undefined && after === undefined) {
    // It was told before it could begin.
    expect(seen).toEqual([]);
    return;
  }
  // What comes in the very moment in which it begins may come before the first mark.
  const start = after ?? Math.min(placeOf(first?.[0] ?? ''), (seen[0] ?? Number.POSITIVE_INFINITY) - 1);
  for (const [cursor, count] of client.marks)
    expect(client.seen.slice(0, count)).toEqual(shown(reader, start, placeOf(cursor)));
  expect(seen).toEqual(shown(reader, start, seen.at(-1) ?? start));
}

async function settle({ readers, source, clock }: World): Promise<void> {
  for (const { client } of readers) client.resume();
  source.resync();
  source.append(CLIENT, 'MONEY_IN', {}, 'once');
  const head = source.entries.length;
  const stays = (reader: Reader) => !reader.left && !isTold(reader);
  await until(async () => {
    await clock.pass(ROUND_MS);
    return readers.filter(stays).every(({ client }) => placeOf(client.marks.at(-1)?.[0] ?? '') === head);
  });
}

describe('readers that come, stall and leave, over a log that loses and forgets', () => {
  it.each([
    ['as each event is shown at once', false],
    ['as each event takes a while to be shown', true],
  ])('are sent each event once and in order, or told, and always where they stand, %s', async (_, isSlow) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const all = world(isSlow);
        const { source, readers } = all;
        // Whether the process has heard of every event at once.
        let isHeard = true;
        for (const next of steps) {
          if (next.kind === 'append') {
            source.append(CLIENT, 'MONEY_IN', {}, next.carried);
            if (next.carried === 'lost') isHeard = false;
          } else if (next.kind === 'join') {
            all.join(next.back, next.every, next.stalled);
          } else if (next.kind === 'turn') {
            await turn();
          } else if (next.kind === 'doubt') {
            source.resync();
            isHeard = false;
          } else if (next.kind === 'trim') {
            source.trim(next.kept);
          } else if (next.kind === 'refuse') {
            all.refuse();
          } else {
            const reader = readers[next.who % Math.max(1, readers.length)];
            if (next.kind === 'stall' && reader) reader.client.stalled = true;
            else if (next.kind === 'read') reader?.client.resume();
            else if (reader) {
              reader.left = true;
              await reader.client.leave();
            }
          }
        }
        await settle(all);
        for (const reader of readers) {
          check(reader);
          const { client, after, asked, left } = reader;
          if (client.completed && !left) expect(isTold(reader)).toBe(true);
          if (isHeard && after === undefined)
            expect(numbers(client).every((number) => number > asked)).toBe(true);
        }
        await Promise.all(readers.map(({ client }) => client.leave()));
        // Nobody is left whom anything is to be told.
        await until(() => all.clock.isIdle && !all.source.isFollowed);
      }),
      { numRuns: 500 },
    );
  });
});
