import { expect, it, vi } from 'vitest';
import { CursorInvalidError, EventsGapError, StoreUnavailableError } from '../../src/events/errors.ts';
import type { StoredEvent } from '../../src/events/log.ts';
import { silentMetrics } from '../../src/events/metrics.ts';
import { LogReader } from '../../src/events/reader.ts';
import { openCursor, SEAL_KEY_BYTES, sealCursor } from '../../src/events/seal.ts';
import { sealedReads } from '../../src/events/sealed-reads.ts';

import { createEventTopics, idTopic } from '../../src/resolvers/events/topics.ts';
import { until } from '../helpers/until.ts';
import { MemorySource } from './memory-source.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';
const CUSTOMER = 'aaaaaaaa-0000-4000-8000-000000000000';
const TRANSACTION = 'bbbbbbbb-0000-4000-8000-000000000000';

function start() {
  const source = new MemorySource();
  const log = new LogReader(
    source,
    silentMetrics,
    createEventTopics(async () => CUSTOMER),
  );
  const append = (carried: 'once' | 'lost' = 'once') =>
    source.append(CLIENT, 'MONEY_IN', { body: { id: TRANSACTION, owner_id: CUSTOMER } }, carried);
  return { source, log, append, reads: sealedReads(log, CUSTOMER) };
}

it('two bookmarks of one place are not alike to a caller who is narrowed, and each leads there', async () => {
  const { log, append, reads } = start();
  append();
  const stream = await reads.follow(CLIENT);
  stream.connect({ take: () => undefined, finish: () => undefined });
  const [one = '', other = ''] = [stream.bookmark(), stream.bookmark()];
  expect(one).not.toBe(other);
  expect([one, other]).not.toContain(await log.head(CLIENT));
  append();
  for (const after of [one, other]) {
    const again = await reads.follow(CLIENT, { after });
    expect((await again.next()).value?.id).toBe('event-2');
    await again.return();
  }
  await stream.return();
});

it('an open stream seals by the new key once its log has another', async () => {
  const { log, append, reads } = start();
  append();
  const stream = await reads.follow(CLIENT);
  const cursors: string[] = [];
  stream.connect({ take: ({ cursor }) => void cursors.push(cursor), finish: () => undefined });
  vi.spyOn(log, 'sealKey').mockResolvedValue(Buffer.alloc(SEAL_KEY_BYTES, 1));
  let time = performance.now();
  const now = vi.spyOn(performance, 'now').mockImplementation(() => time);
  try {
    const after = await until(() => {
      time += 5_000;
      append();
      const place = stream.bookmark() ?? '';
      const holder = { key: Buffer.alloc(SEAL_KEY_BYTES, 1), clientId: CLIENT, customerId: CUSTOMER };
      try {
        for (const cursor of [cursors.at(-1) ?? '', place]) openCursor(holder, cursor);
        return place;
      } catch {
        return undefined;
      }
    });
    append();
    const again = await reads.follow(CLIENT, { after });
    expect((await again.next()).value?.cursor).toBe(cursors.at(-1));
    await again.return();
  } finally {
    now.mockRestore();
    await stream.return();
  }
});

it('an open stream asks for no key while its log is away, and goes on by the one that it has', async () => {
  const { log, append, reads } = start();
  const stream = await reads.follow(CLIENT);
  const cursors: string[] = [];
  stream.connect({ take: ({ cursor }) => void cursors.push(cursor), finish: () => undefined });
  const asked = vi.spyOn(log, 'sealKey').mockRejectedValue(new StoreUnavailableError('It is away.'));
  const late = performance.now() + 60_000;
  const now = vi.spyOn(performance, 'now').mockImplementation(() => late);
  append();
  append();
  await until(() => cursors.length === 2);
  expect(asked).toHaveBeenCalledTimes(1);
  now.mockRestore();
  asked.mockRestore();
  const again = await reads.follow(CLIENT, { after: cursors[0] });
  expect((await again.next()).value?.cursor).toBe(cursors[1]);
  await again.return();
  await stream.return();
});

it('two heads of one place are not alike to a caller who is narrowed, and events after each are the same', async () => {
  const { append, reads } = start();
  append();
  const [one, other] = [await reads.head(CLIENT), await reads.head(CLIENT)];
  expect(one).not.toBe(other);
  append();
  for (const after of [one, other]) {
    const { events } = await reads.readAfter(CLIENT, after, 10);
    expect(events.map(({ id }) => id)).toEqual(['event-2']);
  }
});

it('a sealed stream that is left is left in the log', async () => {
  const { source, reads } = start();
  const stream = await reads.follow(CLIENT);
  expect(source.isFollowed).toBe(true);
  await stream.return();
  expect(source.isFollowed).toBe(false);
});

it('a scan that begins at a cursor of nobody says from where it could, by sealed cursors', async () => {
  const { log, append, reads } = start();
  append();
  const scan = await reads.scan?.(CLIENT);
  const error = await (async () => scan?.open('nonsense'))().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CursorInvalidError);
  const { oldest = '', head = '' } = (error as CursorInvalidError).bounds ?? {};
  expect(await scan?.open(oldest)).toBe((await log.bounds(CLIENT)).oldest);
  expect(await scan?.open(head)).toBe((await log.bounds(CLIENT)).head);
});

