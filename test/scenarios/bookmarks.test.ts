import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { type SteppedClock, steppedClock } from '../helpers/clock.ts';
import { creditTo } from '../helpers/fleet.ts';
import { control, type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { callerToken, serviceFor } from '../helpers/service.ts';
import { subscribeOverSse, subscribeOverWebSocket } from '../helpers/subscriber.ts';
import { until } from '../helpers/until.ts';
import { type Heard, WIRES, type Wire, wireOverWebSocket } from '../helpers/wire.ts';

const EVENTS = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';
const RECEIPTS = 'subscription ($after: Cursor) { events(types: [CEP], after: $after) { id cursor } }';
/** A reader is told at least once in a round of so many steps. */
const ROUND = { steps: 40, ms: 1_200 } as const;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const isBookmark = (heard: Heard) => heard.kind === 'bookmark';
const bookmarks = ({ heard }: Wire, stream = '1'): string[] =>
  heard.flatMap((one) => (one.kind === 'bookmark' && one.stream === stream ? [one.cursor] : []));
const ids = ({ heard }: Wire): string[] => heard.flatMap((one) => (one.kind === 'event' ? [one.id] : []));

async function deliver(gateway: RunningGateway, ...idsOfEvents: readonly string[]): Promise<void> {
  for (const id_msg of idsOfEvents) {
    const response = await fetch(gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '', {
      method: 'POST',
      body: JSON.stringify({ id_msg }),
    });
    expect(response.status).toBe(201);
  }
}

async function passRound(clock: SteppedClock): Promise<void> {
  for (let step = 0; step < ROUND.steps; step += 1) await clock.pass(ROUND.ms);
}

describe.each([
  ['Redis', () => ({ redisUrl: new Secret(redis.url) })],
  ['the embedded log', () => ({})],
])('on %s,', (store, configured) => {
  describe.each(WIRES)('over %s,', (transport, wire) => {
    let gateway: RunningGateway;
    let clock: SteppedClock;
    beforeAll(async () => {
      clock = steppedClock();
      gateway = await startGateway({ webhooks: false, config: configured(), clock });
    });
    afterAll(() => gateway.stop());
    const names = (...numbers: readonly number[]) =>
      numbers.map((number) => `${store}-${transport}-${number}`);
    const follow = (after?: string, query = EVENTS) =>
      wire(gateway.graphql, gateway.sandbox.accessToken, { query, variables: { after } });
    const head = async (): Promise<string> => (await gateway.query('{ eventCursor }')).data.eventCursor;

    it('the first bookmark says that a stream is live: what comes after it is not missed', async () => {
      await deliver(gateway, ...names(1, 2));
      const last = await head();
      await using stream = await follow();
      await until(() => stream.heard.length > 0);
      expect(stream.heard[0]).toMatchObject({ kind: 'bookmark', cursor: last });
      await deliver(gateway, ...names(3));
      await until(() => ids(stream).length > 0);
      expect(ids(stream)).toEqual(names(3));
    });

    it('one that resumes is live once it has been sent everything old', async () => {
      const first = await head();
      await deliver(gateway, ...names(4, 5, 6));
      await using stream = await follow(first);
      await until(() => stream.heard.some(isBookmark));
      expect(stream.heard.map(({ kind }) => kind)).toEqual(['event', 'event', 'event', 'bookmark']);
      expect(bookmarks(stream)).toEqual([await head()]);
    });

    it('a reader whose filter lets nothing through still hears where the log is, and resumes from there', async () => {
      await using stream = await follow(undefined, RECEIPTS);
      await until(() => bookmarks(stream).length === 1);
      await deliver(gateway, ...names(7, 8));
      const last = await head();
      await passRound(clock);
      await until(() => bookmarks(stream).length === 2);
      expect(bookmarks(stream)[1]).toBe(last);
      await deliver(gateway, ...names(9));
      await using resumed = await follow(bookmarks(stream)[1]);
      await until(() => bookmarks(resumed).length === 1);
      expect(ids(resumed)).toEqual(names(9));
      // A head that has not moved is told again: the reader need not ask whether anybody is still there.
      await passRound(clock);
      await until(() => bookmarks(stream).length === 3);
    });
  });

  it('a socket hears of each of its streams', async () => {
    await using gateway = await startGateway({ webhooks: false, config: configured() });
    const token = gateway.sandbox.accessToken;
    await using socket = await wireOverWebSocket(gateway.graphql, token, { query: EVENTS });
    socket.subscribe('the "other"', { query: RECEIPTS });
    await until(() => bookmarks(socket).length === 1 && bookmarks(socket, 'the "other"').length === 1);
    expect(bookmarks(socket, 'the "other"')).toEqual(bookmarks(socket));
  });

  it.each([
    ['graphql-ws', subscribeOverWebSocket],
    ['graphql-sse', subscribeOverSse],
  ])('%s, which knows nothing of them, reads on', async (_, subscribe) => {
    const clock = steppedClock();
    await using gateway = await startGateway({ webhooks: false, config: configured(), clock });
    await using subscriber = subscribe(gateway.graphql, gateway.sandbox.accessToken, { query: EVENTS });
    await clock.asleep(ROUND.ms);
    await passRound(clock);
    await deliver(gateway, `after a bookmark by ${subscribe.name}`);
    await subscriber.received(1);
  });
});

describe.each(WIRES)('over %s,', (transport, wire) => {
  it('bookmarks of callers narrowed to a customer tell nothing of others', async () => {
    const clock = steppedClock();
    await using own = await startGateway({ webhooks: false });
    const { sandbox } = own;
    await using gateway = await startGateway({
      webhooks: false,
      sandbox,
      clock,
      config: { service: serviceFor(sandbox) },
    });
    const { customerIds } = await control(sandbox, 'GET', '/sandbox');
    const customer = String(customerIds[0]);
    const token = await callerToken({ customer_id: customer });
    const follow = (after?: string) => wire(gateway.graphql, token, { query: EVENTS, variables: { after } });
    const credit = async (owner: string, id: string) => {
      const { type, body } = creditTo(owner, id);
      const response = await fetch(gateway.ingress.url(sandbox.clientId, type) ?? '', {
        method: 'POST',
        body: JSON.stringify(body),
      });
      expect(response.status).toBe(201);
    };

    await using stream = await follow();
    await until(() => bookmarks(stream).length === 1);
    await passRound(clock);
    await until(() => bookmarks(stream).length === 2);
    await credit('00000000-0000-4000-8000-000000000000', `other ${transport}`);
    await passRound(clock);
    await until(() => bookmarks(stream).length === 3);
    const told = bookmarks(stream);
    // Each is another text of the same length, whether the log has moved or not.
    expect(new Set(told).size).toBe(3);
    expect(new Set(told.map(({ length }) => length)).size).toBe(1);
    expect(told.some((cursor) => Buffer.from(cursor, 'base64url').includes(sandbox.clientId))).toBe(false);

    await credit(customer, `own ${transport}`);
    for (const cursor of told) {
      await using resumed = await follow(cursor);
      await until(() => bookmarks(resumed).length === 1);
      expect(ids(resumed)).toEqual([`own ${transport}`]);
    }
  });

  it('while Redis is away the place that is known is told, and nothing is missed once it is back, twice', async () => {
    await using server = await startRedis();
    const clock = steppedClock();
    await using gateway = await startGateway({
      webhooks: false,
      clock,
      config: { redisUrl: new Secret(server.url) },
    });
    await using stream = await wire(gateway.graphql, gateway.sandbox.accessToken, { query: EVENTS });
    await until(() => bookmarks(stream).length === 1);
    for (const time of ['first', 'second']) {
      const last = bookmarks(stream).at(-1) ?? '';
      const count = bookmarks(stream).length;
      await server.kill();
      await deliver(gateway, time);
      await passRound(clock);
      await until(() => bookmarks(stream).length > count);
      expect(bookmarks(stream)[count]).toBe(last);
      await server.start();
      await until(() => ids(stream).at(-1) === time);
      await using resumed = await wire(gateway.graphql, gateway.sandbox.accessToken, {
        query: EVENTS,
        variables: { after: last },
      });
      await until(() => bookmarks(resumed).length === 1);
      expect(ids(resumed)).toEqual([time]);
      await passRound(clock);
      await until(() => bookmarks(stream).at(-1) === bookmarks(resumed)[0]);
    }
    expect(ids(stream)).toEqual(['first', 'second']);
  });
});
