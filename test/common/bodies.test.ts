import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Bodies, type BodyRequest } from '../../src/common/bodies.ts';
import { clock, useClock } from '../../src/common/clock.ts';
import { stillTime } from '../helpers/still-time.ts';
import { until } from '../helpers/until.ts';

const LIMITS = { total: 10_000, strangers: 6_000, perKey: 3_000 };
const NO_LIMITS = { total: Infinity, strangers: Infinity, perKey: Infinity };
const OF_ONE: BodyRequest = { key: 'one', isKnown: true, maxBytes: 1_000 };

/** A request that sends what it is told to. */
function begin(bodies: Bodies, given: Partial<BodyRequest> = {}) {
  const request = new PassThrough();
  // Nothing else of a request is asked for here.
  const body = bodies.read(request as unknown as IncomingMessage, { ...OF_ONE, ...given });
  const listeners = () => ['data', 'end', 'close'].map((name) => request.listenerCount(name));
  return { request, body, listeners };
}

const turn = () => new Promise(setImmediate);

describe('a body', () => {
  it('counts from its first byte until it is let go', async () => {
    const bodies = new Bodies(LIMITS);
    const { request, body } = begin(bodies);
    expect(bodies.held).toBe(0);
    request.write('a'.repeat(600));
    await turn();
    expect(bodies.held).toBeGreaterThanOrEqual(600);
    request.end('b');
    const whole = await body;
    if (whole.kind !== 'whole') throw new Error('it is whole');
    expect(String(whole.bytes)).toBe(`${'a'.repeat(600)}b`);
    expect(bodies.held).toBeGreaterThanOrEqual(601);
    whole.release();
    whole.release();
    expect(bodies.held).toBe(0);
  });

  it('may be as long as is allowed, and not a byte longer', async () => {
    for (const [length, kind] of [
      [1_000, 'whole'],
      [1_001, 'too-large'],
    ] as const) {
      const bodies = new Bodies(LIMITS);
      const { request, body } = begin(bodies);
      request.end('a'.repeat(length));
      expect(await body).toMatchObject({ kind });
      expect(bodies.held > 0).toBe(kind === 'whole');
    }
  });

  it.each(['gone', 'too-slow', 'too-large', 'full'] as const)(
    'that is %s holds nothing any more, and is listened to no longer',
    async (kind) => {
      using time = stillTime();
      const bodies = new Bodies(LIMITS);
      const { request, body, listeners } = begin(bodies, {
        deadlineMs: 5_000,
        ...(kind === 'full' ? { maxBytes: 9_000 } : {}),
      });
      const before = new PassThrough();
      const idle = ['data', 'end', 'close'].map((name) => before.listenerCount(name));
      request.write('a'.repeat(500));
      await time.pass(4_000);
      expect(bodies.held).toBeGreaterThan(0);
      if (kind === 'gone') request.destroy();
      if (kind === 'too-slow') await time.pass(1_000);
      if (kind === 'too-large') request.write('a'.repeat(900));
      if (kind === 'full') request.write('a'.repeat(2_900));
      expect(await body).toMatchObject({ kind });
      expect(bodies.held).toBe(0);
      expect(listeners()).toEqual(idle);
    },
  );

  it('that came whole in time is not cut off later', async () => {
    using time = stillTime();
    const bodies = new Bodies(LIMITS);
    const { request, body } = begin(bodies, { deadlineMs: 5_000 });
    request.end('a');
    await time.pass(10);
    expect(await body).toMatchObject({ kind: 'whole' });
    await time.pass(10_000);
    expect(bodies.held).toBeGreaterThan(0);
  });
});

/** Sends half a body beside this thread, and the rest once the state is 1, which is 2 once that has left. */
const SENDER = `
  const { request } = require('node:http');
  const { workerData: { port, state } } = require('node:worker_threads');
  const sending = request({ port, method: 'POST', agent: false });
  sending.on('error', () => undefined);
  sending.write('half ', () => {
    Atomics.wait(state, 0, 0);
    sending.end('and whole', () => {
      Atomics.store(state, 0, 2);
      Atomics.notify(state, 0);
    });
  });
`;

