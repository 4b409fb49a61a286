import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { unplaced } from '../../src/events/entry.ts';
import { CursorInvalidError, EventsGapError } from '../../src/events/errors.ts';
import type { EventLog, EventPage, EventType, NewEvent, StoredEvent } from '../../src/events/log.ts';
import { type EventReads, sealedReads } from '../../src/events/sealed-reads.ts';
import { BLOCK, type EventNames } from '../../src/events/search.ts';
import { LogReading } from '../../src/operation/log-reading.ts';
import { decodeEvent } from '../../src/resolvers/events/event.ts';
import { eventNames } from '../../src/resolvers/events/event-names.ts';
import { type EventPageArgs, eventPage, reachesBackTo } from '../../src/resolvers/events/event-page.ts';
import { moneyIn } from '../helpers/events.ts';
import { PatientLog } from '../helpers/patient-log.ts';
import { until } from '../helpers/until.ts';

export interface SearchedOptions {
  readonly retention: number;
  readonly retentionBytes?: number | undefined;
  readonly names: EventNames;
  /** The clock by which a log begins. */
  readonly now: () => number;
}

const START = Date.parse('2026-03-02T10:00:00Z');
const MINUTE_MS = 60_000;
/** Before all events that are made here. */
const BEGUN = START - 1_000 * MINUTE_MS;
const pool = (): string[] => Array.from({ length: 4 }, () => randomUUID());
const [OWNERS, IDS] = [pool(), pool()];
const CLABES = ['646180110400000007', '646180110400000010', '012180004500000001', '9'];
const KEYS = ['MBAN01', 'mban01', 'ñ 2|3', 'ND'];

/** An event, as the few numbers that tell it from others. */
const someEvent = fc.record({
  type: fc.constantFrom<EventType>('MONEY_IN', 'MONEY_IN', 'CEP', 'STATUS_UPDATE'),
  owner: fc.nat(5),
  id: fc.nat(5),
  key: fc.nat(5),
  clabe: fc.nat(5),
  // Most follow the one before within the minute; some have waited in a spool, and one clock is ahead.
  minutes: fc.oneof(
    { weight: 12, arbitrary: fc.nat(1) },
    { weight: 1, arbitrary: fc.integer({ min: -600, max: -1 }) },
    { weight: 1, arbitrary: fc.constant(2_000) },
  ),
});
type SomeEvent =
  typeof someEvent extends fc.Arbitrary<infer T> ? Omit<T, 'clabe'> & { clabe?: number } : never;

function made({ type, owner, id, key, clabe = owner }: SomeEvent, receivedAt: number): NewEvent {
  const body = {
    id: IDS[id]?.toUpperCase(),
    tracking_key: KEYS[key],
    owner_id: OWNERS[owner],
    beneficiary_account: CLABES[clabe],
    amount: '1.00',
    status: 'DELAYED',
  };
  return {
    ...moneyIn({ type }),
    receivedAt: new Date(receivedAt).toISOString(),
    payload: JSON.stringify({ body }),
  };
}

const someSearch = fc.record({
  from: fc.option(fc.integer({ min: -700, max: 1_200 })),
  lasts: fc.option(fc.integer({ min: 1, max: 400 })),
  id: fc.option(fc.nat(4), { freq: 3 }),
  key: fc.option(fc.nat(4), { freq: 3 }),
  clabe: fc.option(fc.nat(4), { freq: 3 }),
  owner: fc.option(fc.nat(4), { freq: 3 }),
  types: fc.option(fc.subarray<EventType>(['MONEY_IN', 'CEP', 'STATUS_UPDATE'], { minLength: 1 }), {
    freq: 3,
  }),
  begin: fc.option(fc.nat(1_000)),
  size: fc.integer({ min: 1, max: 100 }),
  isBack: fc.boolean(),
  isNarrowed: fc.boolean(),
});
type SomeSearch = typeof someSearch extends fc.Arbitrary<infer T> ? T : never;

/** An id that no event has, beside those that some have. */
const UNKNOWN = randomUUID();

function argumentsOf({ from, lasts, id, key, clabe, owner, types }: SomeSearch): EventPageArgs {
  const at = (minutes: number): string => new Date(START + minutes * MINUTE_MS).toISOString();
  return {
    types,
    receivedFrom: from === null ? null : at(from),
    receivedTo: lasts === null ? null : at((from ?? 0) + lasts),
    transactionId: id === null ? null : (IDS[id] ?? UNKNOWN),
    trackingKey: key === null ? null : (KEYS[key] ?? 'nobody'),
    clabe: clabe === null ? null : (CLABES[clabe] ?? '000000000000000000'),
    ownerId: owner === null ? null : (OWNERS[owner] ?? UNKNOWN),
  };
}

