import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openEventLog } from '../../../src/events/open.ts';
import { type SightedLog, Sightings } from '../../../src/resolvers/payments/sightings.ts';
import { available, moneyIn, recordingLogger } from '../../helpers/events.ts';
import { CLIENT_ID } from '../../helpers/http-stub.ts';
import { PatientLog } from '../../helpers/patient-log.ts';
import { startRedis } from '../../helpers/redis.ts';

const SECOND = 1_000;

/** An index finds events by their time in blocks of positions: so many lie between two that are told apart. */
const BETWEEN = 600;

/** A log of events that name one transaction each, `count` of them, ten seconds apart, until now, with others between them. */
async function openLog(count: number) {
  const stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-sightings-'));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const log = await openEventLog({ dataDir, retention: 10_000, logger: recordingLogger() });
  stack.defer(() => log.stop());
  await available(log);
  const now = Date.now();
  const named: { readonly id: string; readonly at: number }[] = [];
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID();
    const at = now - (count - index) * 10 * SECOND;
    const payload = JSON.stringify({ transaction: id });
    const receivedAt = new Date(at).toISOString();
    await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload, receivedAt }));
    const others = Array.from({ length: BETWEEN }, () => moneyIn({ payload: '{"body":{}}', receivedAt }));
    await Promise.all(others.map((event) => log.append(CLIENT_ID, event)));
    named.push({ id, at });
  }
  return { log, now, named, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const idsOf = (found: readonly { readonly id: string }[] | string) =>
  typeof found === 'string' ? found : found.map(({ id }) => id);

it.each([
  { order: 'the latest first', turned: true },
  { order: 'the earliest first', turned: false },
])(
  'looks for several payments that begin at once each see all events since theirs, $order',
  async ({ turned }) => {
    await using made = await openLog(4);
    const { log, now, named } = made;
    const sightings = new Sightings(log, CLIENT_ID);
    const payments = named.map(({ at }, index) => ({ from: at - SECOND, ids: idsOf(named.slice(index)) }));
    if (turned) payments.reverse();
    // Twice: what the first looks left must do for the next ones too.
    for (const at of [now, now + 60 * SECOND]) {
      const found = await Promise.all(payments.map(({ from }) => sightings.since(from, at)));
      expect(found.map(idsOf)).toEqual(payments.map(({ ids }) => ids));
    }
  },
);

it('of looks that have waited for another one alone goes on at a time, so that none begins anew amid its pages', async () => {
  await using made = await openLog(4);
  const { log, now, named } = made;
  let underWay = 0;
  let most = 0;
  const sightings = new Sightings(
    {
      async readAfter(...asked) {
        underWay += 1;
        most = Math.max(most, underWay);
        const page = await log.readAfter(...asked);
        underWay -= 1;
        return page;
      },
      givenUpTo: (clientId) => log.givenUpTo(clientId),
    },
    CLIENT_ID,
  );
  const looks = named.toReversed().map(({ at }) => sightings.since(at - SECOND, now));
  expect((await Promise.all(looks)).map((found) => found.length)).toEqual([1, 2, 3, 4]);
  expect(most).toBe(1);
});

it('one look that fails does not keep the next from all events', async () => {
  await using made = await openLog(2);
  const { log, now, named } = made;
  let isAway = true;
  const sightings = new Sightings(
    {
      readAfter: async (...asked) => {
        if (isAway) throw new Error('the log is away');
        return log.readAfter(...asked);
      },
      givenUpTo: (clientId) => log.givenUpTo(clientId),
    },
    CLIENT_ID,
  );
  const [first, second] = named.map(({ at }) => at - SECOND);
  const looks = [second ?? 0, first ?? 0].map((from) => sightings.since(from, now));
  const results = await Promise.allSettled(looks);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  isAway = false;
  expect(idsOf(await sightings.since(first ?? 0, now))).toEqual(idsOf(named));
});

/** A log that keeps two events or so, and gives up older ones. */
async function openShortLog() {
  const stack = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-sightings-'));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const log = await openEventLog({ dataDir, retention: 2, logger: recordingLogger() });
  stack.defer(() => log.stop());
  await available(log);
  const now = Date.now();
  /** An event that names a transaction, so many seconds from now. */
  const name = async (seconds: number, id: string = randomUUID()): Promise<string> => {
    const receivedAt = new Date(now + seconds * SECOND).toISOString();
    const payload = JSON.stringify({ transaction: id });
    await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload, receivedAt }));
    return id;
  };
  /** Names more and more, until the log has given up an event of this time or later. */
  const giveUp = async (seconds: number): Promise<void> => {
    for (let later = seconds; ((await log.givenUpTo(CLIENT_ID)) ?? 0) < now + seconds * SECOND; later += 1)
      await name(later);
  };
  return { log, now, name, giveUp, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

it('a log that has given up events since a time is not asked what came since, and one that has just begun is', async () => {
  await using made = await openShortLog();
  const { log, now, name, giveUp } = made;
  expect(await log.givenUpTo(CLIENT_ID)).toBeNull();
  const young = new Sightings(log, CLIENT_ID);
  expect(await young.since(now - SECOND, now)).toEqual([]);
  const id = await name(0);
  expect(idsOf(await young.since(now - SECOND, now + SECOND))).toEqual([id]);
  await giveUp(10);
  const late = new Sightings(log, CLIENT_ID);
  expect(await late.since(now - SECOND, now + 60 * SECOND)).toBe('given-up');
  const newest = await name(1_000);
  expect(idsOf(await late.since(now + 999 * SECOND, now + 61 * SECOND))).toEqual([newest]);
});

it('what the log gives up while it is first read leaves it not whole', async () => {
  await using made = await openShortLog();
  const { log, now, name, giveUp } = made;
  await name(0);
  const sightings = new Sightings(
    {
      readAfter: async (...asked) => {
        await giveUp(10);
        return log.readAfter(...asked);
      },
      givenUpTo: (clientId) => log.givenUpTo(clientId),
    },
    CLIENT_ID,
  );
  expect(await sightings.since(now - SECOND, now)).toBe('given-up');
});

it('what was read before the log gave it up stays known, also where an earlier payment asks for more than the log holds', async () => {
  await using made = await openShortLog();
  const { log, now, name, giveUp } = made;
  await giveUp(0);
  const sightings = new Sightings(log, CLIENT_ID);
  const begun = now + 1_000 * SECOND;
  const ids = [await name(1_001)];
  expect(idsOf(await sightings.since(begun, now))).toEqual(ids);
  for (let second = 1_002; ((await log.givenUpTo(CLIENT_ID)) ?? 0) < begun; second += 1) {
    ids.push(await name(second));
    // Each look reads what has come, before it is given up.
    expect(idsOf(await sightings.since(begun, now + second * SECOND))).toEqual(ids);
  }
  expect(await sightings.since(now - SECOND, now + 2_000 * SECOND)).toBe('given-up');
  expect(idsOf(await sightings.since(begun, now + 2_001 * SECOND))).toEqual(ids);
});

it('what was named before a time is not of the time when it is named again, also once the log has given up where it was named first', async () => {
  await using made = await openShortLog();
  const { log, now, name, giveUp } = made;
  const sightings = new Sightings(log, CLIENT_ID);
  const id = await name(-600);
  expect(await sightings.since(now, now)).toEqual([]);
  await giveUp(-500);
  expect(await sightings.since(now, now + SECOND)).toEqual([]);
  await name(60, id);
  expect(await sightings.since(now, now + 61 * SECOND)).toEqual([]);
  const own = await name(61);
  expect(idsOf(await sightings.since(now, now + 62 * SECOND))).toEqual([own]);
});

/** A log in Redis, and what names a transaction in it, so many seconds from now. */
async function openRedisLog() {
  const stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const dataDir = await mkdtemp(join(tmpdir(), 'pasarela-sightings-'));
  stack.defer(() => rm(dataDir, { recursive: true }));
  const logger = recordingLogger();
  const log = new PatientLog(await openEventLog({ redisUrl: redis.url, dataDir, retention: 100, logger }));
  stack.defer(() => log.stop());
  await available(log);
  const now = Date.now();
  const name = async (seconds: number, id: string = randomUUID()): Promise<string> => {
    const receivedAt = new Date(now + seconds * SECOND).toISOString();
    const payload = JSON.stringify({ transaction: id });
    await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload, receivedAt }));
    return id;
  };
  return { redis, log, now, name, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

it('what a later event of the log names was named when that was received, as the log may have been away meanwhile', async () => {
  await using made = await openLog(0);
  const { log, now } = made;
  const [twice, once] = [randomUUID(), randomUUID()];
  const name = (id: string, at: number) =>
    log.append(
      CLIENT_ID,
      moneyIn({
        type: 'STATUS_UPDATE',
        payload: JSON.stringify({ transaction: id }),
        receivedAt: new Date(at).toISOString(),
      }),
    );
  for (const id of [twice, once]) await name(id, now - SECOND);
  await name(twice, now - 5 * SECOND);
  const sightings = new Sightings(log, CLIENT_ID);
  expect(idsOf(await sightings.since(now - 2 * SECOND, now))).toEqual([once]);
});

it('what was named before a time is not of the time when it is named again, over Redis', async () => {
  await using made = await openRedisLog();
  const { log, now, name } = made;
  const earlier = await name(-600);
  await name(60, earlier);
  const own = await name(61);
  expect(idsOf(await new Sightings(log, CLIENT_ID).since(now, now + 62 * SECOND))).toEqual([own]);
});

it('a log that Redis has evicted shows nothing of the time before, and all that comes after', async () => {
  await using made = await openRedisLog();
  const { redis, log, now, name } = made;
  await name(60);
  const before = new Sightings(log, CLIENT_ID);
  expect(await before.since(now, now + 61 * SECOND)).toHaveLength(1);
  const evict = () => redis.admin.del(`{${CLIENT_ID}}:log`);
  await name(61);
  await evict();
  // One that knows the log, and one of a process that has just begun.
  const both = [before, new Sightings(log, CLIENT_ID)];
  for (const sightings of both) expect(await sightings.since(now, now + 62 * SECOND)).toBe('given-up');
  for (const sightings of both)
    expect(await sightings.since(now + 70 * SECOND, now + 80 * SECOND)).toEqual([]);
  const own = await name(81);
  for (const sightings of both) {
    expect(idsOf(await sightings.since(now + 70 * SECOND, now + 90 * SECOND))).toEqual([own]);
    expect(await sightings.since(now, now + 91 * SECOND)).toBe('given-up');
  }
});

it('ids that were dropped leave nothing certain of the times whose ids could be among them', async () => {
  await using made = await openLog(0);
  const { log, now } = made;
  const hour = 3_600 * SECOND;
  const name = async (at: number, ids: readonly string[]): Promise<void> => {
    const receivedAt = new Date(at).toISOString();
    await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload: JSON.stringify(ids), receivedAt }));
  };
  await name(now - 5 * hour, [randomUUID()]);
  for (let events = 0; events < 250; events += 1)
    await name(
      now - hour,
      Array.from({ length: 240 }, () => randomUUID()),
    );
  const sightings = new Sightings(log, CLIENT_ID);
  expect(await sightings.since(now - 2 * hour, now)).toBe('too-many');
  expect(await sightings.since(now, now)).toEqual([]);
});

