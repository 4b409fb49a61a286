import { expect, it } from 'vitest';
import { SlowConsumerError } from '../../src/events/errors.ts';
import { QUEUE_LIMIT } from '../../src/events/live/ring.ts';
import type { EventStream, EventType, FollowOptions } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { LogReader } from '../../src/events/reader.ts';
import { createEventTopics, ownerTopic } from '../../src/resolvers/events/topics.ts';
import { until } from '../helpers/until.ts';
import { MemorySource } from './memory-source.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const OWNER = 'aaaaaaaa-0000-4000-8000-000000000000';
/** More than one reader may have waiting for it, in bytes and then in number. */
const PILED = [
  { count: 30, size: 50_000 },
  { count: 300, size: 100 },
] as const;

it.each<[string, FollowOptions]>([
  ['is of everything', {}],
  [
    'has to be asked for',
    { topics: [ownerTopic('MONEY_IN', OWNER), ownerTopic('CEP', OWNER)], needsLookup: true },
  ],
])(
  'what piled up in an outage ends no reader that had read all before, where it %s, twice',
  async (_, options) => {
    const source = new MemorySource();
    const log = new LogReader(
      source,
      silentMetrics,
      createEventTopics(async () => OWNER),
    );
    const stream = await log.follow(CLIENT, options);
    const seen: string[] = [];
    const ended = (async () => {
      for await (const { id } of stream) {
        seen.push(id);
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const append = (carried: 'once' | 'lost', size: number) =>
      source.append(CLIENT, 'MONEY_IN', { body: { id: OWNER, owner_id: OWNER } }, carried, size);
    for (const { count, size } of [...PILED, ...PILED]) {
      for (let number = 0; number < count; number += 1) append('lost', size);
      source.resync();
      await Promise.race([until(() => seen.length === source.entries.length), ended]);
      append('once', 100);
      await Promise.race([until(() => seen.length === source.entries.length), ended]);
    }
    expect(seen).toEqual(source.entries.map(({ event }) => event.id));
    await stream.return();
    await ended;
    await log.stop();
  },
);

/** Reads so many events. */
async function read(stream: EventStream, count: number): Promise<unknown[]> {
  const ids: unknown[] = [];
  for (let number = 0; number < count; number += 1) ids.push((await stream.next()).value?.id);
  return ids;
}

/** A log that asks whose a receipt is, and is told once `owner` resolves. */
function askingLog() {
  const source = new MemorySource();
  const owner = Promise.withResolvers<string>();
  const log = new LogReader(
    source,
    silentMetrics,
    createEventTopics(() => owner.promise),
  );
  return { source, owner, log };
}

it('what piled up in an outage ends no reader for whom a part waited before', async () => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const [slow, quick] = [await log.follow(CLIENT), await log.follow(CLIENT)];
  const append = (count: number, carried: 'once' | 'lost'): void => {
    for (let number = 0; number < count; number += 1)
      source.append(CLIENT, 'MONEY_IN', { body: {} }, carried, 50_000);
  };
  const first = slow.next();
  append(16, 'once');
  await read(quick, 16);
  append(10, 'lost');
  source.resync();
  // By then the feed has read what was lost, and has found room for it, or not.
  await read(quick, 10);
  expect([(await first).value?.id, ...(await read(slow, 25))]).toEqual(
    source.entries.map(({ event }) => event.id),
  );
  await log.stop();
});

it('nor one for whom a part waited because it was being asked whose an event is', async () => {
  const { source, owner, log } = askingLog();
  const topics = [ownerTopic('MONEY_IN', OWNER), ownerTopic('CEP', OWNER)];
  const slow = await log.follow(CLIENT, { topics, needsLookup: true });
  const quick = await log.follow(CLIENT);
  const append = (type: EventType, count: number, carried: 'once' | 'lost'): void => {
    for (let number = 0; number < count; number += 1)
      source.append(CLIENT, type, { body: { id: OWNER, owner_id: OWNER } }, carried, 50_000);
  };
  const first = slow.next();
  // In its queue, then behind the one that is asked about, and then what an outage has kept back.
  append('MONEY_IN', 10, 'once');
  append('CEP', 1, 'once');
  append('MONEY_IN', 6, 'once');
  await read(quick, 17);
  append('MONEY_IN', 8, 'lost');
  source.resync();
  await read(quick, 8);
  owner.resolve(OWNER);
  expect([(await first).value?.id, ...(await read(slow, 24))]).toEqual(
    source.entries.map(({ event }) => event.id),
  );
  await log.stop();
});

it('nor gives a reader that joined later an event from before it, though that one is still being asked about', async () => {
  const { source, owner, log } = askingLog();
  const topics = [ownerTopic('MONEY_IN', OWNER), ownerTopic('CEP', OWNER)];
  const append = (type: EventType, count: number, carried: 'once' | 'lost'): void => {
    for (let number = 0; number < count; number += 1)
      source.append(CLIENT, type, { body: { id: OWNER, owner_id: OWNER } }, carried, 50_000);
  };
  const early = await log.follow(CLIENT, { topics, needsLookup: true });
  const quick = await log.follow(CLIENT);
  append('CEP', 1, 'once');
  const late = await log.follow(CLIENT, {
    after: source.entries[0]?.event.cursor,
    topics,
    needsLookup: true,
  });
  // More than either has room for.
  append('MONEY_IN', 30, 'lost');
  source.resync();
  await read(quick, 31);
  owner.resolve(OWNER);
  const ids = source.entries.map(({ event }) => event.id);
  expect(await read(late, 30)).toEqual(ids.slice(1));
  expect(await read(early, 31)).toEqual(ids);
  await log.stop();
});

it('a reader that joins while an event is being asked about gets the next one, which waits behind it', async () => {
  const { source, owner, log } = askingLog();
  const options = { topics: [ownerTopic('CEP', OWNER)], needsLookup: true };
  const append = () => source.append(CLIENT, 'CEP', { body: { id: OWNER } }, 'once');
  const early = await log.follow(CLIENT, options);
  append();
  const joined = source.entries[0]?.event.cursor;
  const late = await log.follow(CLIENT, { ...options, after: joined });
  // Whoever comes back from there is given nothing twice.
  expect([early.bookmark(), late.bookmark()]).toEqual([source.origin(CLIENT), joined]);
  for (let time = 0; time < 3; time += 1) append();
  owner.resolve(OWNER);
  expect(await read(early, 4)).toEqual(['event-1', 'event-2', 'event-3', 'event-4']);
  expect(await read(late, 2)).toEqual(['event-2', 'event-3']);
  await log.stop();
});

it('a reader that joins once too much has waited behind an event is not ended where nobody can say whose that one is', async () => {
  const { source, owner, log } = askingLog();
  const topics = [ownerTopic('MONEY_IN', OWNER), ownerTopic('CEP', OWNER)];
  const append = (type: EventType) =>
    source.append(CLIENT, type, { body: { id: OWNER, owner_id: OWNER } }, 'once');
  const early = await log.follow(CLIENT, { topics, needsLookup: true });
  append('CEP');
  // One more waits than may: who has waited reads on from the log by itself.
  for (let number = 0; number < QUEUE_LIMIT.entries; number += 1) append('MONEY_IN');
  const late = await log.follow(CLIENT, { topics, needsLookup: true });
  const ended = expect(early.next()).rejects.toThrow('Whose it is cannot be asked.');
  owner.reject(new Error('Whose it is cannot be asked.'));
  await ended;
  const { event } = append('MONEY_IN');
  expect((await late.next()).value?.id).toBe(event.id);
  await late.return();
  await log.stop();
});

it.each([
  ['in number', QUEUE_LIMIT.entries, 1],
  ['in bytes', 4, QUEUE_LIMIT.size / 4],
])('a reader for whom as much waits as may, %s, is ended by the next event alone', async (_, count, size) => {
  const source = new MemorySource();
  const log = new LogReader(source, silentMetrics);
  const ended: unknown[] = [];
  const stream = await log.follow(CLIENT);
  stream.connect({ take: () => new Promise(() => undefined), finish: (error) => void ended.push(error) });
  const append = () => source.append(CLIENT, 'STATUS_UPDATE', {}, 'once', size);
  // The first is being taken, and the others wait.
  for (let number = 0; number <= count; number += 1) append();
  expect(ended).toEqual([]);
  append();
  expect(ended).toEqual([expect.any(SlowConsumerError)]);
  await log.stop();
});
