import { expect, it } from 'vitest';
import { EventsGapError, StoreUnavailableError } from '../../src/events/errors.ts';
import type { EventWatch } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { LogReader } from '../../src/events/reader.ts';
import { createEventTopics, ownerTopic } from '../../src/resolvers/events/topics.ts';
import { countingMetrics } from '../helpers/events.ts';
import { until } from '../helpers/until.ts';
import { MemorySource } from './memory-source.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const OWNER = 'aaaaaaaa-0000-4000-8000-000000000000';

it('whose a receipt is, is asked for no longer once everybody has left who has to know', async () => {
  const source = new MemorySource();
  let asked = 0;
  const topics = createEventTopics(async () => {
    asked += 1;
    return OWNER;
  });
  const log = new LogReader(source, silentMetrics, topics);
  const whole = await log.follow(CLIENT);
  const narrowed = await log.follow(CLIENT, { topics: [ownerTopic('CEP', OWNER)], needsLookup: true });
  const receipt = () =>
    source.append(CLIENT, 'CEP', { payload: { body: { id: 'a', status: 'DELAYED' } } }, 'once');
  receipt();
  await narrowed.next();
  expect(asked).toBe(1);
  await narrowed.return();
  receipt();
  await whole.next();
  await whole.next();
  expect(asked).toBe(1);
  await whole.return();
  await log.stop();
});

it('what was missed is read once the log can be read again, though nothing tells of that, twice', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const seen: string[] = [];
  const stream = await log.follow(CLIENT);
  stream.connect({ take: ({ id }) => void seen.push(id), finish: () => undefined });
  for (const _time of ['first', 'second']) {
    const failed = source.failures;
    source.isAway = true;
    source.append(CLIENT, 'STATUS_UPDATE', {}, 'lost');
    source.resync();
    await until(() => source.failures > failed);
    source.isAway = false;
    await until(() => seen.length === source.entries.length);
  }
  expect(seen).toEqual(source.entries.map(({ event }) => event.id));
  stream.stop();
  await log.stop();
});

it('more events than may wait, while the log is being read, are read from it', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const seen: string[] = [];
  const stream = await log.follow(CLIENT);
  stream.connect({ take: ({ id }) => void seen.push(id), finish: () => undefined });
  // The feed reads the log as long as this turn lasts, and holds what comes meanwhile.
  source.resync();
  for (let number = 0; number < 1_000; number += 1) source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  await until(() => seen.length >= 1_000);
  expect(seen).toEqual(source.entries.map(({ event }) => event.id));
  stream.stop();
  await log.stop();
});

it('more bytes than may wait, while the log is being read, are read from it', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const seen: string[] = [];
  const stream = await log.follow(CLIENT);
  stream.connect({ take: ({ id }) => void seen.push(id), finish: () => undefined });
  source.resync();
  const before = source.reads;
  // Fewer than may wait by their number.
  for (let number = 0; number < 200; number += 1)
    source.append(CLIENT, 'STATUS_UPDATE', {}, 'once', 64 * 1024);
  await until(() => seen.length >= 200);
  expect(seen).toEqual(source.entries.map(({ event }) => event.id));
  // Those behind the first 16 come in pages of 64.
  expect(source.reads - before).toBeGreaterThanOrEqual(Math.ceil((200 - 16) / 64));
  stream.stop();
  await log.stop();
});

it('a stream gives no place to go on from while its reader takes an event, as that one would be left out', async () => {
  const source = new MemorySource();
  let waiting = () => 0;
  const watchFeeds = (ask: typeof waiting) => {
    waiting = ask;
  };
  const log = new LogReader(source, { ...silentMetrics, watchFeeds });
  const taken = Promise.withResolvers<void>();
  let began = 0;
  const stream = await log.follow(CLIENT);
  const take = () => {
    began += 1;
    return taken.promise;
  };
  stream.connect({ take, finish: () => undefined });
  expect(stream.bookmark()).toBeDefined();
  source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  await until(() => began === 1);
  expect(stream.bookmark()).toBeUndefined();
  source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  expect(waiting()).toBe(2);
  taken.resolve();
  await until(() => stream.bookmark() === source.entries.at(-1)?.event.cursor);
  expect(waiting()).toBe(0);
  stream.stop();
  await log.stop();
});

it('a cursor of a new life of the log is taken while a read of the life before is still to be answered', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const before = await log.follow(CLIENT);
  const answer = Promise.withResolvers<void>();
  source.answering = answer.promise;
  source.resync();
  await until(() => source.reads === 1);
  source.beginAnew();
  const following = log.follow(CLIENT, { after: source.origin(CLIENT) });
  // Not before the new reader waits for what the feed reads.
  await new Promise(setImmediate);
  answer.resolve();
  const after = await following;
  await expect(before.next()).rejects.toBeInstanceOf(EventsGapError);
  const { event } = source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  expect((await after.next()).value).toEqual(event);
  await after.return();
  await log.stop();
});