it('reads on where the clock was set back since', async () => {
  await using made = await openLog(1);
  const { log, now, named } = made;
  const sightings = new Sightings(log, CLIENT_ID);
  const from = (named[0]?.at ?? 0) - SECOND;
  expect(idsOf(await sightings.since(from, now))).toEqual(idsOf(named));
  const id = randomUUID();
  const payload = JSON.stringify({ transaction: id });
  const receivedAt = new Date(now).toISOString();
  await log.append(CLIENT_ID, moneyIn({ type: 'STATUS_UPDATE', payload, receivedAt }));
  expect(idsOf(await sightings.since(from, now - 3_600 * SECOND))).toEqual([...idsOf(named), id]);
});

it('a log that is read without waiting, as from a file, lets others have their turn after each page', async () => {
  const now = Date.now();
  const receivedAt = new Date(now).toISOString();
  const pages = 20;
  const stored = { id: 'id', type: 'CEP', receivedAt, payload: {} };
  const log: SightedLog = {
    async readAfter(_client, cursor) {
      const page = Number(cursor ?? 0) + 1;
      return { events: [{ ...stored, cursor: String(page) }], hasMore: page < pages };
    },
    givenUpTo: async () => null,
  };
  let turns = 0;
  let isRead = false;
  const everyTurn = () => {
    turns += 1;
    if (!isRead) setImmediate(everyTurn);
  };
  setImmediate(everyTurn);
  await new Sightings(log, CLIENT_ID).since(now - SECOND, now);
  isRead = true;
  expect(turns).toBeGreaterThanOrEqual(pages - 1);
});
