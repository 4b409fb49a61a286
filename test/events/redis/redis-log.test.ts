import { randomUUID } from 'node:crypto';
import { cp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { newEpoch } from '../../../src/events/cursor.ts';
import { encodeEvent } from '../../../src/events/entry.ts';
import {
  CursorInvalidError,
  EventsGapError,
  OtherHistoryError,
  StoreUnavailableError,
} from '../../../src/events/errors.ts';
import type { EventLog } from '../../../src/events/log.ts';
import type { EventMetrics } from '../../../src/events/metrics.ts';
import { redisKeys, seenKey } from '../../../src/events/redis/keys.ts';
import { RedisLog } from '../../../src/events/redis/redis-log.ts';
import { APPEND, historyOf } from '../../../src/events/redis/scripts.ts';
import { sealedReads } from '../../../src/events/sealed-reads.ts';
import { digestOf, type EventNames, MARK } from '../../../src/events/search.ts';
import { runScript } from '../../../src/redis/script.ts';
import { countingMetrics, failure, ids, moneyIn, recordingLogger, take } from '../../helpers/events.ts';
import { PatientLog } from '../../helpers/patient-log.ts';
import { DURABLE, type RedisServer, startRedis } from '../../helpers/redis.ts';
import { until } from '../../helpers/until.ts';
import { describeEventLog } from '../log.contract.ts';
import { describeSearch } from '../search.contract.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

interface Options {
  readonly redisUrl: string;
  readonly retention?: number;
  readonly retentionBytes?: number | undefined;
  readonly names?: EventNames;
  readonly metrics?: EventMetrics;
  readonly logger?: ReturnType<typeof recordingLogger>;
  readonly now?: () => number;
}

const openRedisLog = async (options: Options): Promise<RedisLog> => {
  const log = new RedisLog({
    retention: 1000,
    logger: recordingLogger(),
    metrics: countingMetrics(),
    now: Date.now,
    ...options,
  });
  await log.settled();
  return log;
};

/** For tests of what the log answers, not of when. */
const open = async (options: Options): Promise<EventLog> => new PatientLog(await openRedisLog(options));

describeEventLog('the log in Redis', ({ retention, metrics }) =>
  openRedisLog({ redisUrl: redis.url, retention, metrics }),
);

describeSearch('the log in Redis', (options) => openRedisLog({ redisUrl: redis.url, ...options }));

describe('an index in Redis that lacks events', () => {
  const names: EventNames = ({ id }) => [id];
  /** What a search by name gives, page by page. */
  const search = async (log: EventLog, client: string, name: string): Promise<string[]> => {
    const found: string[] = [];
    let cursor: string | null = null;
    for (let hasMore = true; hasMore; ) {
      const page = await log.readAfter(client, cursor, 40, { name });
      found.push(...ids(page.events));
      cursor = page.events.at(-1)?.cursor ?? cursor;
      ({ hasMore } = page);
    }
    return found;
  };
  /** Appends to a log that has begun, as a version does that knows nothing of the index; `left` is what it stores beside the event. */
  const appendEarlier = async (
    client: string,
    retention: number,
    left: (id: string) => readonly string[] = () => [],
  ): Promise<{ id: string; position: string }> => {
    const event = moneyIn();
    const [epoch, last] = await redis.admin.hmget(`{${client}}:meta`, 'epoch', 'last');
    const { id, type, receivedAt, payload } = event;
    const stored = JSON.stringify({ id, type, receivedAt, payload: JSON.parse(payload) });
    const fields = ['prev', last ?? epoch ?? '', 'event', stored, ...left(id)];
    const position = await redis.admin.xadd(`{${client}}:log`, 'MAXLEN', '=', retention, '*', ...fields);
    if (position === null) throw new Error('the log is made where there is none');
    await redis.admin.hset(`{${client}}:meta`, 'last', position);
    return { id, position };
  };
  const filled = async (retention: number) => {
    const client = randomUUID();
    const log = await open({ redisUrl: redis.url, retention, names });
    const sent = Array.from({ length: 300 }, () => moneyIn());
    for (const event of sent) await log.append(client, event);
    return { client, log, sent: sent.map(({ id }) => id) };
  };
  const isFoundByIndex = async (log: EventLog, client: string, name: string, id = name) =>
    until(async () => {
      const found = await search(log, client, name);
      expect(found).toContain(id);
      return found.length === 1;
    });

  it.each([
    ['all of it', ['index', 'names', 'indexed']],
    ['what it knows of times', ['index']],
    ['names', ['names']],
    ['the order', ['indexed']],
  ])('was lost, and is made once more: %s', async (_what, lost) => {
    const { client, log, sent } = await filled(1000);
    await redis.admin.del(lost.map((key) => `{${client}}:${key}2`));
    for (const id of [sent[0], sent[299]]) await isFoundByIndex(log, client, id ?? '');
    await log.append(client, moneyIn());
    await isFoundByIndex(log, client, sent[150] ?? '');
    await log.stop();
  });

  it('takes in what processes of an earlier version append meanwhile, and gives up what they trim', async () => {
    const { client, log } = await filled(200);
    const foreign: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      for (let sent = 0; sent < 60; sent += 1) foreign.push((await appendEarlier(client, 200)).id);
      const own = moneyIn();
      await log.append(client, own);
      for (const id of [foreign.at(-1) ?? '', own.id]) await isFoundByIndex(log, client, id);
    }
    await log.append(client, moneyIn());
    await until(async () => {
      const [kept, indexed] = [
        await redis.admin.xlen(`{${client}}:log`),
        await redis.admin.llen(`{${client}}:indexed2`),
      ];
      // One name each, and the mark.
      return kept === 200 && indexed === 200 && (await redis.admin.zcard(`{${client}}:names2`)) === 201;
    });
    await log.stop();
  });

  it('tells the names again that a version beside has not told, and lets go of the index of that version', async () => {
    const client = randomUUID();
    const more: EventNames = ({ id }) => [id, `late ${id}`];
    const log = await open({ redisUrl: redis.url, retention: 1000, names: more });
    await log.head(client);
    const key = (name: string): string => `{${client}}:${name}`;
    /** Appends and enters as the version does that told fewer names. */
    const appendFewer = async (): Promise<string> => {
      const { id, position } = await appendEarlier(client, 1000, (own) => [
        ...['received', String(Date.now()), 'names', digestOf(client, own)],
      ]);
      await redis.admin.rpush(key('indexed'), `${position} 100 ${digestOf(client, id)}`);
      await redis.admin.zadd(key('names'), 0, `${digestOf(client, id)}0`);
      await redis.admin.hset(key('index'), 'last', position);
      return id;
    };
    const before = [await appendFewer()];
    for (let sent = 0; sent < 250; sent += 1) before.push(await appendFewer());
    await isFoundByIndex(log, client, `late ${before[0]}`, before[0]);
    for (const name of ['index', 'names', 'indexed']) {
      expect(await redis.admin.pttl(key(name))).toBeGreaterThan(0);
    }
    // Again, as often as it appends, with what this version appends between.
    for (let round = 0; round < 2; round += 1) {
      const own = moneyIn();
      const foreign = [await appendFewer(), await appendFewer()];
      await log.append(client, own);
      foreign.push(await appendFewer());
      for (const id of [...foreign, own.id, before[250] ?? '']) {
        await isFoundByIndex(log, client, `late ${id}`, id);
        await isFoundByIndex(log, client, id);
      }
    }
    await log.stop();
  });

  it('takes in what appends leave in steps of a hundred, and a search the rest', async () => {
    const { client, log, sent } = await filled(1000);
    await until(async () => (await redis.admin.llen(`{${client}}:indexed2`)) === 300);
    const last = moneyIn();
    await log.append(client, last);
    expect(await redis.admin.llen(`{${client}}:indexed2`)).toBe(300);
    expect(await search(log, client, last.id)).toEqual([last.id]);
    expect(await redis.admin.llen(`{${client}}:indexed2`)).toBe(301);
    expect(await search(log, client, sent[0] ?? '')).toEqual(sent.slice(0, 1));
    await log.stop();
  });

  it.each([
    ['lacks events', []],
    ['was lost in part', ['names']],
  ])('is done without where Redis takes no writes: it %s', async (_what, lost) => {
    const { client, log, sent } = await filled(1000);
    await log.append(client, moneyIn());
    await redis.admin.del(['none', ...lost.map((key) => `{${client}}:${key}2`)]);
    await redis.admin.config('SET', 'min-replicas-to-write', 1);
    try {
      expect(await search(log, client, sent[7] ?? '')).toContain(sent[7]);
    } finally {
      await redis.admin.config('SET', 'min-replicas-to-write', 0);
    }
    await isFoundByIndex(log, client, sent[7] ?? '');
    await log.stop();
  });

  it('is trimmed with the log, whatever it is trimmed by', async () => {
    const { client, log, sent } = await filled(70);
    expect(await search(log, client, sent[299] ?? '')).toEqual(sent.slice(299));
    expect(await redis.admin.llen(`{${client}}:indexed2`)).toBe(70);
    expect(await redis.admin.zcard(`{${client}}:names2`)).toBe(71);
    const small = await open({ redisUrl: redis.url, retention: 70, retentionBytes: 2_000, names });
    for (let added = 0; added < 5; added += 1) await small.append(client, moneyIn());
    const kept = await redis.admin.xlen(`{${client}}:log`);
    expect(kept).toBeLessThan(10);
    expect(await redis.admin.llen(`{${client}}:indexed2`)).toBe(kept);
    expect(await redis.admin.zcard(`{${client}}:names2`)).toBe(kept + 1);
    await Promise.all([log.stop(), small.stop()]);
  });
});