/** More events than are looked through for one page of a caller who sees them all. */
const CROWD = 5_100;

/** What an operation may read that has time enough, and nobody beside it. */
const unhurried = () =>
  new LogReading({
    turn: () => undefined,
    deadline: () => Date.now() + 60_000,
    signal: new AbortController().signal,
  });

/** The receipts of each id are of one customer, as far as the service knows. */
const ownerOfReceipt = ({ bodyId }: { readonly bodyId: string | null }): string | null =>
  OWNERS[IDS.indexOf(bodyId?.toLowerCase() ?? '')] ?? null;
const CUSTOMER = OWNERS[1] ?? '';

/** What the arguments say, looked up in every event by itself. */
function isOf(args: EventPageArgs, isNarrowed: boolean): (stored: StoredEvent) => boolean {
  return (stored) => {
    const event = decodeEvent(stored);
    if (event === undefined) throw new Error(`no version knows ${stored.type}`);
    const [id, key, owner] =
      event.type === 'MONEY_IN'
        ? [event.transactionId, event.trackingKey, event.ownerId]
        : event.type === 'CEP'
          ? [event.bodyId, event.trackingKey, null]
          : [null, null, null];
    return (
      (args.types == null || args.types.includes(event.type)) &&
      (args.receivedFrom == null || event.receivedAt >= args.receivedFrom) &&
      (args.receivedTo == null || event.receivedAt < args.receivedTo) &&
      (args.transactionId == null || id?.toLowerCase() === args.transactionId) &&
      (args.trackingKey == null || key === args.trackingKey) &&
      (args.clabe == null || (event.type === 'MONEY_IN' && event.beneficiary.account === args.clabe)) &&
      (args.ownerId == null || owner === args.ownerId) &&
      (!isNarrowed || (event.type === 'CEP' ? ownerOfReceipt(event) : owner) === CUSTOMER)
    );
  };
}

