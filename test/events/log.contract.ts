import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeCursor, newEpoch } from '../../src/events/cursor.ts';
import { CursorInvalidError, EventsGapError, SlowConsumerError } from '../../src/events/errors.ts';
import type { EventLog, NewEvent, StoredEvent } from '../../src/events/log.ts';
import type { EventMetrics } from '../../src/events/metrics.ts';
import { sealedReads } from '../../src/events/sealed-reads.ts';
import { countingMetrics, failure, ids, moneyIn, take } from '../helpers/events.ts';
import { PatientLog } from '../helpers/patient-log.ts';
import { until } from '../helpers/until.ts';

export interface ContractOptions {
  readonly retention: number;
  readonly metrics: EventMetrics;
}

/** What every event log does, whatever it is made of. */
export function describeEventLog(name: string, open: (options: ContractOptions) => Promise<EventLog>): void {
  describe(name, () => {
    let log: EventLog;
    let client: string;
    let metrics: ReturnType<typeof countingMetrics>;
    let opened: EventLog[];

    const openLog = async (retention = 1000): Promise<EventLog> => {
      const made = new PatientLog(await open({ retention, metrics }));
      opened.push(made);
      return made;
    };
    const appendMany = async (count: number, to = log): Promise<NewEvent[]> => {
      const events = Array.from({ length: count }, () => moneyIn());
      for (const event of events) await to.append(client, event);
      return events;
    };

    beforeEach(async () => {
      client = randomUUID();
      metrics = countingMetrics();
      opened = [];
      log = await openLog();
    });
    afterEach(async () => {
      await Promise.all(opened.map((made) => made.stop()));
    });

    describe('sealing', () => {
      const CUSTOMER = '3f2b1c9e-8d4a-4f6b-9a57-0c1d2e3f4a5b';
      const OTHER = '7c9e6679-7425-40de-944b-e07fc1f90ae7';

      it('gives back what was read under a cursor, and tells nothing by it', async () => {
        const sealed = sealedReads(log, CUSTOMER);
        const start = await sealed.head(client);
        await appendMany(12);
        const { events } = await sealed.readAfter(client, start, 100);
        expect(events).toHaveLength(12);
        expect((await sealed.readAfter(client, start, 100)).events).toEqual(events);
        for (const [index, { cursor }] of events.entries()) {
          expect((await sealed.readAfter(client, cursor, 100)).events).toEqual(events.slice(index + 1));
          expect((await sealed.readBefore(client, cursor, 100)).events).toEqual(events.slice(0, index));
        }
        const texts = [start, await sealed.head(client), ...events.map(({ cursor }) => cursor)];
        expect(new Set(texts.map(({ length }) => length)).size).toBe(1);
        for (const text of texts)
          expect(Buffer.from(text, 'base64url').toString('latin1')).not.toContain(client);
        // That the end of the log has not moved, or has, is nothing to be told either.
        expect(await sealed.head(client)).not.toBe(await sealed.head(client));
        const live = await sealed.follow(client, { after: events[9]?.cursor });
        expect(await take(live, 2)).toEqual(events.slice(10));
        const [next] = await appendMany(1);
        expect(await take(live, 1)).toMatchObject([{ id: next?.id }]);
      });

      it('tells a watcher what others read under the same cursors', async () => {
        const sealed = sealedReads(log, CUSTOMER);
        const start = await sealed.head(client);
        const told: StoredEvent[] = [];
        const watcher = { event: (event: StoredEvent) => told.push(event), end: () => undefined };
        const watch = await sealed.watch(client, ['MONEY_IN'], watcher);
        await appendMany(3);
        await until(() => told.length === 3);
        const { events } = await sealed.readAfter(client, start, 3);
        expect(told).toEqual(events);
        expect(watch.add(['CEP'])).toEqual(events);
        watch.stop();
      });

      it('opens no cursor but one that it has sealed for this client and customer', async () => {
        await appendMany(2);
        const plain = (await log.readAfter(client, null, 1)).events[0]?.cursor ?? '';
        const sealed = (await sealedReads(log, CUSTOMER).readAfter(client, null, 1)).events[0]?.cursor ?? '';
        const bytes = Buffer.from(sealed, 'base64url');
        const forged = Array.from({ length: bytes.length }, (_, index) => {
          const copy = Buffer.from(bytes);
          copy[index] = (copy[index] ?? 0) ^ 1;
          return copy.toString('base64url');
        });
        const reads = sealedReads(log, CUSTOMER);
        for (const cursor of [
          plain,
          ...forged,
          `${sealed}=`,
          ` ${sealed}`,
          sealed.slice(0, 40),
          '',
          'x'.repeat(1e5),
        ]) {
          await expect(reads.readAfter(client, cursor, 1)).rejects.toBeInstanceOf(CursorInvalidError);
          await expect(reads.readBefore(client, cursor, 1)).rejects.toBeInstanceOf(CursorInvalidError);
          await expect(reads.follow(client, { after: cursor })).rejects.toBeInstanceOf(CursorInvalidError);
          const refused: unknown = await reads.readAfter(client, cursor, 1).catch((error) => error);
          // Both ends are sealed, and can be gone on from.
          const { oldest = '', head = '' } = (refused instanceof CursorInvalidError && refused.bounds) || {};
          expect([oldest, head]).not.toContain((await log.bounds(client)).oldest);
          expect((await reads.readAfter(client, oldest, 9)).events).toEqual(
            (await reads.readAfter(client, null, 9)).events,
          );
          expect((await reads.readAfter(client, head, 9)).events).toEqual([]);
        }
        const others = [
          () => sealedReads(log, OTHER).readAfter(client, sealed, 1),
          () => sealedReads(log, CUSTOMER).readAfter(randomUUID(), sealed, 1),
          () => log.readAfter(client, sealed, 1),
        ];
        for (const read of others) await expect(read()).rejects.toBeInstanceOf(CursorInvalidError);
      });

      it('seals the places of a gap as well', async () => {
        const short = await openLog(2);
        const reads = sealedReads(short, CUSTOMER);
        await appendMany(1, short);
        const first = (await reads.readAfter(client, null, 1)).events[0]?.cursor ?? '';
        const later = await appendMany(4, short);
        const scan = await reads.scan?.(client);
        if (scan === undefined) throw new Error('sealed cursors are scanned');
        const plain = await scan.open(first);
        for (const read of [
          () => reads.readAfter(client, first, 1),
          () => reads.readBefore(client, first, 1),
          () => reads.follow(client, { after: first }),
          () => scan.readAfter(client, plain, 1),
          () => scan.readBefore(client, plain, 1),
        ]) {
          const error: unknown = await read().catch((thrown: unknown) => thrown);
          if (!(error instanceof EventsGapError)) throw new Error('a gap is told', { cause: error });
          const { events } = await reads.readAfter(client, error.oldest, 10);
          expect(events.map(({ id }) => id)).toEqual(later.slice(2).map(({ id }) => id));
          expect((await reads.readAfter(client, error.head, 10)).events).toEqual([]);
        }
      });

      it('has one key for all who share the log', async () => {
        const key = await log.sealKey(client);
        expect(key).toHaveLength(32);
        expect(await log.sealKey(client)).toEqual(key);
      });
    });

    describe('appending', () => {
      it('keeps an event whole, extra fields, order of keys and great numbers included', async () => {
        const payload =
          '{"z":1,"id_msg":"m-1","big":[12345678901234567890,-9007199254740993,1e400],"ñ":"\\ud83d","__proto__":{"x":1}}';
        await log.append(client, moneyIn({ id: 'm-1', payload, decision: 'REJECTED', refundReason: 'no' }));
        const { events } = await log.readAfter(client, null, 10);
        expect(events).toHaveLength(1);
        expect(events[0]).toMatchObject({
          id: 'm-1',
          type: 'MONEY_IN',
          decision: 'REJECTED',
          refundReason: 'no',
        });
        expect(JSON.stringify(events[0]?.payload)).toBe(payload);
        expect(Object.getPrototypeOf(events[0]?.payload)).toBe(Object.prototype);
      });

      it('gives a repeated message the first answer with the credit it was for, and makes no second event', async () => {
        const rejection = { refundReason: 'closed account', transactionId: 'tx-1' };
        const event = moneyIn({ decision: 'REJECTED', ...rejection });
        const answer = { status: 422, ...rejection };
        const first = await log.append(client, event);
        const again = await log.append(client, { ...event, decision: 'ACCEPTED', transactionId: 'tx-2' });
        expect(first).toMatchObject({ answer, duplicate: false });
        expect(again).toEqual({ answer, duplicate: true, conflict: false, cursor: first.cursor });
        expect((await log.readAfter(client, null, 10)).events).toHaveLength(1);
        expect(metrics.counts).toMatchObject({ appended: 1, duplicate: 1 });
      });

      it('tells a repeated message with other contents from one with the same', async () => {
        const event = moneyIn();
        await log.append(client, event);
        const { answer, conflict } = await log.append(client, { ...event, contents: 'other' });
        expect({ answer, conflict }).toEqual({ answer: { status: 201 }, conflict: true });
      });

      it('takes the same identity in two types, or two clients, for two messages', async () => {
        const event = moneyIn();
        const results = [
          await log.append(client, event),
          await log.append(client, { ...event, type: 'STATUS_UPDATE' }),
          await log.append(randomUUID(), event),
        ];
        expect(results.map((result) => result.duplicate)).toEqual([false, false, false]);
      });

      it('makes one event of a message delivered a hundred times at once', async () => {
        const event = moneyIn();
        const results = await Promise.all(Array.from({ length: 100 }, () => log.append(client, event)));
        // None is the first where its answer was late, and it was asked again.
        expect(results.filter((result) => !result.duplicate).length).toBeLessThanOrEqual(1);
        expect(new Set(results.map(({ cursor }) => cursor)).size).toBe(1);
        expect((await log.readAfter(client, null, 10)).events).toHaveLength(1);
      });

      it('recalls the answer of a message it knows, and nothing of another', async () => {
        const event = moneyIn({ decision: 'REJECTED' });
        expect(await log.recall(client, event)).toBeUndefined();
        const { cursor } = await log.append(client, event);
        expect(await log.recall(client, event)).toEqual({
          answer: { status: 422 },
          duplicate: true,
          conflict: false,
          cursor,
        });
      });
    });

    describe('reading', () => {
      it('goes on from a cursor, page by page, without gap or repeat', async () => {
        const appended = await appendMany(7);
        const read: string[] = [];
        let cursor: string | null = null;
        for (let more = true; more; ) {
          const page = await log.readAfter(client, cursor, 3);
          read.push(...ids(page.events));
          cursor = page.events.at(-1)?.cursor ?? cursor;
          more = page.hasMore;
        }
        expect(read).toEqual(appended.map((event) => event.id));
        expect(await log.readAfter(client, cursor, 3)).toEqual({ events: [], hasMore: false });
      });

      it('reads back from the newest, page by page, oldest first within each', async () => {
        const expected = (await appendMany(7)).map((event) => event.id);
        const newest = await log.readBefore(client, null, 3);
        expect([ids(newest.events), newest.hasMore]).toEqual([expected.slice(4), true]);
        const middle = await log.readBefore(client, newest.events[0]?.cursor ?? '', 3);
        expect([ids(middle.events), middle.hasMore]).toEqual([expected.slice(1, 4), true]);
        const oldest = await log.readBefore(client, middle.events[0]?.cursor ?? '', 3);
        expect([ids(oldest.events), oldest.hasMore]).toEqual([expected.slice(0, 1), false]);
      });

      it('has a head before the first event, and everything after it is read', async () => {
        const before = await log.head(client);
        expect(await log.readBefore(client, before, 5)).toEqual({ events: [], hasMore: false });
        const [event] = await appendMany(1);
        const page = await log.readAfter(client, before, 5);
        expect(ids(page.events)).toEqual([event?.id]);
        expect(await log.head(client)).toBe(page.events[0]?.cursor);
      });

      it('shows one client nothing of another', async () => {
        await appendMany(2);
        expect(await log.readAfter(randomUUID(), null, 5)).toEqual({ events: [], hasMore: false });
      });

      it('refuses a cursor that is not its own, or is another client’s', async () => {
        await appendMany(1);
        const own = await log.head(client);
        const strangers = [
          '',
          'rubbish',
          `${own}=`,
          `${own}A`,
          encodeCursor(randomUUID(), { epoch: newEpoch(Date.now()), position: '1' }),
          encodeCursor(client, { epoch: newEpoch(Date.now()), position: 'x' }),
        ];
        for (const cursor of strangers) {
          await expect(log.readAfter(client, cursor, 5)).rejects.toThrow(CursorInvalidError);
          await expect(log.readBefore(client, cursor, 5)).rejects.toThrow(CursorInvalidError);
          await expect(log.follow(client, { after: cursor })).rejects.toThrow(CursorInvalidError);
          const bounds = await log.bounds(client);
          await expect(log.readAfter(client, cursor, 5)).rejects.toMatchObject({ bounds });
        }
        const { oldest, head } = await log.bounds(client);
        expect((await log.readAfter(client, oldest, 9)).events).toEqual(
          (await log.readAfter(client, null, 9)).events,
        );
        expect(head).toBe(await log.head(client));
      });

      it('answers a cursor of another life of this log, and one beyond its end, with a gap', async () => {
        await appendMany(2);
        const position = '1';
        const earlier = newEpoch(Date.now() - 3_600_000);
        // As a process makes it whose clock is ahead of the one that began this life.
        const later = newEpoch(Date.now() + 3_600_000);
        const own = Buffer.from(await log.head(client), 'base64url')
          .toString()
          .split('|');
        const beyond = encodeCursor(client, {
          epoch: own[1] ?? '',
          position: own[3]?.includes('-') === true ? '99999999999999-0' : '99999',
        });
        const cursors = [beyond];
        for (const epoch of [earlier, later]) {
          cursors.push(encodeCursor(client, { epoch, position: epoch }));
          cursors.push(encodeCursor(client, { epoch, position: epoch, isOldest: true }));
          if (own[3]?.includes('-') !== true) cursors.push(encodeCursor(client, { epoch, position }));
        }
        for (const cursor of cursors) {
          await expect(log.readAfter(client, cursor, 5)).rejects.toThrow(EventsGapError);
          await expect(log.readBefore(client, cursor, 5)).rejects.toThrow(EventsGapError);
          await expect(log.readAfter(client, cursor, 5, { receivedFrom: 0 })).rejects.toThrow(EventsGapError);
          await expect(log.readBefore(client, cursor, 5, { receivedFrom: 0 })).rejects.toThrow(
            EventsGapError,
          );
          await expect(log.follow(client, { after: cursor })).rejects.toThrow(EventsGapError);
        }
      });
    });

    describe('a log that has been trimmed', () => {
      it('says so, with the cursors to start again from', async () => {
        const small = await openLog(5);
        const before = await small.head(client);
        const appended = await appendMany(8, small);
        const error: unknown = await small.readAfter(client, before, 5).catch((reason: unknown) => reason);
        expect(error).toMatchObject({ code: 'EVENTS_GAP', head: await small.head(client) });
        const { oldest } = error as EventsGapError; // matched just above
        const { events } = await small.readAfter(client, oldest, 10);
        expect(ids(events)).toEqual(appended.slice(3).map((event) => event.id));
      });

      it('goes on from `oldest`, whatever is trimmed meanwhile, until something is missing of which nobody was told', async () => {
        const small = await openLog(5);
        const readers = [small, sealedReads(small, randomUUID())];
        const starts = await Promise.all(readers.map((reads) => reads.head(client)));
        const appended = await appendMany(8, small);
        const oldest = await Promise.all(
          readers.map(async (reads, index) => {
            const told = await reads
              .readAfter(client, starts[index] ?? '', 5)
              .catch((error: unknown) => error);
            return (told as EventsGapError).oldest; // of the contract: the cursor has been trimmed
          }),
        );
        // As many as are retained: all that the log held then has gone, and nothing that came since.
        for (let more = 1; more <= 5; more += 1) {
          appended.push(...(await appendMany(1, small)));
          for (const [index, reads] of readers.entries()) {
            const { events } = await reads.readAfter(client, oldest[index] ?? '', 10);
            expect(ids(events)).toEqual(appended.slice(-5).map((event) => event.id));
            const stream = await reads.follow(client, { after: oldest[index] });
            expect(ids(await take(stream, 5))).toEqual(appended.slice(-5).map((event) => event.id));
            await stream.return();
            expect(await reads.readBefore(client, oldest[index] ?? '', 5)).toEqual({
              events: [],
              hasMore: false,
            });
          }
        }
        await appendMany(1, small);
        for (const [index, reads] of readers.entries()) {
          const after = oldest[index] ?? '';
          const gap = { code: 'EVENTS_GAP', gap: { reason: 'trimmed' } };
          await expect(reads.readAfter(client, after, 5)).rejects.toMatchObject(gap);
          await expect(reads.follow(client, { after })).rejects.toMatchObject(gap);
        }
      });

      it('never ends a replay early when that happens between two pages', async () => {
        const small = await openLog(5);
        await appendMany(5, small);
        const first = await small.readAfter(client, null, 2);
        await appendMany(4, small);
        await expect(small.readAfter(client, first.events[1]?.cursor ?? '', 2)).rejects.toThrow(
          EventsGapError,
        );
        await expect(small.readBefore(client, first.events[1]?.cursor ?? '', 2)).rejects.toThrow(
          EventsGapError,
        );
      });

      it('says that it was trimmed also to one who reads back from the event that went last, and lets one who goes on do so', async () => {
        const small = await openLog(5);
        await appendMany(5, small);
        const [first] = (await small.readAfter(client, null, 1)).events;
        const [cursor, appended] = [first?.cursor ?? '', await appendMany(1, small)];
        for (const search of [undefined, { receivedFrom: 0 }])
          await expect(small.readBefore(client, cursor, 5, search)).rejects.toMatchObject({
            gap: { reason: 'trimmed' },
          });
        const { events } = await small.readAfter(client, cursor, 5);
        expect(ids(events).at(-1)).toBe(appended[0]?.id);
      });

      it('ends a follower that is still in what was trimmed', async () => {
        const small = await openLog(100);
        const start = await small.head(client);
        await appendMany(100, small);
        const events = await small.follow(client, { after: start });
        await take(events, 1);
        await appendMany(100, small);
        expect(await failure(events)).toMatchObject({ code: 'EVENTS_GAP', gap: { reason: 'trimmed' } });
      });
    });

    describe('following', () => {
      it('yields what is appended once attached, and nothing from before', async () => {
        await appendMany(2);
        const events = await log.follow(client);
        const appended = await appendMany(3);
        expect(ids(await take(events, 3))).toEqual(appended.map((event) => event.id));
      });

      it('yields the history after a cursor, then what comes, without gap or repeat', async () => {
        const start = await log.head(client);
        const history = await appendMany(150);
        const events = await log.follow(client, { after: start });
        const taken = await take(events, 70);
        const [rest, later] = await Promise.all([take(events, 110), appendMany(30)]);
        expect(ids([...taken, ...rest])).toEqual([...history, ...later].map((event) => event.id));
      });

      it('yields every event once while many are appended at the moment of joining', async () => {
        const start = await log.head(client);
        const appended = Array.from({ length: 200 }, () => moneyIn());
        const appending = (async () => {
          for (const event of appended) await log.append(client, event);
        })();
        const followers = await Promise.all(
          Array.from({ length: 20 }, () => log.follow(client, { after: start })),
        );
        const all = await Promise.all(followers.map((events) => take(events, 200)));
        await appending;
        const expected = appended.map((event) => event.id);
        for (const taken of all) expect(ids(taken)).toEqual(expected);
      });

      it('can be taken up again from the cursor of any event', async () => {
        const events = await log.follow(client);
        const appended = await appendMany(4);
        const [, second] = await take(events, 4);
        const again = await log.follow(client, { after: second?.cursor });
        expect(ids(await take(again, 2))).toEqual(appended.slice(2).map((event) => event.id));
      });

      it('ends at once when returned or stopped, also during a pending pull', async () => {
        const [returned, stopped] = [await log.follow(client), await log.follow(client)];
        const pending = returned.next();
        await returned.return();
        stopped.stop();
        expect(await pending).toEqual({ done: true, value: undefined });
        expect(metrics.counts['subscribers']).toBe(0);
      });

      it('ends a follower that stopped reading, hurts no other, and loses it nothing', async () => {
        const slow = await log.follow(client);
        const quick = await log.follow(client);
        const [first] = await appendMany(1);
        const [seen] = await take(slow, 1);
        const reading = take(quick, 401);
        const rest = await appendMany(400);
        expect(ids(await reading)).toEqual([first, ...rest].map((event) => event?.id));
        expect(await failure(slow)).toBeInstanceOf(SlowConsumerError);
        const again = await log.follow(client, { after: seen?.cursor });
        expect(ids(await take(again, 400))).toEqual(rest.map((event) => event.id));
      });

      it('does not hold against a follower what it missed before it came', async () => {
        const start = await log.head(client);
        const present = await log.follow(client);
        const missed = await appendMany(250);
        await take(present, 250);
        const late = await log.follow(client, { after: start });
        const reading = take(present, 120);
        const rest = await appendMany(120);
        await reading;
        expect(ids(await take(late, 370))).toEqual([...missed, ...rest].map((event) => event.id));
      });

      it('ends a follower whose unread events are too large together', async () => {
        const slow = await log.follow(client);
        const quick = await log.follow(client);
        const reading = take(quick, 20);
        const payload = JSON.stringify({ filler: 'x'.repeat(60_000) });
        for (let sent = 0; sent < 20; sent += 1) await log.append(client, moneyIn({ payload }));
        await reading;
        expect(await failure(slow)).toBeInstanceOf(SlowConsumerError);
      });

      it('counts followers, and those who watch', async () => {
        const follower = await log.follow(client);
        const watch = await log.watch(client, ['CEP'], { event: () => {}, end: () => {} });
        expect(metrics.counts['subscribers']).toBe(2);
        await follower.return();
        watch.stop();
        expect(metrics.counts['subscribers']).toBe(0);
      });

      it('is told to come back when the log stops', async () => {
        const events = await log.follow(client);
        const pending = failure(events);
        await log.stop();
        expect(await pending).toMatchObject({ code: 'DRAINING', retryable: true });
      });
    });

    it('is healthy while it runs', async () => {
      await expect.poll(() => log.health()).toMatchObject({ writable: true, available: true, spooled: 0 });
    });
  });
}