it('a log that has begun anew is called so also to a reader that has not read what the former one held', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  for (let number = 0; number < 300; number += 1) source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  const live = await log.follow(CLIENT);
  const behind = await log.follow(CLIENT, { after: source.origin(CLIENT) });
  await behind.next();
  source.beginAnew();
  source.append(CLIENT, 'STATUS_UPDATE', {}, 'lost');
  source.resync();
  const endOf = async (stream: AsyncIterable<unknown>) => {
    for await (const _event of stream);
  };
  const begunAnew = { gap: { reason: 'begun-anew' } };
  await expect(endOf(live)).rejects.toMatchObject(begunAnew);
  await expect(endOf(behind)).rejects.toMatchObject(begunAnew);
  await log.stop();
});

it.each([
  ['', {}],
  [', and whose topics need a call,', { topics: ['STATUS_UPDATE'], needsLookup: true }],
])(
  'a reader%s that was about to be live hears at once of a new life of the log, with the same entries',
  async (_which, options) => {
    const source = new MemorySource();
    const log = new LogReader(source, silentMetrics);
    const append = () => source.append(CLIENT, 'STATUS_UPDATE', {}, 'once').event;
    const events = Array.from({ length: 10 }, append);
    const live = await log.follow(CLIENT);
    const stream = await log.follow(CLIENT, { ...options, after: events[4]?.cursor });
    const taken = Promise.withResolvers<void>();
    const seen: string[] = [];
    const ended = Promise.withResolvers<unknown>();
    const take = ({ id }: { id: string }) => {
      seen.push(id);
      return taken.promise;
    };
    stream.connect({ take, finish: ended.resolve, rests: () => ended.resolve('it is live') });
    source.renew();
    source.resync();
    await expect(live.next()).rejects.toMatchObject({ gap: { reason: 'begun-anew' } });
    append();
    taken.resolve();
    expect(await ended.promise).toMatchObject({ gap: { reason: 'begun-anew' } });
    expect(seen).toEqual(events.slice(5).map(({ id }) => id));
    stream.stop();
    await log.stop();
  },
);

it('a watcher that has left is told nothing, whoever has it leave', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const told: string[] = [];
  const others: EventWatch[] = [];
  const leave = () => {
    for (const other of others.splice(0)) other.stop();
  };
  const watch = (name: string) => {
    const tell = (what: string) => {
      told.push(`${name} ${what}`);
      leave();
    };
    return log.watch(CLIENT, ['STATUS_UPDATE'], { event: ({ id }) => tell(id), end: () => tell('end') });
  };
  const first = await watch('first');
  // The event is on its way to both as the first takes it.
  others.push(await watch('second'));
  source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  expect(told).toEqual(['first event-1']);

  const left = await watch('left');
  left.stop();
  source.append(CLIENT, 'CEP', {}, 'once');
  expect(left.add(['CEP'])).toEqual([]);
  source.append(CLIENT, 'CEP', {}, 'once');

  others.push(await watch('third'));
  await log.stop();
  expect(told).toEqual(['first event-1', 'first end']);
  first.stop();
});

it('a watcher that learns of more topics, each time, is given what it has missed of all that it has learned', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const watch = await log.watch(CLIENT, ['STATUS_UPDATE'], { event: () => {}, end: () => {} });
  const types = ['CEP', 'MONEY_IN'] as const;
  const [receipt, credit] = types.map((type) => source.append(CLIENT, type, {}, 'once').event.id);
  const given = (type: string) => watch.add([type])?.map(({ id }) => id);
  expect(given('CEP')).toEqual([receipt]);
  expect(given('MONEY_IN')).toEqual([receipt, credit]);
  watch.stop();
  await log.stop();
});

it.each([
  ['has given up the oldest', 1, 'trimmed'],
  // Giving up keeps the newest.
  ['holds none any more, as after an eviction,', 0, 'lost'],
] as const)('why events are missing is told of a log that %s', async (_how, kept, reason) => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const origin = source.origin(CLIENT);
  const [first] = [1, 2, 3].map(() => source.append(CLIENT, 'STATUS_UPDATE', {}, 'once').event.cursor);
  source.trim(kept);
  for (const cursor of [origin, first ?? '']) {
    for (const read of [() => log.readAfter(CLIENT, cursor, 10), () => log.follow(CLIENT, { after: cursor })])
      await expect(read()).rejects.toMatchObject({ code: 'EVENTS_GAP', gap: { clientId: CLIENT, reason } });
  }
  source.beginAnew();
  await expect(log.readAfter(CLIENT, first ?? '', 10)).rejects.toMatchObject({
    gap: { reason: 'begun-anew' },
  });
  await log.stop();
});

