import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/common/logger.ts';
import { Secret } from '../../src/common/secret.ts';
import type { EventLog, EventType } from '../../src/events/log.ts';
import { openEventLog } from '../../src/events/open.ts';
import { eventNames } from '../../src/resolvers/events/event-names.ts';
import { moneyIn } from '../helpers/events.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { TRANSPORTS } from '../helpers/subscriber.ts';

/** A type that this version does not know. */
const LATER = 'LATER' as EventType;
const EVENTS = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';
const MONEY_IN = 'subscription ($after: Cursor) { moneyIn(after: $after) { id cursor } }';

let redis: RedisServer;
let gateway: RunningGateway;
let later: EventLog;
let dataDir: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pasarela-later-'));
  redis = await startRedis();
  gateway = await startGateway({ config: { redisUrl: new Secret(redis.url) } });
  later = await openEventLog({
    redisUrl: redis.url,
    dataDir,
    retention: 1_000,
    names: eventNames,
    logger: silentLogger,
  });
});
afterAll(async () => {
  await later.stop();
  await gateway.stop();
  await redis.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const append = async (type: EventType = 'MONEY_IN') => {
  const event = moneyIn({ type });
  await later.append(gateway.sandbox.clientId, event);
  return event.id;
};

describe.each(TRANSPORTS)(
  'beside a version that stores events of another type, over %s,',
  (_name, subscribe) => {
    it.each([
      ['events', EVENTS],
      ['moneyIn', MONEY_IN],
    ])('live and resumed readers of %s get all others, in order, once', async (field, query) => {
      const token = gateway.sandbox.accessToken;
      const after = (await gateway.query('{ eventCursor }')).data.eventCursor;
      await using live = subscribe(gateway.graphql, token, { query, variables: { after } });
      const before = await append();
      await live.received(1);
      await append(LATER);
      const behind = await append();
      await live.received(2);
      expect(live.results.map(({ data }) => data[field].id)).toEqual([before, behind]);
      await using resumed = subscribe(gateway.graphql, token, { query, variables: { after } });
      await resumed.received(2);
      expect(resumed.results).toEqual(live.results);
    });

    it('a page holds all others, and the next one begins behind', async () => {
      const after = (await gateway.query('{ eventCursor }')).data.eventCursor;
      const known = [await append()];
      await append(LATER);
      known.push(await append(), await append());
      await append(LATER);
      const page = (from: string) =>
        gateway.query(
          `query ($after: Cursor) { events(first: 2, after: $after) {
          nodes { id } pageInfo { hasNextPage endCursor }
        } }`,
          { after: from },
        );
      const first = await page(after);
      expect(first.errors).toBeUndefined();
      const second = await page(first.data.events.pageInfo.endCursor);
      expect(
        [first, second].map(({ data }) => data.events.nodes.map(({ id }: { readonly id: string }) => id)),
      ).toEqual([known.slice(0, 2), known.slice(2)]);
      expect(second.data.events.pageInfo.hasNextPage).toBe(false);
    });
  },
);
