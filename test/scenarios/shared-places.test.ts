import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../src/common/secret.ts';
import { type RunningGateway, startGateway } from '../helpers/gateway.ts';
import { type RedisServer, startRedis } from '../helpers/redis.ts';
import { until } from '../helpers/until.ts';
import { WIRES, type Wire } from '../helpers/wire.ts';

const OLD = 300;
/** More than a feed remembers, and more than the log retains. */
const LATE = 300;
const LARGE_EVENTS = 15;
const EVENTS = 'subscription ($after: Cursor) { events(after: $after) { id cursor } }';
/** Its events are large, so that few of them fill what the kernel buffers for a reader. */
const LARGE = `subscription ($after: Cursor) { events(after: $after) { id cursor ... on StatusUpdateEvent {
  ${Array.from({ length: 25 }, (_, index) => `p${index}: payload`).join(' ')}
} } }`;
const FILLING = 'x'.repeat(60_000);

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const ids = ({ heard }: Wire): string[] => heard.flatMap((one) => (one.kind === 'event' ? [one.id] : []));
/** Whether it has been told that it is live: what arrives from then on is not missed. */
const isLive = ({ heard }: Wire): boolean => heard.some(({ kind }) => kind === 'bookmark');
const told = ({ heard }: Wire) => heard.filter(({ kind }) => kind === 'error' || kind === 'complete');

const STORES = [
  ['Redis', () => ({ redisUrl: new Secret(redis.url) })],
  ['the embedded log', () => ({})],
] as const;

async function deliver(gateway: RunningGateway, id_msg: string, more: object = {}): Promise<void> {
  const response = await fetch(gateway.ingress.url(gateway.sandbox.clientId, 'STATUS_UPDATE') ?? '', {
    method: 'POST',
    body: JSON.stringify({ id_msg, ...more }),
  });
  expect(response.status).toBe(201);
}

async function headOf(gateway: RunningGateway): Promise<string> {
  const { data, errors } = await gateway.query('{ eventCursor }');
  expect(errors).toBeUndefined();
  return data.eventCursor;
}

describe.each(STORES)('on %s,', (store, configured) => {
  describe.each(WIRES)('over %s,', (transport, wire) => {
    it('who asks without a cursor begins now, whoever resumes beside it', async () => {
      await using gateway = await startGateway({ webhooks: false, config: configured() });
      const follow = (after?: string) =>
        wire(gateway.graphql, gateway.sandbox.accessToken, { query: EVENTS, variables: { after } });
      const first = await headOf(gateway);
      const old = Array.from({ length: OLD }, (_, index) => `${store} ${transport} ${index}`);
      for (const id of old) await deliver(gateway, id);
      const resuming = await Promise.all([follow(first), follow(first)]);
      const beginning = await Promise.all(Array.from({ length: 5 }, () => follow()));
      await until(() => resuming.every((one) => ids(one).length >= OLD) && beginning.every(isLive));
      const fresh = `${store} ${transport} fresh`;
      await deliver(gateway, fresh);
      const all = [...resuming, ...beginning];
      await until(() => all.every((one) => ids(one).includes(fresh)));
      for (const one of resuming) expect(ids(one)).toEqual([...old, fresh]);
      for (const one of beginning) expect(ids(one)).toEqual([fresh]);
      await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
    });

    it('a reader that has stalled as it resumes is told of the gap that it finds, alone and beside others', async () => {
      await using gateway = await startGateway({
        webhooks: false,
        config: { ...configured(), eventsRetention: 100 },
      });
      const token = gateway.sandbox.accessToken;
      const name = (kind: string, index: number) => `${store} ${transport} ${kind} ${index}`;
      const first = await headOf(gateway);
      for (let index = 0; index < LARGE_EVENTS; index += 1)
        await deliver(gateway, name('old', index), { filling: FILLING });
      for (const others of [0, 2]) {
        const after = others === 0 ? first : await headOf(gateway);
        for (let index = 0; others > 0 && index < LARGE_EVENTS; index += 1)
          await deliver(gateway, name('more', index), { filling: FILLING });
        const beside = await Promise.all(
          Array.from({ length: others }, () => wire(gateway.graphql, token, { query: LARGE })),
        );
        await until(() => beside.every(isLive));
        await using stalled = await wire(gateway.graphql, token, { query: LARGE, variables: { after } });
        await until(() => ids(stalled).length > 0);
        stalled.stall();
        for (let index = 0; index < LATE; index += 1) await deliver(gateway, name(`late ${others}`, index));
        await until(() => beside.every((one) => ids(one).length >= LATE));
        stalled.resume();
        await until(() => stalled.heard.some(({ kind }) => kind === 'complete' || kind === 'closed'));
        expect(told(stalled)[0]).toMatchObject({
          kind: 'error',
          code: 'EVENTS_GAP',
          extensions: { oldest: expect.any(String), head: expect.any(String) },
        });
        await Promise.all(beside.map((one) => one[Symbol.asyncDispose]()));
      }
    });
  });
});

describe.each(WIRES)('on a Redis that has lost everything, over %s,', (transport, wire) => {
  it('readers that are live, stalled, or on their way are all told of the gap, twice', async () => {
    await using gateway = await startGateway({
      webhooks: false,
      config: { redisUrl: new Secret(redis.url) },
    });
    const token = gateway.sandbox.accessToken;
    for (const time of ['first', 'second']) {
      const first = await headOf(gateway);
      for (let index = 0; index < LARGE_EVENTS; index += 1)
        await deliver(gateway, `${transport} ${time} ${index}`, { filling: FILLING });
      const follow = (after?: string) => wire(gateway.graphql, token, { query: LARGE, variables: { after } });
      const live = await Promise.all([follow(), follow()]);
      const stalled = await Promise.all([follow(first), follow(first)]);
      const resuming = await follow(first);
      const all = [...live, ...stalled, resuming];
      await until(() => all.every(({ heard }) => heard.length > 0));
      for (const one of stalled) one.stall();
      await until(() => ids(resuming).length === LARGE_EVENTS);
      await redis.admin.flushall();
      await deliver(gateway, `${transport} ${time} after`);
      await until(() =>
        [...live, resuming].every(({ heard }) => heard.some(({ kind }) => kind === 'complete')),
      );
      for (const one of stalled) one.resume();
      await until(() => all.every(({ heard }) => heard.some(({ kind }) => kind === 'complete')));
      for (const one of all)
        expect(told(one)).toMatchObject([{ kind: 'error', code: 'EVENTS_GAP' }, { kind: 'complete' }]);
      await Promise.all(all.map((one) => one[Symbol.asyncDispose]()));
    }
  });
});