it('one who follows a client that nobody has followed for a while hears what comes, and nothing from before, each time', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  for (const _time of ['first', 'second', 'third']) {
    const stream = await log.follow(CLIENT);
    expect(source.isFollowed).toBe(true);
    const { event } = source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
    expect((await stream.next()).value).toEqual(event);
    await stream.return();
    expect(source.isFollowed).toBe(false);
    source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  }
  await log.stop();
});

it('a search reads the log where its index takes long to be completed', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const completed = Promise.withResolvers<boolean>();
  source.catchUp = () => completed.promise;
  const { event } = source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  for (const _time of ['first', 'second'])
    expect(await log.readAfter(CLIENT, null, 10, { receivedFrom: 0 })).toEqual({
      events: [event],
      hasMore: false,
    });
  completed.resolve(true);
  await log.stop();
});

it.each([
  ['a page', (log: LogReader, after: string) => log.readAfter(CLIENT, after, 10)],
  ['a stream', (log: LogReader, after: string) => log.follow(CLIENT, { after })],
])('%s from the oldest event on tells of what is trimmed while it is read', async (_what, begin) => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const append = () => source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
  append();
  const { oldest } = await log.bounds(CLIENT);
  append();
  append();
  const answered = Promise.withResolvers<void>();
  source.answering = answered.promise;
  const begun = begin(log, oldest);
  await until(() => source.reads === 1);
  source.trim(1);
  answered.resolve();
  await expect(begun).rejects.toMatchObject({ code: 'EVENTS_GAP', gap: { reason: 'trimmed' } });
  await log.stop();
});

it('a follower and a watch are counted from when what comes is handed to them, until they leave, and not where they are refused', async () => {
  const source = new MemorySource();
  const metrics = countingMetrics();
  const log = new LogReader(source, metrics);
  const read = source.head.bind(source);
  for (const count of [1, 0]) {
    const reached = Promise.withResolvers<void>();
    source.head = () => reached.promise.then(read);
    const opening = log.follow(CLIENT);
    await until(() => source.isFollowed);
    expect(metrics.counts['subscribers'] ?? 0).toBe(0);
    source.append(CLIENT, 'STATUS_UPDATE', {}, 'lost');
    if (count === 0) reached.reject(new StoreUnavailableError('It is away.'));
    else reached.resolve();
    const stream = await opening.catch(() => undefined);
    expect(metrics.counts['subscribers'] ?? 0).toBe(count);
    const { event } = source.append(CLIENT, 'STATUS_UPDATE', {}, 'once');
    if (stream !== undefined) expect((await stream.next()).value).toEqual(event);
    const watch =
      stream && (await log.watch(CLIENT, ['a'], { event: () => undefined, end: () => undefined }));
    expect(metrics.counts['subscribers'] ?? 0).toBe(2 * count);
    watch?.stop();
    await stream?.return();
    expect(metrics.counts['subscribers'] ?? 0).toBe(0);
  }
  await log.stop();
});

it('one who resumes behind a gap from before it is told of it, though a slower reader has kept what came before', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const append = (count: number, carried: 'once' | 'lost') => {
    for (let number = 0; number < count; number += 1) source.append(CLIENT, 'STATUS_UPDATE', {}, carried);
  };
  const live = await log.follow(CLIENT);
  append(200, 'once');
  // Has more to read than a reader gets at once, and reads nothing of it.
  const slow = await log.follow(CLIENT, { after: source.origin(CLIENT) });
  await live.return();
  const other = await log.follow(CLIENT);
  const ended = other.next();
  append(10, 'lost');
  source.trim(5);
  source.resync();
  await expect(ended).rejects.toBeInstanceOf(EventsGapError);
  const before = source.entries[150]?.event.cursor;
  await expect(log.follow(CLIENT, { after: before })).rejects.toBeInstanceOf(EventsGapError);
  const { event } = source.entries.at(-5) ?? {};
  const after = await log.follow(CLIENT, { after: event?.cursor });
  append(1, 'once');
  const seen = [];
  for (let number = 0; number < 5; number += 1) seen.push((await after.next()).value?.id);
  expect(seen).toEqual(source.entries.slice(-5).map(({ event: { id } }) => id));
  await after.return();
  await slow.return();
  await log.stop();
});