it('an empty log that is known to stay is read where Redis takes no writes', async () => {
  const log = await openRedisLog({ redisUrl: redis.url });
  const client = randomUUID();
  const head = await log.head(client);
  await redis.admin.config('SET', 'min-replicas-to-write', 1);
  try {
    expect(await log.head(client)).toBe(head);
    expect(await log.readAfter(client, head, 10)).toEqual({ events: [], hasMore: false });
  } finally {
    await redis.admin.config('SET', 'min-replicas-to-write', 0);
  }
  await log.stop();
});

it('a log that another version has trimmed never says that it reaches back before what is gone', async () => {
  const log = await open({ redisUrl: redis.url, retention: 2 });
  const client = randomUUID();
  // The second and the third have waited in a spool, and come late.
  const [gone = '', ...later] = [-100, -200, -190, 0].map((seconds) =>
    new Date(Date.now() + 1_000 * seconds).toISOString(),
  );
  for (const receivedAt of [gone, ...later.slice(0, 1)]) await log.append(client, moneyIn({ receivedAt }));
  await redis.admin.xtrim(redisKeys(client).log, 'MAXLEN', 1);
  for (const receivedAt of later.slice(1)) await log.append(client, moneyIn({ receivedAt }));
  expect(await redis.admin.xlen(redisKeys(client).log)).toBe(2);
  expect(await log.wholeSince(client)).toBeGreaterThan(Date.parse(gone));
  await log.stop();
});

