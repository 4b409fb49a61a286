import { createClient } from 'graphql-ws';
import { expect, it, onTestFinished } from 'vitest';
import { type CloseEvent, WebSocket } from 'ws';
import { clock, type Timer, useClock } from '../../../src/common/clock.ts';
import { entropy, useEntropy } from '../../../src/common/entropy.ts';
import { startLifetimes } from '../../../src/transport/sockets/lifetime.ts';
import { control, startGateway } from '../../helpers/gateway.ts';
import { until } from '../../helpers/until.ts';
import { inject } from '../../scenarios/faults/payments.ts';

const SOCKETS = 20;

/** A socket of the stock client that stays open until it is closed by the other side. */
function open(graphql: string, token: string) {
  const closes: { code: number; reason: string }[] = [];
  let opened = 0;
  const client = createClient({
    url: graphql.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    lazy: false,
    onNonLazyError() {},
    connectionParams: { authorization: `Bearer ${token}` },
    retryWait: async () => {},
    on: {
      connected: () => {
        opened += 1;
      },
      closed: (event) => {
        // graphql-ws hands on what the socket's own class gives.
        const { code, reason } = event as CloseEvent;
        closes.push({ code, reason });
      },
    },
  });
  return { client, closes, opened: () => opened };
}

it('closes sockets whose time is over, and they connect again, twice', async () => {
  await using gateway = await startGateway({ config: { socketLifetimeMs: 400 } });
  const { graphql, sandbox } = gateway;
  const sockets = Array.from({ length: SOCKETS }, () => open(graphql, sandbox.accessToken));
  await until(() => sockets.every(({ closes, opened }) => closes.length >= 2 && opened() >= 3));
  const told = sockets.flatMap(({ closes }) => closes.slice(0, 2));
  expect(told).toEqual(told.map(() => ({ code: 1012, reason: 'Connect again' })));
  for (const { client } of sockets) await client.dispose();
});

it('closes a socket that waits for an answer once it has it', async () => {
  // Neither a call nor the wait for the answer is over early, however slow the machine is.
  const config = { socketLifetimeMs: 100, upstreamTimeoutMs: 60_000, operationTimeoutMs: 60_000 };
  await using gateway = await startGateway({ config });
  const { graphql, sandbox } = gateway;
  await inject(sandbox, { path: '/v1/' }, { delayMs: 1_000 });
  const { client, closes } = open(graphql, sandbox.accessToken);
  for (let time = 0; time < 2; time += 1) {
    const before = closes.length;
    for await (const { data } of client.iterate({
      query: '{ client { accounts(first: 1) { nodes { id } } } }',
    }))
      expect(data).toMatchObject({ client: {} });
    await until(() => closes.length > before);
  }
  await control(sandbox, 'DELETE', '/sandbox/faults');
  await client.dispose();
});

it('closes thousands that came at once over the second half of their time, and none that has gone', () => {
  let now = 0;
  let look = (): void => undefined;
  let everyMs = 0;
  const restore = useClock({
    ...clock,
    monotonic: () => now,
    setInterval(callback, milliseconds) {
      look = callback;
      everyMs = milliseconds;
      // The test itself looks.
      const timer = { unref: () => timer };
      return timer as Timer;
    },
  });
  onTestFinished(restore);
  const lifetimeMs = 20_000;
  const lifetimes = startLifetimes(lifetimeMs, 0);
  const closed: number[] = [];
  const sockets = Array.from({ length: 3_000 }, () => ({
    extra: { executed: 0, busy: 0, unsent: 0, close: () => void closed.push(now) },
    subscriptions: {},
  }));
  const [gone, ...others] = sockets;
  for (const socket of sockets) lifetimes.begin(socket);
  if (gone !== undefined) lifetimes.leave(gone);
  for (; now <= 2 * lifetimeMs; now += everyMs) look();
  expect(closed).toHaveLength(others.length);
  expect(Math.min(...closed)).toBeGreaterThanOrEqual(lifetimeMs / 2);
  expect(Math.max(...closed)).toBeLessThanOrEqual(lifetimeMs + everyMs);
  // Each look of that half closes a tenth of them, more or less.
  expect(new Set(closed).size).toBeGreaterThanOrEqual(lifetimeMs / 2 / everyMs);
});

it('closes a socket that always asks for more, once all is answered that it asked for in its lifetime', async () => {
  const lifetimes = startLifetimes(40, 200);
  const closed = Promise.withResolvers<number>();
  lifetimes.begin({
    extra: { executed: 1, busy: 0, unsent: 0, close: closed.resolve },
    subscriptions: { query: null },
  });
  expect(await closed.promise).toBe(1012);
  lifetimes.stop();
});

/** Has the test say what time it is, and look. */
function holdClock() {
  const held = { now: 0, look: (): void => undefined };
  const restore = useClock({
    ...clock,
    monotonic: () => held.now,
    setInterval(callback) {
      held.look = callback;
      const timer = { unref: () => timer };
      return timer as Timer;
    },
  });
  onTestFinished(restore);
  return held;
}

it('closes a socket whose query has still to be begun no sooner than one whose query is executed', () => {
  const held = holdClock();
  const lifetimes = startLifetimes(1_000, 5_000);
  const closed: string[] = [];
  const begin = (name: string, executed: number, subscriptions: Record<string, unknown>) =>
    lifetimes.begin({
      extra: { executed, busy: 0, unsent: 0, close: () => void closed.push(name) },
      subscriptions,
    });
  begin('is to begin', 0, { query: null });
  begin('is executed', 1, { query: {} });
  begin('streams', 0, { stream: {} });
  held.now = 1_000;
  held.look();
  expect(closed).toEqual(['streams']);
  held.now = 6_000;
  held.look();
  expect(closed).toEqual(['streams', 'is to begin', 'is executed']);
});

it('closes a socket that always asks for more once it has taken the answer to the payment that it has begun meanwhile', () => {
  const held = holdClock();
  onTestFinished(useEntropy({ ...entropy, random: () => 0 }));
  // Its moment is after half of that.
  const lifetimes = startLifetimes(2_000, 5_000);
  const closed: string[] = [];
  const begin = (name: string, busy: number) => {
    const extra = { executed: 1, busy, unsent: 0, close: () => void closed.push(name) };
    lifetimes.begin({ extra, subscriptions: { query: {} } });
    return extra;
  };
  begin('asks', 0);
  const paying = begin('pays', 0);
  begin('always pays', 1);
  begin('reads nothing', 0).unsent = 1;
  held.now = 5_990;
  held.look();
  expect(closed).toEqual([]);
  paying.busy = 1;
  held.now = 6_000;
  held.look();
  expect(closed).toEqual(['asks']);
  paying.busy = 0;
  paying.unsent = 1;
  held.now = 6_040;
  held.look();
  expect(closed).toEqual(['asks']);
  paying.unsent = 0;
  held.now = 6_050;
  held.look();
  expect(closed).toEqual(['asks', 'pays']);
  held.now = 10_990;
  held.look();
  expect(closed).toEqual(['asks', 'pays']);
  held.now = 11_000;
  held.look();
  expect(closed).toEqual(['asks', 'pays', 'always pays', 'reads nothing']);
});
