import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { readMetric } from '../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { speiCredit } from '../helpers/ingress.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { subscribeOverWebSocket, TRANSPORTS } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';

const RETENTION = 5;
const EVENTS = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';
const PAGE = `query ($after: Cursor, $before: Cursor, $first: Int, $last: Int) {
  events(after: $after, before: $before, first: $first, last: $last) { nodes { id cursor } }
}`;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const { id_msg: _, ...withoutId } = speiCredit();

it.each([
  ['STATUS_UPDATE', { id_msg: 'delivered again' }, { isSameId: true }],
  ['MONEY_IN', withoutId, { isSameId: false }],
] as const)(
  'a log that has been lost takes a %s that is delivered again for new, after its readers were told of the gap',
  async (type, body, { isSameId }) => {
    await using server = await startRedis();
    await using gateway = await startGateway({
      webhooks: false,
      config: { redisUrl: new Secret(server.url) },
    });
    const deliver = () =>
      fetch(gateway.ingress.url(gateway.sandbox.clientId, type) ?? '', {
        method: 'POST',
        body: JSON.stringify(body),
      });
    const subscribe = (after?: string) =>
      subscribeOverWebSocket(gateway.graphql, gateway.sandbox.accessToken, {
        query: `subscription ($after: Cursor) { events(after: $after) {
        id cursor ... on MoneyInEvent { transactionId } } }`,
        variables: { after },
      });
    const { eventCursor } = (await gateway.query('{ eventCursor }')).data;
    await using stream = subscribe(eventCursor);
    // Its answer never reaches the provider, who delivers it again.
    await deliver();
    await stream.received(1);
    await server.admin.flushall();
    expect((await deliver()).status).toBe(201);
    await stream.ended;
    const [first, told] = stream.results;
    expect(told).toMatchObject({ errors: [{ extensions: { code: 'EVENTS_GAP' } }] });
    await using again = subscribe(String(told?.errors?.[0]?.extensions?.['oldest']));
    const [second] = await again.received(1);
    // Of an event without an `id_msg` the gateway makes the id: `transactionId` alone tells that it is the same credit.
    expect(second?.data.events.id === first?.data.events.id).toBe(isSameId);
    expect(second?.data.events.transactionId).toBe(first?.data.events.transactionId);
    expect(second?.data.events.cursor).not.toBe(first?.data.events.cursor);
  },
);