it('a log that begins with an event reaches back to its receipt, and one that begins with what waited in a spool does not', async () => {
  const begun = Date.now();
  const log = await openRedisLog({ redisUrl: redis.url, now: () => begun });
  const [first, late] = [begun - 200, begun - 3_600_000];
  const received = (at: number) => moneyIn({ receivedAt: new Date(at).toISOString() });
  const [fresh, after] = [randomUUID(), randomUUID()];
  await log.append(fresh, received(first));
  expect(await log.wholeSince(fresh)).toBe(first);
  await log.appendAll(after, [received(late)]);
  expect(await log.wholeSince(after)).toBe(begun);
  await log.stop();
});

it('events are appended to the history of data that is named, and to no other', async () => {
  const client = randomUUID();
  const log = await openRedisLog({ redisUrl: redis.url });
  const [, replid = ''] = /^master_replid:(\w+)/m.exec(await redis.admin.info('replication')) ?? [];
  const [first, kept, refused] = [moneyIn(), moneyIn(), moneyIn()];
  await log.append(client, first);
  const epoch = (await redis.admin.hget(redisKeys(client).meta, 'epoch')) ?? '';
  await log.appendAll(client, [kept], historyOf(replid, epoch));
  for (const other of [historyOf('f'.repeat(40), epoch), historyOf(replid, newEpoch(0))])
    await expect(log.appendAll(client, [refused], other)).rejects.toThrow(OtherHistoryError);
  expect(ids((await log.readAfter(client, null, 10)).events)).toEqual([first.id, kept.id]);
  await log.stop();
});

it('an event that the channel has not carried is heard of with the next look', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const log = await open({ redisUrl: redis.url });
  const client = randomUUID();
  const heard: string[] = [];
  const stream = await log.follow(client);
  stream.connect({ take: ({ id }) => void heard.push(id), finish: () => undefined });
  for (const _time of [1, 2]) {
    const event = moneyIn();
    const { meta, log: stored, index } = redisKeys(client);
    await runScript(
      redis.admin,
      APPEND,
      [meta, stored, ...index, seenKey(client, event)],
      [
        ...[newEpoch(Date.now()), 1000, 0, 60_000, 'another channel', 'PUBLISH', ''],
        ...[event.contents, encodeEvent(event), '{}', Date.now(), MARK],
      ],
    );
    vi.advanceTimersByTime(10_000);
    await until(() => heard.includes(event.id));
  }
  stream.stop();
  await log.stop();
});

