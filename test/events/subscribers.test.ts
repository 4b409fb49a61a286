import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { encodeCursor, newEpoch } from '../../src/events/cursor.ts';
import type { Slice } from '../../src/events/entry.ts';
import { DrainingError, EventsGapError, StoreUnavailableError } from '../../src/events/errors.ts';
import type { StoredEvent } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { LogReader } from '../../src/events/reader.ts';
import type { Listener } from '../../src/events/source.ts';
import { typeTopic } from '../../src/resolvers/events/topics.ts';
import { until } from '../helpers/until.ts';
import { MemorySource } from './memory-source.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';
/** More than is remembered of the recent past. */
const LONG = 300;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A log in memory that may refuse to be followed. */
class FlakySource extends MemorySource {
  isRefusing = false;

  override async attach(clientId: string, listener: Listener): Promise<void> {
    if (this.isRefusing) throw new StoreUnavailableError('It cannot be followed.');
    return super.attach(clientId, listener);
  }
}

/** A log in memory that takes a while to be followed. */
class SlowSource extends FlakySource {
  readonly asked = Promise.withResolvers<void>();
  readonly attached = Promise.withResolvers<void>();

  override async attach(clientId: string, listener: Listener): Promise<void> {
    this.asked.resolve();
    await this.attached.promise;
    return super.attach(clientId, listener);
  }
}

/** A log in memory that is read from a server which lacks the newest events, until it is found out. */
class StaleSource extends FlakySource {
  /** How many of the newest it lacks. */
  lacks = 0;
  isReplaced = true;

  override async confirm(): Promise<void> {
    if (this.isReplaced) throw new StoreUnavailableError('It has been replaced.');
    this.lacks = 0;
  }

  override async read(clientId: string, after: string | null, limit: number): Promise<Slice> {
    const slice = await super.read(clientId, after, limit);
    const entries = slice.entries.slice(0, Math.max(slice.entries.length - this.lacks, 0));
    return this.lacks === 0 ? slice : { ...slice, entries, head: String(this.entries.length - this.lacks) };
  }
}

/** A log in memory of which a part is given up just before it is read for the second time. */
class TrimmedSource extends FlakySource {
  /** How many reads have been made since it was to be trimmed, and how many events are kept then. */
  trimming: { reads: number; readonly kept: number } | undefined;

  override async read(clientId: string, after: string | null, limit: number): Promise<Slice> {
    if (this.trimming !== undefined) {
      this.trimming.reads += 1;
      if (this.trimming.reads === 2) this.trim(this.trimming.kept);
    }
    return super.read(clientId, after, limit);
  }
}

function start<S extends FlakySource = FlakySource>(source = new FlakySource() as S) {
  const counted = { followers: 0 };
  const log = new LogReader(source, {
    ...silentMetrics,
    subscribers(count) {
      counted.followers = count;
    },
  });
  const append = (times = 1, carried: 'once' | 'lost' = 'once') => {
    for (let time = 0; time < times; time += 1) source.append(CLIENT, 'STATUS_UPDATE', {}, carried);
  };
  return { source, log, counted, append };
}

function watcher() {
  const told: (string | Error)[] = [];
  return {
    told,
    event: ({ id }: StoredEvent) => void told.push(id),
    end: (error: Error) => void told.push(error),
  };
}

/** So much is lost that what a reader has seen last is no longer held. */
function breakOff({ source, append }: ReturnType<typeof start<FlakySource>>): void {
  append(10, 'lost');
  source.trim(5);
  source.resync();
}