describe.each([
  ['Redis', () => ({ redisUrl: new Secret(redis.url) })],
  ['the embedded log', () => ({})],
])('on %s,', (_, store) => {
  let gateway: RunningGateway;
  let sent = 0;
  beforeAll(async () => {
    gateway = await startGateway({ webhooks: false, config: { eventsRetention: RETENTION, ...store() } });
  });
  afterAll(() => gateway.stop());

  /** Delivers so many events; resolves with their ids. */
  const deliver = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (const last = sent + count; sent < last; ) {
      sent += 1;
      ids.push(`event-${sent}`);
      const response = await fetch(gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '', {
        method: 'POST',
        body: JSON.stringify({ id_msg: ids.at(-1) }),
      });
      expect(response.status).toBe(201);
    }
    return ids;
  };
  const head = async (): Promise<string> => (await gateway.query('{ eventCursor }')).data.eventCursor;
  const token = () => gateway.sandbox.accessToken;

  describe.each(TRANSPORTS)('over %s', (_transport, subscribe) => {
    const follow = (after: string) =>
      subscribe(gateway.graphql, token(), { query: EVENTS, variables: { after } });

    it('a cursor that has been trimmed away is EVENTS_GAP, and one can go on from either end', async () => {
      const old = await head();
      await deliver(1);
      const retained = await deliver(RETENTION);
      const gaps = await readMetric(gateway.url, 'pasarela_events_gaps_total');
      await using late = follow(old);
      expect(await late.ended).toBeUndefined();
      expect(late.results).toHaveLength(1);
      const { extensions } = late.results[0]?.errors?.[0] ?? {};
      expect(extensions).toMatchObject({
        code: 'EVENTS_GAP',
        oldest: expect.any(String),
        head: expect.any(String),
      });
      expect(await readMetric(gateway.url, 'pasarela_events_gaps_total')).toBe(gaps + 1);

      await using fromOldest = follow(String(extensions?.['oldest']));
      await using fromHead = follow(String(extensions?.['head']));
      await fromOldest.received(RETENTION);
      const fresh = await deliver(1);
      await fromHead.received(1);
      await fromOldest.received(RETENTION + 1);
      const ids = (results: typeof late.results) => results.map(({ data }) => data.events.id);
      expect(ids(fromOldest.results)).toEqual([...retained, ...fresh]);
      expect(ids(fromHead.results)).toEqual(fresh);
    });

    it('whoever is told of a gap goes on from `oldest` though events come meanwhile', async () => {
      const old = await head();
      await deliver(RETENTION + 1);
      await using late = follow(old);
      await late.ended;
      const oldest = String(late.results[0]?.errors?.[0]?.extensions?.['oldest']);
      const retained = await deliver(RETENTION);
      await using again = follow(oldest);
      await again.received(RETENTION);
      expect(again.results.map(({ data }) => data.events.id)).toEqual(retained);
      await deliver(1);
      await using tooLate = follow(oldest);
      await tooLate.ended;
      expect(tooLate.results).toMatchObject([{ errors: [{ extensions: { code: 'EVENTS_GAP' } }] }]);
    });

    it('the cursor of another client is CURSOR_INVALID', async () => {
      await deliver(1);
      const [other] = (await control(gateway.sandbox, 'GET', '/sandbox')).otherClients;
      const authorization = `Bearer ${other.accessToken}`;
      const foreign = await gateway.query('{ eventCursor }', {}, { authorization });
      await using subscriber = follow(foreign.data.eventCursor);
      await subscriber.ended;
      expect(subscriber.results).toMatchObject([{ errors: [{ extensions: { code: 'CURSOR_INVALID' } }] }]);
      const { oldest, head: newest } = subscriber.results[0]?.errors?.[0]?.extensions ?? {};
      expect(newest).toBe(await head());
      await using fromOldest = follow(String(oldest));
      const { data } = await gateway.query(PAGE);
      await fromOldest.received(data.events.nodes.length);
      expect(fromOldest.results.map((result) => result.data.events)).toEqual(data.events.nodes);
    });
  });

  it('what is trimmed away between two pages is EVENTS_GAP, onwards as well as back', async () => {
    await deliver(RETENTION);
    const { data } = await gateway.query(PAGE, { first: 2 });
    const back = await gateway.query(PAGE, { last: 2 });
    await deliver(RETENTION + 2);
    for (const variables of [
      { first: 2, after: data.events.nodes.at(-1).cursor },
      { last: 2, before: back.data.events.nodes[0].cursor },
    ]) {
      const { errors } = await gateway.query(PAGE, variables);
      const { extensions = {} } = errors?.[0] ?? {};
      expect(extensions).toMatchObject({ code: 'EVENTS_GAP', oldest: expect.any(String) });
      await deliver(1);
      const again = await gateway.query(PAGE, { first: 100, after: extensions['oldest'] });
      expect(again.data.events.nodes).toHaveLength(RETENTION);
    }
  });
});

it('a Redis that forgets everything ends streams with EVENTS_GAP, and they go on from its oldest', async () => {
  await using gateway = await startGateway({
    webhooks: false,
    config: { redisUrl: new Secret(redis.url) },
  });
  const deliver = (id_msg: string) =>
    fetch(gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '', {
      method: 'POST',
      body: JSON.stringify({ id_msg }),
    });
  const { data } = await gateway.query('{ eventCursor }');
  const open = TRANSPORTS.map(([, subscribe]) =>
    subscribe(gateway.graphql, gateway.sandbox.accessToken, {
      query: EVENTS,
      variables: { after: data.eventCursor },
    }),
  );
  await deliver('before');
  for (const subscriber of open) await subscriber.received(1);
  await redis.admin.flushall();
  await deliver('after');
  for (const [index, subscriber] of open.entries()) {
    await subscriber.ended;
    expect(subscriber.results[0]?.data.events.id).toBe('before');
    const { extensions } = subscriber.results[1]?.errors?.[0] ?? {};
    expect(extensions).toMatchObject({ code: 'EVENTS_GAP' });
    const again = TRANSPORTS[index]?.[1](gateway.graphql, gateway.sandbox.accessToken, {
      query: EVENTS,
      variables: { after: extensions?.['oldest'] },
    });
    await until(() => again?.results[0]?.data.events.id === 'after');
    await again?.leave();
    await subscriber.leave();
  }
});