describe('two processes on one Redis', () => {
  const logs: EventLog[] = [];
  const pair = async (metrics = countingMetrics()): Promise<[EventLog, EventLog]> => {
    const two = [await open({ redisUrl: redis.url, metrics }), await open({ redisUrl: redis.url })] as const;
    logs.push(...two);
    return [...two];
  };
  afterEach(() => Promise.all(logs.splice(0).map((log) => log.stop())));

  it('make one event of a message delivered a hundred times at once', async () => {
    const client = randomUUID();
    const both = await pair();
    const event = moneyIn();
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) => both[index % 2 === 0 ? 0 : 1].append(client, event)),
    );
    // None is the first where its answer was late, and it was asked again.
    expect(results.filter((result) => !result.duplicate).length).toBeLessThanOrEqual(1);
    expect(new Set(results.map(({ cursor }) => cursor)).size).toBe(1);
    expect((await both[0].readAfter(client, null, 5)).events).toHaveLength(1);
  });

  it('seal cursors with one key, which is gone when the log is', async () => {
    const client = randomUUID();
    const [one, other] = await pair();
    const keys = await Promise.all([one.sealKey(client), other.sealKey(client), one.sealKey(client)]);
    expect(new Set(keys.map(String)).size).toBe(1);
    expect(await one.sealKey(randomUUID())).not.toEqual(keys[0]);
    await redis.admin.flushall();
    expect(await other.sealKey(client)).not.toEqual(keys[0]);
    expect(await one.sealKey(client)).toEqual(await other.sealKey(client));
  });

  it('answer alike when they decided differently', async () => {
    const client = randomUUID();
    const [one, other] = await pair();
    const event = moneyIn({ spoolable: false });
    const results = await Promise.all([
      one.append(client, { ...event, decision: 'ACCEPTED' }),
      other.append(client, { ...event, decision: 'REJECTED', refundReason: 'no' }),
    ]);
    expect(results[0].answer).toEqual(results[1].answer);
    const { events } = await one.readAfter(client, null, 5);
    expect(events).toHaveLength(1);
    expect(events[0]?.decision === 'REJECTED' ? 422 : 201).toBe(results[0].answer.status);
  });

  it('accept each other’s cursors at once when the log has started over, and only one has noticed', async () => {
    const client = randomUUID();
    const [one, other] = await pair();
    const old = await other.head(client);
    const events = await other.follow(client);
    await redis.admin.del(`{${client}}:meta`, `{${client}}:log`);
    const fresh = await one.head(client);
    const resumed = await other.follow(client, { after: fresh });
    const event = moneyIn();
    await one.append(client, event);
    expect(ids(await take(resumed, 1))).toEqual([event.id]);
    expect(await failure(events)).toBeInstanceOf(EventsGapError);
    await expect(other.follow(client, { after: old })).rejects.toThrow(EventsGapError);
  });

  it('hand on to each other’s followers', async () => {
    const client = randomUUID();
    const [one, other] = await pair();
    const events = await one.follow(client);
    const event = moneyIn();
    await other.append(client, event);
    expect(ids(await take(events, 1))).toEqual([event.id]);
  });

  it('survive a message on the channel that no one can read, and count it', async () => {
    const client = randomUUID();
    const metrics = countingMetrics();
    const [one, other] = await pair(metrics);
    const events = await one.follow(client);
    const channelDecodeError = [
      '',
      'x',
      'a|b|c|d',
      'e|0-0|1-1|{',
      'e|0-0|1-1|{"payload":1}',
      'e|0-0|1-1|null',
      '\u0000|\u0000',
    ];
    for (const message of channelDecodeError) await redis.admin.publish(`{${client}}:events`, message);
    const event = moneyIn();
    await other.append(client, event);
    expect(ids(await take(events, 1))).toEqual([event.id]);
    expect(metrics.counts['channelDecodeError']).toBe(channelDecodeError.length);
  });

  it('settle a false entry by the log, which alone is believed about what follows', async () => {
    const client = randomUUID();
    const [one, other] = await pair();
    const events = await one.follow(client);
    const epoch = await redis.admin.hget(`{${client}}:meta`, 'epoch');
    const stored = '{"id":"false","type":"CEP","receivedAt":"2026-01-01T00:00:00Z","payload":1}';
    await redis.admin.publish(`{${client}}:events`, `${epoch}|5-5|6-6|${stored}`);
    const event = moneyIn();
    await other.append(client, event);
    expect(ids(await take(events, 1))).toEqual([event.id]);
  });
});