/** What every log finds again, whatever it is made of. */
export function describeSearch(name: string, open: (options: SearchedOptions) => Promise<EventLog>): void {
  describe(`${name}, searched`, () => {
    const opened: EventLog[] = [];
    const openLog = async (options: Partial<SearchedOptions> = {}): Promise<EventLog> => {
      const log = new PatientLog(
        await open({ retention: 10_000, names: eventNames, now: () => BEGUN, ...options }),
      );
      opened.push(log);
      return log;
    };
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((log) => log.stop()));
    });

    /** The context of another operation. */
    const anew = <T extends { readonly budget: object }>(context: T) => ({
      ...context,
      budget: { ...context.budget, log: unhurried() },
    });
    const contextOf = (events: EventReads, clientId: string, customerId?: string) => ({
      identity: { caller: { clientId, customerId } },
      reads: { events, session: { transactions: { get: async () => null } } },
      budget: {
        signal: new AbortController().signal,
        log: unhurried(),
      },
      services: {
        receiptOwner: async (_client: string, event: { readonly bodyId: string | null }) =>
          ownerOfReceipt(event),
      },
    });
    const readAll = async (log: EventReads, clientId: string): Promise<StoredEvent[]> => {
      const events: StoredEvent[] = [];
      for (let hasMore = true; hasMore; ) {
        const page = await log.readAfter(clientId, events.at(-1)?.cursor ?? null, 500);
        events.push(...page.events);
        ({ hasMore } = page);
      }
      return events;
    };
    /** All pages of a search, each of at most `size`, in the order in which they are asked for. */
    const pages = async (
      context: ReturnType<typeof contextOf>,
      args: EventPageArgs,
      { isBack, size }: { isBack: boolean; size: number },
      begin: string | null,
    ): Promise<string[][]> => {
      const all: string[][] = [];
      for (let cursor = begin; ; ) {
        const way = isBack ? { last: size, before: cursor } : { first: size, after: cursor };
        const { nodes, pageInfo } = await eventPage({ ...args, ...way }, anew(context));
        all.push(nodes.map(({ id }) => id));
        if (!(isBack ? pageInfo.hasPreviousPage : pageInfo.hasNextPage)) return all;
        cursor = isBack ? pageInfo.startCursor : pageInfo.endCursor;
      }
    };
    const append = async (log: EventLog, clientId: string, events: readonly SomeEvent[]): Promise<void> => {
      let now = START;
      const sent = events.map((event) => {
        const late = event.minutes < 0 || event.minutes > 1;
        if (!late) now += event.minutes * MINUTE_MS;
        return made(event, late ? now + event.minutes * MINUTE_MS : now);
      });
      for (let index = 0; index < sent.length; index += 200) {
        await Promise.all(sent.slice(index, index + 200).map((event) => log.append(clientId, event)));
      }
    };

    it('finds what a plain filter finds: any time, id, key, owner and type, page by page, both ways, and after trimming', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(someEvent, { minLength: 1, maxLength: 900, size: 'max' }),
          fc.array(someSearch, { minLength: 25, maxLength: 25 }),
          fc.constantFrom({ retention: 10_000 }, { retention: 300 }, { retentionBytes: 60_000 }),
          async (events, searches, kept) => {
            const log = await openLog(kept);
            const client = randomUUID();
            await append(log, client, events);
            const all = await readAll(log, client);
            expect(all.length).toBeGreaterThan(0);
            for (const search of searches) {
              const { isNarrowed, isBack, begin, size } = search;
              const reads = isNarrowed ? sealedReads(log, CUSTOMER) : log;
              const own = await readAll(reads, client);
              const start = begin === null ? undefined : begin % all.length;
              const args = argumentsOf(search);
              const from = start === undefined ? null : (own[start]?.cursor ?? null);
              const context = contextOf(reads, client, isNarrowed ? CUSTOMER : undefined);
              const found = await pages(context, args, search, from);
              const part = start === undefined ? all : isBack ? all.slice(0, start) : all.slice(start + 1);
              const wanted = part.filter(isOf(args, isNarrowed)).map(({ id }) => id);
              expect(isBack ? found.toReversed().flat() : found.flat()).toEqual(wanted);
              for (const page of found.slice(0, -1)) expect(page).toHaveLength(size);
            }
            await log.stop();
          },
        ),
        { numRuns: 12 },
      );
    });

    it('tells a narrowed caller nothing of events of others: not their number, and not when they came', async () => {
      let runs = 0;
      const own = fc.record({ minutes: fc.nat(3), isReceipt: fc.boolean() });
      const others = fc.record({
        minutes: fc.nat(60),
        owner: fc.constantFrom(0, 2, 3),
        type: fc.constantFrom<EventType>('MONEY_IN', 'CEP', 'STATUS_UPDATE'),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(own, { maxLength: 12 }),
          fc.array(others, { maxLength: 300 }),
          fc.array(someSearch, { minLength: 12, maxLength: 12 }),
          async (mine, theirs, searches) => {
            const log = await openLog({ retention: 100_000 });
            const [alone, among] = [randomUUID(), randomUUID()];
            const events: { readonly at: number; readonly isOwn: boolean; readonly event: NewEvent }[] = [];
            let now = 0;
            for (const { minutes, isReceipt } of mine) {
              now += minutes;
              const type = isReceipt ? 'CEP' : 'MONEY_IN';
              const event = made({ type, owner: 1, id: 1, key: 0, minutes: 0 }, START + now * MINUTE_MS);
              events.push({ at: now, isOwn: true, event });
            }
            const crowd = Array.from({ length: runs === 0 ? CROWD : 0 }, (_, index) => ({
              minutes: index % 40,
              owner: 2,
              type: 'MONEY_IN' as const,
            }));
            for (const { minutes, owner, type } of [...theirs, ...crowd]) {
              const event = made({ type, owner, id: owner, key: 0, minutes: 0 }, START + minutes * MINUTE_MS);
              events.push({ at: minutes, isOwn: false, event });
            }
            events.sort((one, other) => one.at - other.at);
            // What is sent at once has no order; the order of its own events is the same in both logs.
            let crowded: Promise<unknown>[] = [];
            for (const { isOwn, event } of events) {
              if (isOwn || crowded.length === 100) {
                await Promise.all(crowded);
                crowded = [];
              }
              if (isOwn) await Promise.all([log.append(among, event), log.append(alone, event)]);
              else crowded.push(log.append(among, event));
            }
            await Promise.all(crowded);
            const reads = sealedReads(log, CUSTOMER);
            /** All that a caller is shown, page by page; cursors as the events that they stand for. */
            const told = async (client: string, search: SomeSearch): Promise<unknown> => {
              const context = contextOf(reads, client, CUSTOMER);
              const answers: unknown[] = [];
              const { isBack, size } = search;
              for (let cursor: string | null = null; answers.length <= mine.length; ) {
                const way = isBack ? { last: size, before: cursor } : { first: size, after: cursor };
                const page = await eventPage({ ...argumentsOf(search), ...way }, anew(context));
                const { hasNextPage, hasPreviousPage, startCursor, endCursor } = page.pageInfo;
                const nameOf = (given: string | null) =>
                  page.nodes.findIndex((node) => node.cursor === given);
                const ids = page.nodes.map(({ id }) => id);
                answers.push([
                  ids,
                  hasNextPage,
                  hasPreviousPage,
                  nameOf(startCursor),
                  nameOf(endCursor),
                  startCursor === null,
                  endCursor === null,
                ]);
                if (!(isBack ? hasPreviousPage : hasNextPage)) break;
                cursor = isBack ? startCursor : endCursor;
              }
              return [answers, await reachesBackTo(anew(context))];
            };
            for (const search of searches) {
              const minutes = {
                ...search,
                size: Math.max(1, search.size % 5),
                from: search.from === null ? null : Math.abs(search.from) % 45,
                lasts: search.lasts === null ? null : search.lasts % 30,
              };
              const wanted = { ...minutes, lasts: minutes.lasts === 0 ? 1 : minutes.lasts };
              expect(await told(among, wanted), JSON.stringify(argumentsOf(wanted))).toEqual(
                await told(alone, wanted),
              );
            }
            runs += 1;
            await log.stop();
          },
        ),
        { numRuns: 4 },
      );
    });

    it('passes over what is not of a search', async () => {
      const log = await openLog();
      const client = randomUUID();
      const rare = made({ type: 'CEP', owner: 0, id: 3, key: 2, minutes: 0 }, START + 2_000 * MINUTE_MS);
      const others = async (minutes: number): Promise<void> => {
        const receivedAt = new Date(START + minutes * MINUTE_MS).toISOString();
        for (let sent = 0; sent < 1_100; sent += 100) {
          const some = Array.from({ length: 100 }, () => ({ ...moneyIn(), receivedAt }));
          await Promise.all(some.map((event) => log.append(client, event)));
        }
      };
      await others(1);
      await log.append(client, rare);
      await others(2);
      // Until the index holds all of it, the log is read from one end.
      await until(async () => {
        const { events } = await log.readAfter(client, null, 50, { name: 'a name that no event has' });
        return events.length === 0;
      });
      for (const name of eventNames(unplaced(rare))) {
        for (const read of ['readAfter', 'readBefore'] as const) {
          const page = await log[read](client, null, 50, { name });
          expect(page).toMatchObject({ events: [{ id: rare.id }], hasMore: false });
          expect(await log[read](client, null, 50, { name: `${name}0` })).toEqual({
            events: [],
            hasMore: false,
          });
          const late = { name, receivedFrom: START + 2_001 * MINUTE_MS };
          expect(await log[read](client, null, 50, late)).toEqual({ events: [], hasMore: false });
        }
      }
      const moment = { receivedFrom: START + MINUTE_MS, receivedTo: START + MINUTE_MS + 1 };
      expect(await log.readAfter(client, null, 50, moment)).toEqual(await log.readAfter(client, null, 50));
      // Beside it, only the event from which the search goes on may be shown.
      const around = await log.readAfter(client, null, 2_000, { receivedFrom: START + 3 * MINUTE_MS });
      expect(around.events.map(({ id }) => id)).toContain(rare.id);
      expect(around.events.length).toBeLessThanOrEqual(2);
      expect(around.hasMore).toBe(false);
      expect(await log.readAfter(client, null, 50, { receivedTo: START })).toEqual({
        events: [],
        hasMore: false,
      });
    });

    it('goes past events of another time among which it can skip none, and shows hardly any', async () => {
      const log = await openLog();
      const client = randomUUID();
      const sentAt = (minutes: number): NewEvent => ({
        ...moneyIn(),
        receivedAt: new Date(START + minutes * MINUTE_MS).toISOString(),
      });
      const wanted = sentAt(50);
      for (let sent = 0; sent < 1_100; sent += 100) {
        const some = Array.from({ length: 99 }, () => sentAt(1));
        const between = sent === 700 ? [sentAt(100), wanted] : [sentAt(100)];
        await Promise.all([...some, ...between].map((event) => log.append(client, event)));
      }
      const search = { receivedFrom: START + 40 * MINUTE_MS, receivedTo: START + 60 * MINUTE_MS };
      await until(async () => (await log.readAfter(client, null, 2_000, search)).events.length < 100);
      for (const read of ['readAfter', 'readBefore'] as const) {
        const shown: string[] = [];
        let [steps, cursor, hasMore]: [number, string | null, boolean] = [0, null, true];
        while (hasMore) {
          const page: EventPage = await log[read](client, cursor, 10, search);
          shown.push(...page.events.map(({ id }) => id));
          cursor = page.events.at(read === 'readAfter' ? -1 : 0)?.cursor ?? cursor;
          hasMore = page.hasMore;
          steps += 1;
        }
        expect(shown.filter((id) => id === wanted.id)).toHaveLength(1);
        expect(shown.length).toBeLessThanOrEqual(steps + 1);
        expect(steps).toBeLessThanOrEqual(10);
      }
    });

    it('says how far back it reaches, to a narrowed caller by its own credits alone', async () => {
      const log = await openLog({ retention: 3 });
      const client = randomUUID();
      const [whole, narrowed] = [
        contextOf(log, client),
        contextOf(sealedReads(log, CUSTOMER), client, CUSTOMER),
      ];
      expect([await reachesBackTo(whole), await reachesBackTo(narrowed)]).toEqual([null, null]);
      const send = (owner: number, minutes: number) =>
        log.append(
          client,
          made({ type: 'MONEY_IN', owner, id: 0, key: 0, minutes }, START + minutes * MINUTE_MS),
        );
      const at = (minutes: number): string => new Date(START + minutes * MINUTE_MS).toISOString();
      for (const [owner, minutes] of [
        [0, 1],
        [1, 2],
        [0, 3],
      ] as const)
        await send(owner, minutes);
      expect([await reachesBackTo(whole), await reachesBackTo(narrowed)]).toEqual([at(1), at(2)]);
      await send(0, 4);
      expect([await reachesBackTo(whole), await reachesBackTo(narrowed)]).toEqual([at(2), at(2)]);
      await send(0, 5);
      expect([await reachesBackTo(whole), await reachesBackTo(narrowed)]).toEqual([at(3), null]);
    });

    it('never says that it reaches back to before it began, as others of that time were lost with the log before', async () => {
      const log = await openLog();
      const client = randomUUID();
      const sendAt = (receivedAt: number) =>
        log.append(client, { ...moneyIn(), receivedAt: new Date(receivedAt).toISOString() });
      await log.head(client);
      await sendAt(BEGUN - MINUTE_MS);
      expect(await log.wholeSince(client)).toBe(BEGUN);
      await sendAt(START);
      expect(await log.wholeSince(client)).toBe(BEGUN);
    });

    it('keeps what one client has, and finds it by its time, whatever another one fills and gives up', async () => {
      const log = await openLog({ retention: 10, retentionBytes: 6_000 });
      const [quiet, busy] = [randomUUID(), randomUUID()];
      const large = () => moneyIn({ payload: JSON.stringify({ filler: 'x'.repeat(2_000) }) });
      const sent = [large(), large()];
      for (const event of sent) await log.append(quiet, event);
      const found = async () =>
        (await log.readAfter(quiet, null, 10, { receivedFrom: 0 })).events.map(({ id }) => id);
      expect(await found()).toEqual(sent.map(({ id }) => id));
      await log.append(busy, large());
      // More than the index keeps the times of in one piece.
      for (let count = 0; count < BLOCK + 20; count += 1) await log.append(busy, moneyIn());
      expect(await found()).toEqual(sent.map(({ id }) => id));
      const last = large();
      await log.append(busy, large());
      await log.append(quiet, { ...last, payload: '{}' });
      expect(await found()).toEqual([...sent, last].map(({ id }) => id));
      await log.stop();
    });

    it('does not reach back to what it has given up, though what it gave up after that is older', async () => {
      const log = await openLog({ retention: 1 });
      const client = randomUUID();
      const latest = START + 10 * MINUTE_MS;
      for (const receivedAt of [latest, START, START + MINUTE_MS, START + 2 * MINUTE_MS]) {
        await log.append(client, { ...moneyIn(), receivedAt: new Date(receivedAt).toISOString() });
        if (receivedAt !== latest) expect(await log.wholeSince(client)).toBe(latest + 1);
      }
      await log.stop();
    });

    it('never says that it reaches further back than it holds: late ones, trimmed by number and by bytes', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(someEvent, { minLength: 1, maxLength: 80, size: 'max' }),
          fc.constantFrom({ retention: 10 }, { retention: 40 }, { retentionBytes: 6_000 }),
          async (events, bounds) => {
            const client = randomUUID();
            const sent: NewEvent[] = [];
            const check = async (log: EventLog): Promise<void> => {
              const held = new Set((await readAll(log, client)).map(({ id }) => id));
              const whole = await reachesBackTo(contextOf(log, client));
              const narrowed = await reachesBackTo(contextOf(sealedReads(log, CUSTOMER), client, CUSTOMER));
              if (whole === null) throw new Error('the log holds an event');
              const isOwn = isOf({ types: ['MONEY_IN'] }, true);
              for (const event of sent) {
                if (event.receivedAt >= whole) expect(held).toContain(event.id);
                if (narrowed === null || event.receivedAt < narrowed) continue;
                if (isOwn(unplaced(event))) expect(held).toContain(event.id);
              }
              if (held.size === sent.length) expect(whole).toBe(sent[0]?.receivedAt);
            };
            const log = await openLog(bounds);
            let now = START;
            for (const [index, event] of events.entries()) {
              const isLate = event.minutes < 0 || event.minutes > 1;
              if (!isLate) now += event.minutes * MINUTE_MS;
              const next = made(event, isLate ? now + event.minutes * MINUTE_MS : now);
              sent.push(next);
              await log.append(client, next);
              if (index % 7 === 0) await check(log);
            }
            await check(log);
            await log.stop();
          },
        ),
        { numRuns: 6 },
      );
    });

    it('keeps so many bytes as it may, the newest event whatever it takes, and tells what was given up', async () => {
      const log = await openLog({ retentionBytes: 10_000 });
      const client = randomUUID();
      const large = (bytes: number) =>
        moneyIn({ payload: JSON.stringify({ body: { id: IDS[0], amount: 'ñ'.repeat(bytes / 2) } }) });
      const held = async () => (await readAll(log, client)).map(({ id }) => id);
      const sent: string[] = [];
      const send = async (bytes: number) => {
        const event = large(bytes);
        sent.push(event.id);
        return (await log.append(client, event)).cursor;
      };
      const first = await send(3_000);
      for (const bytes of [3_000, 2_000]) await send(bytes);
      expect(await held()).toEqual(sent);
      await send(3_000);
      expect(await held()).toEqual(sent.slice(1));
      await expect(log.readAfter(client, first, 10)).resolves.toMatchObject({ hasMore: false });
      await send(9_000);
      expect(await held()).toEqual(sent.slice(4));
      const search = { name: eventNames(await newest(log, client))[0] };
      for (const how of [undefined, search]) {
        await expect(log.readAfter(client, first, 10, how)).rejects.toThrow(EventsGapError);
      }
      await send(30_000);
      expect(await held()).toEqual(sent.slice(5));
      expect((await log.readAfter(client, null, 10, search)).events.map(({ id }) => id)).toEqual(
        sent.slice(5),
      );
    });

    it('tells a gap, and refuses a stranger’s cursor, as without a search', async () => {
      const log = await openLog({ retention: 3 });
      const client = randomUUID();
      const search = { receivedFrom: 0 };
      const start = await log.head(client);
      expect(await log.readAfter(client, start, 5, search)).toEqual({ events: [], hasMore: false });
      const cursors: string[] = [];
      for (let sent = 0; sent < 6; sent += 1)
        cursors.push((await log.append(client, moneyIn())).cursor ?? '');
      for (const cursor of [start, ...cursors]) {
        for (const read of ['readAfter', 'readBefore'] as const) {
          const [plain, searched] = await Promise.all(
            [undefined, search].map((how) =>
              log[read](client, cursor, 2, how).catch((error: unknown) => {
                if (!(error instanceof EventsGapError)) throw error;
                return 'a gap';
              }),
            ),
          );
          expect(searched).toEqual(plain);
        }
      }
      await expect(log.readAfter(client, 'x', 5, search)).rejects.toThrow(CursorInvalidError);
    });
  });
}

async function newest(log: EventLog, client: string): Promise<StoredEvent> {
  const [event] = (await log.readBefore(client, null, 1)).events;
  if (event === undefined) throw new Error('the log holds an event');
  return event;
}