it('a sealed cursor of a form that this version does not know is answered with no cursor of the log itself', async () => {
  const { log, append, reads } = start();
  append();
  const holder = { key: await log.sealKey(CLIENT), clientId: CLIENT, customerId: CUSTOMER };
  const later = sealCursor(holder, Buffer.from('9|of a later version').toString('base64url'), 'stable');
  const bounds = await log.bounds(CLIENT);
  const scan = await reads.scan?.(CLIENT);
  const asked = [
    () => reads.readAfter(CLIENT, later, 10),
    () => reads.readBefore(CLIENT, later, 10),
    async () => (await reads.follow(CLIENT, { after: later })).next(),
    async () => scan?.readAfter(CLIENT, await scan.open(later), 10),
  ];
  for (const ask of asked) {
    const error = await ask().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CursorInvalidError);
    const { oldest = '', head = '' } = (error as CursorInvalidError).bounds ?? {};
    expect([bounds.oldest, bounds.head]).not.toContain(oldest);
    expect(await scan?.open(oldest)).toBe(bounds.oldest);
    expect(await scan?.open(head)).toBe(bounds.head);
  }
});

it('the places that two refusals name are not alike to a caller who is narrowed, though no event has come between', async () => {
  const { source, append, reads } = start();
  for (let count = 0; count < 3; count += 1) append();
  const first = source.entries[0]?.event.cursor ?? '';
  const [sealed = ''] = (await reads.readAfter(CLIENT, null, 10)).events.map(({ cursor }) => cursor);
  source.trim(1);
  const refusals = [sealed, sealed, first, first].map((cursor) =>
    reads.readAfter(CLIENT, cursor, 10).catch((thrown: unknown) => thrown),
  );
  const [gap, again, invalid, invalidAgain] = await Promise.all(refusals);
  const told = [gap, again].filter((error) => error instanceof EventsGapError);
  const refused = [invalid, invalidAgain].filter((error) => error instanceof CursorInvalidError);
  const places = [...told, ...refused.map(({ bounds }) => bounds)].flatMap((bounds) => [
    bounds?.oldest,
    bounds?.head,
  ]);
  expect(places).toHaveLength(8);
  expect(new Set(places).size).toBe(8);
});

it('one who watches is shown no cursor of the log itself: of no event, nor of a gap', async () => {
  const { source, log, append, reads } = start();
  const told: (StoredEvent | Error)[] = [];
  const watch = await reads.watch(CLIENT, [], {
    event: (event) => void told.push(event),
    end: (error) => void told.push(error),
  });
  const plain = append().event.cursor;
  const [missed] = watch.add([idTopic('MONEY_IN', TRANSACTION)]) ?? [];
  expect(missed).toMatchObject({ id: 'event-1' });
  expect(missed?.cursor).not.toBe(plain);
  const heard = append().event.cursor;
  expect(told).toMatchObject([{ id: 'event-2' }]);
  expect(told[0]).not.toMatchObject({ cursor: heard });
  for (let lost = 0; lost < 10; lost += 1) append('lost');
  source.trim(5);
  source.resync();
  const gap = await until(() => told[1]);
  expect(gap).toBeInstanceOf(EventsGapError);
  const { oldest, head } = await log.bounds(CLIENT);
  expect(gap).not.toMatchObject({ oldest });
  expect(gap).not.toMatchObject({ head });
});

it('one whose cursors cannot be sealed at a gap is told why, and is not left waiting', async () => {
  const { source, log, append, reads } = start();
  const ended: unknown[] = [];
  await reads.watch(CLIENT, [], { event: () => undefined, end: (error) => void ended.push(error) });
  const stream = await reads.follow(CLIENT);
  stream.connect({ take: () => undefined, finish: (error) => void ended.push(error) });
  const away = new StoreUnavailableError('The event log could not be read.');
  vi.spyOn(log, 'sealKey').mockRejectedValue(away);
  for (let lost = 0; lost < 10; lost += 1) append('lost');
  source.trim(5);
  source.resync();
  await until(() => ended.length === 2);
  expect(ended).toEqual([away, away]);
});

it('a cursor of any length is opened as it was sealed, and its length tells of no digit', () => {
  const holder = { key: Buffer.alloc(SEAL_KEY_BYTES), clientId: CLIENT, customerId: CUSTOMER };
  const lengths = new Set<number>();
  for (let length = 1; length < 256; length += 1) {
    // The last byte of a text may be that which ends it.
    for (const filler of ['x', '\u0001']) {
      const cursor = Buffer.from(filler.repeat(length)).toString('base64url');
      for (const how of ['stable', 'fresh'] as const) {
        const sealed = sealCursor(holder, cursor, how);
        lengths.add(sealed.length);
        expect(openCursor(holder, sealed)).toBe(cursor);
      }
    }
  }
  expect(lengths.size).toBe(2);
});
