import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildConnector, type Dispatcher, Pool } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { clock, useClock } from '../../../src/common/clock.ts';
import { Party } from '../../../src/common/party.ts';
import { CallTimeout, exchange } from '../../../src/upstream/call/exchange.ts';
import { serveBesideBusy } from '../../helpers/busy.ts';

it.each(['its time is over', 'its caller has left'])(
  'a request that still waits for its connection when %s is not sent once that stands',
  async (why) => {
    await using cleanup = new AsyncDisposableStack();
    const received: string[] = [];
    const server = createServer((request, response) => {
      received.push(`${request.method} ${request.url}`);
      response.end('{}');
    }).listen(0, '127.0.0.1');
    let connections = 0;
    server.on('connection', () => {
      connections += 1;
    });
    await once(server, 'listening');
    cleanup.defer(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const mayConnect = Promise.withResolvers<void>();
    const connector = buildConnector({});
    const pool = new Pool(`http://127.0.0.1:${port}`, {
      connections: 1,
      connect: (options, callback) => void mayConnect.promise.then(() => connector(options, callback)),
    });
    cleanup.defer(() => pool.destroy());
    const waiter = {
      requester: { caller: 'caller', group: 'caller' },
      urgency: 'money',
      deadline: Date.now() + 60_000,
    } as const;
    const call = (path: string, timeoutMs: number) => {
      const party = new Party();
      const own = party.join(waiter);
      const request = { method: 'POST', path, headers: {}, body: '{}', party } as const;
      return { done: exchange(pool, request, timeoutMs), leave: () => party.leave(own) };
    };
    const isLate = why === 'its time is over';
    const { done, leave } = call('/payment', isLate ? 1 : 60_000);
    if (!isLate) leave();
    const failed = await done;
    expect(failed).toMatchObject({ dispatched: false });
    expect('cause' in failed && failed.cause instanceof CallTimeout).toBe(isLate);
    mayConnect.resolve();
    expect(await call('/next', 60_000).done).toMatchObject({ status: 200 });
    expect(received).toEqual(['POST /next']);
    expect(connections).toBe(1);
  },
);

it.each(['answered', 'silent'] as const)(
  'what has come of a service that was %s while this process was busy is read before the call is given up',
  async (what) => {
    await using server = await serveBesideBusy(201, '{"id":"one"}');
    await using cleanup = new AsyncDisposableStack();
    const pool = new Pool(server.url);
    cleanup.defer(() => pool.destroy());
    const party = new Party();
    party.join({ requester: { caller: 'caller', group: 'caller' }, urgency: 'money', deadline: Infinity });
    const request = { method: 'POST', path: '/payment', headers: {}, body: '{}', party } as const;
    const done = exchange(pool, request, 1);
    await server.keepBusy(what);
    const came = await done;
    if (what === 'silent') expect(came).toMatchObject({ dispatched: true, cause: expect.any(CallTimeout) });
    else expect(came).toMatchObject({ status: 201 });
  },
);

it.each([
  [900, 'is read to its end'],
  [3_000, 'is given up a second later'],
])(
  'an answer that brings a piece in each turn, until %i ms after its time, %s',
  async (endsAfterMs, _what) => {
    let now = 0;
    let isOver = (): void => expect.unreachable();
    let next = (): void => expect.unreachable();
    onTestFinished(
      useClock({
        ...clock,
        monotonic: () => now,
        setTimeout(callback, _ms, ...args) {
          isOver = () => callback(...args);
          const timer = { unref: () => timer };
          return timer;
        },
        clearTimeout: () => {},
        setImmediate(callback) {
          next = callback;
        },
      }),
    );
    const aborted: Error[] = [];
    // All that an exchange calls.
    const controller = {
      abort: (reason: Error) => void aborted.push(reason),
    } as Dispatcher.DispatchController;
    let handler: Dispatcher.DispatchHandler = {};
    const dispatcher = {
      dispatch(_options: unknown, given: Dispatcher.DispatchHandler) {
        handler = given;
        return true;
      },
    };
    const party = new Party();
    party.join({ requester: { caller: 'caller', group: 'caller' }, urgency: 'money', deadline: Infinity });
    const done = exchange(dispatcher, { method: 'GET', path: '/', headers: {}, party }, 500);
    handler.onRequestStart?.(controller, {});
    handler.onResponseStart?.(controller, 200, {}, 'OK');
    isOver();
    for (; now < endsAfterMs && aborted.length === 0; now += 100) {
      handler.onResponseData?.(controller, Buffer.from(' '));
      next();
    }
    if (aborted.length === 0) handler.onResponseEnd?.(controller, {});
    if (endsAfterMs < 1_000) expect(await done).toMatchObject({ status: 200 });
    else expect(await done).toMatchObject({ dispatched: true, cause: expect.any(CallTimeout) });
    expect(aborted).toHaveLength(endsAfterMs < 1_000 ? 0 : 1);
  },
);