describe('a Redis with a replica', () => {
  it('seals cursors with no key that the replica may not have', async () => {
    await using primary = await startRedis([...DURABLE, '--repl-diskless-sync-delay', '0']);
    await using replica = await startRedis();
    await replica.admin.replicaof('127.0.0.1', primary.port);
    await until(async () => (await primary.admin.info('replication')).includes('state=online'));
    const [one, other] = [
      await openRedisLog({ redisUrl: primary.url }),
      await openRedisLog({ redisUrl: primary.url }),
    ];
    const client = randomUUID();
    // Both learn of the replica.
    for (const log of [one, other]) await until(() => log.append(client, moneyIn()).catch(() => undefined));
    replica.freeze();
    // The first one makes the key; the other finds it.
    for (const log of [one, other]) {
      await expect(log.sealKey(client)).rejects.toThrow(StoreUnavailableError);
    }
    replica.thaw();
    const [key] = await until(() =>
      Promise.all([one.sealKey(client), other.sealKey(client)]).catch(() => undefined),
    );
    expect(await replica.admin.hget(`{${client}}:meta`, 'seal')).toBe(key.toString('base64url'));

    // What is known to stay is not proved again.
    replica.freeze();
    expect(await one.sealKey(client)).toEqual(key);
    expect(await other.sealKey(client)).toEqual(key);
    await Promise.all([one.stop(), other.stop()]);
  });
});

describe('a Redis that comes back', () => {
  it('is available once every question can be asked, and not before', async () => {
    await using own = await startRedis();
    const log = await openRedisLog({ redisUrl: own.url });
    const client = randomUUID();
    const appended: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      await own.kill();
      await until(async () => !(await log.health()).available);
      await own.start();
      await until(async () => (await log.health()).available);
      const event = moneyIn({ spoolable: false });
      const events = await log.follow(client);
      await log.append(client, event);
      appended.push(event.id);
      expect(ids(await take(events, 1))).toEqual([event.id]);
      expect(ids((await log.readAfter(client, null, 20)).events)).toEqual(appended);
      await events.return?.();
    }
    await log.stop();
  });
});

