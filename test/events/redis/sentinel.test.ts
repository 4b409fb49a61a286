import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EventsGapError, StoreUnavailableError } from '../../../src/events/errors.ts';
import type { EventLog, FollowOptions } from '../../../src/events/log.ts';
import { openEventLog } from '../../../src/events/open.ts';
import { available, failure, ids, moneyIn, recordingLogger, take } from '../../helpers/events.ts';
import { startWithSentinel } from '../../helpers/redis-topologies.ts';
import { until } from '../../helpers/until.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'pasarela-sentinel-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

// A Sentinel whose clock has jumped does nothing for half a minute.
const TIMEOUT_MS = 300_000;

/** On a busy machine the replica may take longer to have the log's beginning than a reader waits for it. */
const follow = (log: EventLog, client: string, options?: FollowOptions) =>
  until(() =>
    log.follow(client, options).catch((error: unknown) => {
      if (error instanceof StoreUnavailableError) return undefined;
      throw error;
    }),
  );

describe('a primary that Sentinel fails over', { timeout: TIMEOUT_MS }, () => {
  it('when its replica has everything, followers go on without gap or repeat', async () => {
    await using redis = await startWithSentinel();
    const log = await openEventLog({
      redisUrl: redis.url,
      dataDir: await mkdtemp(join(root, 'data-')),
      retention: 1000,
      logger: recordingLogger(),
    });
    const client = randomUUID();
    const events = await follow(log, client);
    const sent: string[] = [];
    const send = async (count: number): Promise<void> => {
      for (let made = 0; made < count; made += 1) {
        const event = moneyIn();
        await log.append(client, event);
        sent.push(event.id);
      }
    };
    await send(10);
    await redis.primary.kill();
    await send(10);
    // It comes back as the replica, once the Sentinel names the other one: sooner, it would go on as the primary.
    await until(async () => {
      const named = await redis.sentinel.admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'events');
      return Array.isArray(named) && Number(named[1]) === redis.replica.port;
    });
    await redis.primary.start();
    // The Sentinel would tell it so only after ten seconds.
    await redis.primary.admin.call('REPLICAOF', '127.0.0.1', redis.replica.port);
    await available(log);
    await send(10);
    expect(ids(await take(events, 30))).toEqual(sent);
    await log.stop();
  });

  it('when its tail is lost, ends followers with a gap, and they find each event once when they start again', async () => {
    await using redis = await startWithSentinel();
    const log = await openEventLog({
      redisUrl: redis.url,
      dataDir: await mkdtemp(join(root, 'data-')),
      retention: 1000,
      logger: recordingLogger(),
    });
    const client = randomUUID();
    const events = await follow(log, client);
    const kept = moneyIn();
    await log.append(client, kept);
    expect(ids(await take(events, 1))).toEqual([kept.id]);

    // The replica hears nothing of the next event. Nothing is promised on the primary's word alone: it goes to the spool too.
    redis.replica.freeze();
    const lost = moneyIn();
    expect((await log.append(client, lost)).answer).toEqual({ status: 201 });
    const [seen] = await take(events, 1);
    expect(seen?.id).toBe(lost.id);
    await redis.replica.kill();
    await redis.primary.kill();
    await redis.replica.start();

    const error = await failure(events);
    expect(error).toBeInstanceOf(EventsGapError);
    await expect(follow(log, client, { after: seen?.cursor })).rejects.toThrow(EventsGapError);
    await redis.primary.start();
    await available(log);
    const later = moneyIn();
    await log.append(client, later);
    const again = await follow(log, client, { after: (error as EventsGapError).oldest });
    expect(ids(await take(again, 3))).toEqual([kept.id, lost.id, later.id]);
    await log.stop();
  });
});