describe('the feed of a log that cannot be read', () => {
  it('is left alone once its last subscriber has left', async () => {
    const { source, log } = start();
    const stream = await log.follow(CLIENT);
    source.isAway = true;
    source.resync();
    await until(() => vi.getTimerCount() === 1);
    await stream.return();
    expect(vi.getTimerCount()).toBe(0);
    expect(source.isFollowed).toBe(false);
  });

  it('is left alone where its last subscriber leaves while it is being read', async () => {
    const { source, log } = start();
    const stream = await log.follow(CLIENT);
    source.isAway = true;
    source.resync();
    await stream.return();
    await until(() => source.failures === 1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(source.failures).toBe(1);
  });
});

describe('one who cannot be told of events', () => {
  it.each(['follow', 'watch'] as const)(
    'and would %s is counted no more, and may come again',
    async (way) => {
      const { source, log, counted, append } = start();
      const { told, ...watching } = watcher();
      const come = (): Promise<unknown> =>
        way === 'follow' ? log.follow(CLIENT) : log.watch(CLIENT, [typeTopic('STATUS_UPDATE')], watching);
      source.isRefusing = true;
      for (let time = 0; time < 2; time += 1) {
        await expect(come()).rejects.toBeInstanceOf(StoreUnavailableError);
        expect(counted.followers).toBe(0);
      }
      source.isRefusing = false;
      await come();
      expect(counted.followers).toBe(1);
      append();
      if (way === 'watch') expect(told).toEqual(['event-1']);
    },
  );

  it('as the process is about to end, is told so, also while others are still sent away', async () => {
    const { log, counted } = start();
    await log.follow(CLIENT);
    const stopping = log.stop();
    for (const stopped of [undefined, stopping]) {
      await stopped;
      await expect(log.follow(CLIENT)).rejects.toBeInstanceOf(DrainingError);
      await expect(log.watch(CLIENT, [typeTopic('CEP')], watcher())).rejects.toBeInstanceOf(DrainingError);
    }
    expect(counted.followers).toBe(0);
  });
});

it.each(['follow', 'watch'] as const)(
  'one who would %s, and is sent away before it has its place, is not counted',
  async (way) => {
    const { source, log, counted } = start(new SlowSource());
    const coming: Promise<unknown> =
      way === 'follow' ? log.follow(CLIENT) : log.watch(CLIENT, [typeTopic('CEP')], watcher());
    await source.asked.promise;
    await log.stop();
    source.attached.resolve();
    await coming;
    expect(counted.followers).toBe(0);
  },
);

it('one who takes each event as it comes is never too slow, however much comes', async () => {
  const { source, log } = start();
  const stream = await log.follow(CLIENT);
  for (let number = 1; number <= 60; number += 1) {
    const next = stream.next();
    source.append(CLIENT, 'STATUS_UPDATE', {}, 'once', 60_000);
    expect((await next).value?.id).toBe(`event-${number}`);
  }
});

describe('a gap', () => {
  it('is told to nobody for a read of a server that has been replaced', async () => {
    const { source, log, append } = start(new StaleSource());
    append();
    const live = await log.follow(CLIENT);
    const past = await log.follow(CLIENT, { after: source.origin(CLIENT) });
    append();
    const second = source.entries[1]?.event.cursor ?? '';
    for (const stream of [live, past]) await until(async () => (await stream.next()).value?.id === 'event-2');
    // The channel brings what the server that is read does not have.
    source.lacks = 1;
    source.resync();
    await expect(log.readAfter(CLIENT, second, 10)).rejects.toBeInstanceOf(StoreUnavailableError);
    source.isReplaced = false;
    expect(await log.readAfter(CLIENT, second, 10)).toEqual({ events: [], hasMore: false });
    source.lacks = 1;
    await vi.advanceTimersByTimeAsync(1_000);
    append(1, 'lost');
    source.resync();
    for (const stream of [live, past]) expect((await stream.next()).value?.id).toBe('event-3');
  });

  it('between two lives of a log is told once it is certain which server has it', async () => {
    const { source, log } = start(new StaleSource());
    const after = encodeCursor(CLIENT, { epoch: newEpoch(0), position: '7' });
    await expect(log.follow(CLIENT, { after })).rejects.toBeInstanceOf(StoreUnavailableError);
    source.isReplaced = false;
    await expect(log.follow(CLIENT, { after })).rejects.toMatchObject({ gap: { reason: 'begun-anew' } });
  });

  it.each(['read', 'followed'] as const)(
    'that opens while the log is %s from its oldest event on is told',
    async (way) => {
      const { source, log, append } = start(new TrimmedSource());
      append(10);
      source.trim(5);
      const { oldest } = await log.bounds(CLIENT);
      append(5);
      source.trimming = { reads: 0, kept: 2 };
      const seen =
        way === 'read'
          ? log.readAfter(CLIENT, oldest, 100).then(({ events }) => events.map(({ id }) => id))
          : log.follow(CLIENT, { after: oldest }).then(async (stream) => [(await stream.next()).value?.id]);
      await expect(seen).rejects.toBeInstanceOf(EventsGapError);
      expect(source.trimming.reads).toBeGreaterThan(1);
    },
  );

  it('is none for one who waits, and has missed more than there is room for at once', async () => {
    const { source, log, append } = start();
    append();
    const stream = await log.follow(CLIENT);
    const next = stream.next();
    for (let time = 0; time < 40; time += 1) source.append(CLIENT, 'STATUS_UPDATE', {}, 'lost', 60_000);
    source.resync();
    expect((await next).value?.id).toBe('event-2');
    for (let number = 3; number <= 41; number += 1)
      expect((await stream.next()).value?.id).toBe(`event-${number}`);
  });

  it('is told to each who watches and who follows, with its reason, and ends them', async () => {
    const started = start();
    const { log, counted, append } = started;
    const watching = watcher();
    await log.watch(CLIENT, [typeTopic('STATUS_UPDATE')], watching);
    const stream = await log.follow(CLIENT);
    append();
    expect((await stream.next()).value?.id).toBe('event-1');
    const ended = expect(stream.next()).rejects.toMatchObject({
      code: 'EVENTS_GAP',
      gap: { clientId: CLIENT, reason: 'trimmed' },
    });
    breakOff(started);
    await ended;
    expect(watching.told).toEqual(['event-1', expect.any(EventsGapError)]);
    expect(counted.followers).toBe(0);
    append();
    expect(watching.told).toHaveLength(2);
  });

  it('is not hidden by what the process remembers from before it', async () => {
    const started = start();
    const { source, log, append } = started;
    const origin = source.origin(CLIENT);
    append(LONG);
    // One reads the past and keeps the feed going, one is live.
    const slow = await log.follow(CLIENT, { after: origin });
    const live = await log.follow(CLIENT);
    append(3);
    const last = source.entries[LONG]?.event.cursor;
    const ended = expect(
      live.next().then(() => live.next().then(() => live.next().then(() => live.next()))),
    ).rejects.toBeInstanceOf(EventsGapError);
    breakOff(started);
    await ended;
    const late = log.follow(CLIENT, { after: last }).then((stream) => stream.next());
    await expect(late).rejects.toBeInstanceOf(EventsGapError);
    await slow.return();
  });
});