describe('a Redis that lost what it held', () => {
  it('ends followers with a gap when it was flushed, and they start again', async () => {
    const client = randomUUID();
    await using own = await startRedis();
    const log = await open({ redisUrl: own.url });
    const empty = await log.head(client);
    const live = await log.follow(client);
    await log.append(client, moneyIn());
    const [seen] = await take(live, 1);
    await own.admin.flushall();
    const event = moneyIn();
    await log.append(client, event);
    const error = await failure(live);
    expect(error).toBeInstanceOf(EventsGapError);
    for (const after of [seen?.cursor, empty]) {
      await expect(log.follow(client, { after })).rejects.toThrow(EventsGapError);
      await expect(log.readAfter(client, after ?? '', 5)).rejects.toThrow(EventsGapError);
    }
    const again = await log.follow(client, { after: (error as EventsGapError).oldest });
    expect(ids(await take(again, 1))).toEqual([event.id]);
    await log.stop();
  });

  it('tells readers that were ahead of an earlier copy to which it was put back, however much came since', async () => {
    const client = randomUUID();
    await using own = await startRedis();
    const log = await open({ redisUrl: own.url });
    const append = async (count: number): Promise<string> => {
      let cursor: string | null = null;
      for (let made = 0; made < count; made += 1) ({ cursor } = await log.append(client, moneyIn()));
      return cursor ?? '';
    };
    const copied = await append(5);
    const [kept, copy] = [join(own.dir, 'appendonlydir'), join(own.dir, 'copy')];
    // Each answer was on disk before it came.
    await cp(kept, copy, { recursive: true });
    const ahead = await append(5);
    const live = await log.follow(client, { after: copied });
    await take(live, 5);
    await own.kill();
    await rm(kept, { recursive: true });
    await rename(copy, kept);
    await own.start();
    await until(async () => (await log.health()).available);

    const isTold = async () => {
      await expect(log.readAfter(client, ahead, 100)).rejects.toThrow(EventsGapError);
      await expect(log.readBefore(client, ahead, 100)).rejects.toThrow(EventsGapError);
      await expect(log.follow(client, { after: ahead })).rejects.toThrow(EventsGapError);
    };
    expect(await failure(live)).toBeInstanceOf(EventsGapError);
    await isTold();
    await append(10);
    await isTold();
    // Who was not ahead goes on.
    expect((await log.readAfter(client, copied, 100)).events).toHaveLength(10);
    await log.stop();
  });

  it('ends a replay with a gap when an entry in the middle is gone', async () => {
    const client = randomUUID();
    const log = await open({ redisUrl: redis.url });
    const start = await log.head(client);
    for (let count = 0; count < 5; count += 1) await log.append(client, moneyIn());
    const rows = await redis.admin.xrange(`{${client}}:log`, '-', '+');
    await redis.admin.xdel(`{${client}}:log`, rows[2]?.[0] ?? '');
    await expect(log.readAfter(client, start, 10)).rejects.toThrow(EventsGapError);
    await expect(log.readAfter(client, start, 2)).resolves.toMatchObject({ hasMore: true });
    await expect(log.readBefore(client, null, 10)).rejects.toThrow(EventsGapError);
    await redis.admin.xdel(`{${client}}:log`, rows[4]?.[0] ?? '');
    await expect(log.readBefore(client, null, 1)).rejects.toThrow(EventsGapError);
    await log.stop();
  });

  it('goes on behind an event that was trimmed by hand, as docs/personal-data.md does', async () => {
    const client = randomUUID();
    const log = await open({ redisUrl: redis.url, names: ({ id }) => [id] });
    const start = await log.head(client);
    const meant = moneyIn();
    await log.append(client, moneyIn());
    const { cursor } = await log.append(client, meant);
    const left = [await log.append(client, moneyIn()), await log.append(client, moneyIn())];
    expect((await log.readAfter(client, null, 10, { name: meant.id })).events).toHaveLength(1);
    const id = Buffer.from(String(cursor), 'base64').toString().split('|').at(-1);
    const [behind] = await redis.admin.xrange(`{${client}}:log`, `(${id}`, '+', 'COUNT', 1);
    expect(await redis.admin.xtrim(`{${client}}:log`, 'MINID', behind?.[0] ?? '')).toBe(2);

    expect((await log.readAfter(client, null, 10, { name: meant.id })).events).toEqual([]);
    await expect(log.readAfter(client, start, 10)).rejects.toThrow(EventsGapError);
    const { events } = await log.readAfter(client, String(cursor), 10);
    expect(events.map((event) => event.cursor)).toEqual(left.map((event) => event.cursor));
    expect((await log.readBefore(client, null, 10)).events).toHaveLength(2);
    await log.stop();
  });
});

describe('a Redis that lost a log, and not what it knows of it', () => {
  const LOST = { gap: { reason: 'lost' } };
  const lose = async (retention: number) => {
    const log = await open({ redisUrl: redis.url, retention, names: ({ id }) => [id] });
    const client = randomUUID();
    const cursors: string[] = [];
    for (let count = 0; count < 5; count += 1)
      cursors.push(String((await log.append(client, moneyIn())).cursor));
    // As an eviction does.
    await redis.admin.del(`{${client}}:log`);
    return { log, client, cursors };
  };

  it.each([1_000, 3])(
    'tells readers that events are lost, also those without a cursor (it keeps %i)',
    async (retention) => {
      const { log, client, cursors } = await lose(retention);
      for (const search of [undefined, { name: 'any' }, { receivedFrom: 0 }]) {
        for (const cursor of [null, cursors[0] ?? '', cursors[3] ?? '']) {
          await expect(log.readAfter(client, cursor, 5, search)).rejects.toMatchObject(LOST);
          await expect(log.readBefore(client, cursor, 5, search)).rejects.toMatchObject(LOST);
        }
        // Who has read all of it goes on.
        expect(await log.readAfter(client, cursors[4] ?? '', 5, search)).toEqual({
          events: [],
          hasMore: false,
        });
      }
      await expect(log.follow(client, { after: cursors[3] ?? '' })).rejects.toMatchObject(LOST);
      await log.stop();
    },
  );

  it('gives them where to start again, before and after an event comes', async () => {
    const { log, client, cursors } = await lose(1_000);
    const told = await log.readAfter(client, null, 5).catch((thrown: unknown) => thrown);
    if (!(told instanceof EventsGapError)) throw new Error('a gap is told', { cause: told });
    const live = await log.follow(client, { after: told.oldest });
    for (const after of [told.oldest, told.head])
      expect((await log.readAfter(client, after, 5)).events).toEqual([]);
    const event = moneyIn();
    await log.append(client, event);
    expect(ids(await take(live, 1))).toEqual([event.id]);
    for (const after of [null, told.oldest, told.head, cursors[4] ?? ''])
      expect(ids((await log.readAfter(client, after, 5)).events)).toEqual([event.id]);
    await expect(log.readAfter(client, cursors[3] ?? '', 5)).rejects.toThrow(EventsGapError);
    await live.return?.();
    await log.stop();
  });

  it('still recognises the messages of the lost events: a redelivery gets the first answer, and no reader an event', async () => {
    const log = await openRedisLog({ redisUrl: redis.url });
    const client = randomUUID();
    const accepted = moneyIn();
    const refused = moneyIn({ decision: 'REJECTED', refundReason: 'closed', spoolable: false });
    await log.appendAll(client, [accepted, refused]);
    // It has read all, so no gap is told to it: an event that came again would be a repeat.
    const live = await log.follow(client, { after: await log.head(client) });
    await redis.admin.del(`{${client}}:log`);
    expect(await log.append(client, accepted)).toMatchObject({ duplicate: true, answer: { status: 201 } });
    const rejection = { status: 422, refundReason: 'closed' };
    expect(await log.recall(client, refused)).toMatchObject({ duplicate: true, answer: rejection });
    const next = moneyIn();
    await log.append(client, next);
    expect(ids(await take(live, 1))).toEqual([next.id]);
    expect(ids((await log.readAfter(client, null, 5)).events)).toEqual([next.id]);
    await live.return?.();
    await log.stop();
  });

  it('tells nobody of a loss where no event has come yet', async () => {
    const log = await open({ redisUrl: redis.url });
    const client = randomUUID();
    await log.head(client);
    for (const search of [undefined, { name: 'any' }])
      expect(await log.readAfter(client, null, 5, search)).toEqual({ events: [], hasMore: false });
    await log.stop();
  });
});