it('a body that came whole while this process was busy is read before it is too slow', async () => {
  const times: (() => void)[] = [];
  const restore = useClock({
    ...clock,
    setTimeout: (callback, _ms, ...args) => {
      times.push(() => callback(...args));
      return { unref: () => expect.unreachable() };
    },
    clearTimeout: () => {},
  });
  onTestFinished(restore);
  const bodies = new Bodies(LIMITS);
  const read = Promise.withResolvers<Awaited<ReturnType<Bodies['read']>>>();
  const server = createServer((request) => {
    bodies.read(request, { ...OF_ONE, deadlineMs: 1 }).then(read.resolve, read.reject);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens on a port has one.
  const { port } = server.address() as AddressInfo;
  const state = new Int32Array(new SharedArrayBuffer(4));
  const sender = new Worker(SENDER, { eval: true, workerData: { port, state } });
  onTestFinished(async () => {
    await sender.terminate();
    server.closeAllConnections();
    server.close();
  });
  await until(() => bodies.held > 0);
  // From here on this thread reads no socket until the time of the body is over.
  await clock.immediate();
  Atomics.store(state, 0, 1);
  Atomics.notify(state, 0);
  Atomics.wait(state, 0, 1);
  setTimeout(() => {
    for (const isOver of times) isOver();
  }, 0);
  for (const begun = performance.now(); performance.now() < begun + 2; );
  const body = await read.promise;
  expect(body.kind === 'whole' ? String(body.bytes) : body.kind).toBe('half and whole');
});

describe('bodies together', () => {
  const kinds = async (given: readonly Partial<BodyRequest>[]) => {
    const bodies = new Bodies(LIMITS);
    const begun = given.map((one) => begin(bodies, { maxBytes: 9_000, ...one }));
    const seen = begun.map(async ({ body }) => {
      const { kind, ...rest } = await body;
      return kind === 'full' && 'whose' in rest ? rest.whose : kind;
    });
    for (const { request } of begun) {
      request.end('a'.repeat(1_800));
      await turn();
    }
    return Promise.all(seen);
  };

  it('of one key have its share, and others have theirs', async () => {
    expect(await kinds([{}, {}, { key: 'two' }])).toEqual(['whole', 'own', 'whole']);
  });

  it('of strangers leave room for those who are known', async () => {
    const strangers = ['a', 'b', 'c', 'd'].map((key) => ({ key, isKnown: false }));
    expect(await kinds([...strangers, { key: 'e' }])).toEqual(['whole', 'whole', 'whole', 'all', 'whole']);
  });

  it('of strangers take their room from strangers as long as they are held, and not longer', async () => {
    const bodies = new Bodies(LIMITS);
    const kindsOf = async () => {
      const read = ['a', 'b', 'c', 'd'].map((key) => begin(bodies, { key, isKnown: false, maxBytes: 9_000 }));
      for (const { request } of read) {
        request.end('a'.repeat(1_800));
        await turn();
      }
      return Promise.all(read.map(({ body }) => body));
    };
    for (const _round of ['first', 'second']) {
      const read = await kindsOf();
      expect(read.map(({ kind }) => kind)).toEqual(['whole', 'whole', 'whole', 'full']);
      for (const body of read) if (body.kind === 'whole') body.release();
    }
  });

  it('are bounded in all', async () => {
    const known = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => ({ key }));
    expect(await kinds(known)).toEqual([...Array(5).fill('whole'), 'all']);
  });

  it.each([
    ['in all', 'total', true, 'all'],
    ['of strangers', 'strangers', false, 'all'],
    ['of one key', 'perKey', true, 'own'],
  ] as const)(
    'may be as long %s as is allowed, and not a byte longer',
    async (_whose, limit, isKnown, whose) => {
      const bodies = new Bodies({ ...NO_LIMITS, [limit]: 10_000 });
      const write = (length: number) => {
        const { request, body } = begin(bodies, { isKnown, maxBytes: 20_000 });
        request.write('a'.repeat(length));
        return body;
      };
      void write(1);
      await turn();
      const withOne = bodies.held;
      void write(10_001 - 2 * withOne);
      await turn();
      expect(bodies.held).toBe(10_000);
      expect(await write(1)).toEqual({ kind: 'full', whose });
    },
  );
});