describe('a Redis that lost what it knows of a log, and not the log', () => {
  const begun = async (retention: number, count: number) => {
    const log = await open({ redisUrl: redis.url, retention });
    const client = randomUUID();
    const sent = Array.from({ length: count }, () => moneyIn());
    const cursors: string[] = [];
    for (const event of sent) cursors.push(String((await log.append(client, event)).cursor));
    await redis.admin.del(`{${client}}:meta`);
    return { log, client, sent: sent.map(({ id }) => id), cursors };
  };

  it('goes on where it was as long as the first event is there', async () => {
    const { log, client, sent, cursors } = await begun(1000, 3);
    const later = moneyIn();
    await log.append(client, later);
    const { events } = await log.readAfter(client, cursors[0] ?? '', 100);
    expect(ids(events)).toEqual([...sent.slice(1), later.id]);
    await log.stop();
  });

  it.each([1000, 3])(
    'seals by another key: a narrowed caller’s cursor names nothing, and each event has another (it keeps %i)',
    async (retention) => {
      const { log, client, sent } = await begun(retention, 5);
      const narrowed = sealedReads(log, 'a customer');
      const before = (await narrowed.readAfter(client, null, 100)).events;
      await redis.admin.del(`{${client}}:meta`);
      await expect(narrowed.readAfter(client, before[0]?.cursor ?? '', 100)).rejects.toThrow(
        CursorInvalidError,
      );
      const after = (await narrowed.readAfter(client, null, 100)).events;
      expect(ids(after)).toEqual(sent.slice(-retention));
      for (const [index, { cursor }] of after.entries()) expect(cursor).not.toBe(before[index]?.cursor);
      await log.stop();
    },
  );

  it.each(['read', 'appended to', 'asked for what it knows'])(
    'tells a gap otherwise, and where to start again, whatever happens first: %s',
    async (how) => {
      const { log, client, sent, cursors } = await begun(3, 5);
      const known = moneyIn();
      if (how === 'appended to') await log.append(client, known);
      const recalled =
        how === 'asked for what it knows'
          ? await log.recall(client, { type: 'MONEY_IN', identity: sent[4] ?? '', contents: '' })
          : undefined;
      const error = await log.readAfter(client, cursors[3] ?? '', 100).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(EventsGapError);
      const { oldest, head } = error as EventsGapError;
      // A search by the index begins at a place of the log as it is now.
      const found = log.readAfter(client, cursors[3] ?? '', 100, { receivedFrom: 0 });
      await expect(found).rejects.toBeInstanceOf(EventsGapError);
      const { events } = await log.readAfter(client, oldest, 100);
      expect(ids(events)).toEqual([...sent, ...(how === 'appended to' ? [known.id] : [])].slice(-3));
      expect((await log.readAfter(client, head, 100)).events).toEqual([]);
      if (recalled !== undefined) {
        expect((await log.readAfter(client, recalled.cursor, 100)).events).toEqual([]);
      }
      await log.stop();
    },
  );

  it('tells open streams as well, which then go on like any other', async () => {
    const { log, client } = await begun(3, 0);
    for (let count = 0; count < 5; count += 1) await log.append(client, moneyIn());
    const live = await log.follow(client);
    const ended = failure(live);
    await redis.admin.del(`{${client}}:meta`);
    const { cursor } = await log.append(client, moneyIn());
    // Its message is the next one by its link, and of another life.
    const again = await log.follow(client, { after: String(cursor) });
    const error = await ended;
    expect(error).toMatchObject({ code: 'EVENTS_GAP', gap: { reason: 'begun-anew' } });
    const fromOldest = await log.follow(client, { after: (error as EventsGapError).oldest });
    const next = moneyIn();
    await log.append(client, next);
    expect(ids(await take(again, 1))).toEqual([next.id]);
    expect(ids(await take(fromOldest, 4)).at(-1)).toBe(next.id);
    await log.stop();
  });
});

describe('the settings of Redis', () => {
  const warningsOf = async (args: readonly string[], prepare?: (own: RedisServer) => Promise<unknown>) => {
    await using own = await startRedis(args);
    await prepare?.(own);
    const logger = recordingLogger();
    const log = await open({ redisUrl: own.url, logger });
    // Reading an event needs nothing more: by then the settings have been looked at.
    await until(() => logger.lines.some((line) => line.level === 'warn'));
    await log.stop();
    return logger.lines.filter((line) => line.level === 'warn').map((line) => line.message);
  };

  it('are warned of when nothing is kept on disk', async () => {
    expect(await warningsOf(['--appendonly', 'no'])).toEqual([expect.stringContaining('appendonly yes')]);
  });

  it('are warned of when a second may be lost, or events evicted', async () => {
    const loose = ['--appendonly', 'yes', '--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'];
    expect(await warningsOf(loose)).toEqual([
      expect.stringContaining('appendfsync everysec'),
      expect.stringContaining('maxmemory-policy allkeys-lru'),
    ]);
  });

  it('are warned of when a primary that is cut off from its replicas would go on', async () => {
    await using replica = await startRedis();
    const warnings = await warningsOf(DURABLE, async (own) => {
      await own.admin.config('SET', 'repl-diskless-sync-delay', '0');
      await replica.admin.replicaof('127.0.0.1', own.port);
      await until(async () => (await own.admin.info('replication')).includes('state=online'));
    });
    expect(warnings).toEqual([
      expect.stringContaining('names one Redis, which has replicas'),
      expect.stringContaining('min-replicas-to-write 0, a choice with a risk'),
    ]);
  });

  it('are asked of the operator where Redis does not tell them', async () => {
    const warnings = await warningsOf(['--appendonly', 'yes', '--rename-command', 'CONFIG', '']);
    expect(warnings).toEqual([expect.stringContaining('does not let its settings be read')]);
  });

  it('are warned of as far as Redis tells them, where it refuses CONFIG', async () => {
    const managed = [
      '--maxmemory',
      '3mb',
      '--maxmemory-policy',
      'allkeys-random',
      '--rename-command',
      'CONFIG',
      '',
    ];
    const warnings = await warningsOf(managed, async ({ admin }) => {
      await until(async () => {
        await admin.set(randomUUID(), 'x'.repeat(100_000)).catch(() => undefined);
        return !(await admin.info('stats')).includes('evicted_keys:0');
      });
    });
    expect(warnings).toEqual([
      expect.stringContaining('runs without appendonly yes'),
      expect.stringContaining('maxmemory-policy allkeys-random'),
      expect.stringContaining('does not let its settings be read'),
      expect.stringContaining('has evicted keys'),
    ]);
  });
});

it('a message that comes again is remembered for seven days more', async () => {
  const log = await open({ redisUrl: redis.url });
  const client = randomUUID();
  const event = moneyIn();
  await log.append(client, event);
  const seen = seenKey(client, event);
  await redis.admin.pexpire(seen, 60_000);
  expect(await log.append(client, event)).toMatchObject({ duplicate: true });
  expect(await redis.admin.pttl(seen)).toBeGreaterThan(60_000);
  await log.stop();
});
