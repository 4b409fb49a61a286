import { getEventListeners } from 'node:events';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { afterEach, beforeEach, expect, it, type Mock, vi } from 'vitest';
import { PushStream, type Sink } from '../../../src/common/push-stream.ts';
import { ROUND_MS, Rounds } from '../../../src/common/rounds.ts';
import { DrainingError, SlowConsumerError } from '../../../src/events/errors.ts';
import { EventStreamBody } from '../../../src/graphql/plugins/sse-body.ts';
import { toPublicError } from '../../../src/graphql/public-errors.ts';
import type { SlowReaderMetrics } from '../../../src/observability/event-metrics.ts';
import { type Bell, bell } from '../../helpers/bell.ts';

const CLIENT = '0f0e0d0c-0b0a-4908-8706-050403020100';

/** A stream whose results a test decides on; each stands at its number. */
class Source extends PushStream<ExecutionResult> {
  sink: Sink<ExecutionResult> | undefined;
  stopped = false;
  at: number | undefined;

  override connect(sink: Sink<ExecutionResult>): void {
    this.sink = sink;
  }

  override stop(): void {
    this.stopped = true;
  }

  override bookmark(): string | undefined {
    return this.at === undefined ? undefined : `c${this.at}`;
  }

  /** Gives a result, and rests once it is taken. */
  async give(number: number): Promise<void> {
    this.at = undefined;
    await this.sink?.take({ data: { number } });
    this.rest(number);
  }

  rest(number: number): void {
    this.at = number;
    this.sink?.rests?.();
  }
}

let clock: Bell;
let source: Source;
let gone: AbortController;
let cuts: number;
let slow: Mock<SlowReaderMetrics['slow']>;
let reader: ReadableStreamDefaultReader<Uint8Array>;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  clock = bell();
  source = new Source();
  gone = new AbortController();
  cuts = 0;
  slow = vi.fn();
  reader = new ReadableStream(body()).getReader();
});

function body(): EventStreamBody {
  const metrics = {
    delivered: () => undefined,
    failed: () => undefined,
    gap: () => undefined,
    lag: () => undefined,
    slow,
  };
  const connection = {
    incoming: { waiters: gone },
    cut: () => {
      cuts += 1;
    },
  };
  return new EventStreamBody(source, connection, { metrics, rounds: new Rounds(clock) });
}

afterEach(() => {
  vi.useRealTimers();
});

const read = async (): Promise<string> => {
  const { value, done } = await reader.read();
  return done ? 'done' : new TextDecoder().decode(value);
};
const event = (number: number) => `event: next\ndata: ${JSON.stringify({ data: { number } })}\n\n`;

it('takes a result once the client has read the one before', async () => {
  expect(await read()).toBe(':\n\n');
  const given: number[] = [];
  const giving = (async () => {
    for (const number of [1, 2, 3]) {
      await source.give(number);
      given.push(number);
    }
  })();
  expect(given).toEqual([]);
  expect(await read()).toBe(event(1));
  expect(await read()).toBe('id: c1\n\n');
  expect(await read()).toBe(event(2));
  expect(given).not.toContain(3);
  expect(await read()).toBe(event(3));
  await giving;
});

it('tells where it stands first, in each round, and never before what has not been read', async () => {
  source.rest(0);
  expect([await read(), await read()]).toEqual([':\n\n', 'id: c0\n\n']);
  await clock.pass(ROUND_MS);
  expect(await read()).toBe('id: c0\n\n');
  const giving = Promise.all([source.give(1)]);
  await clock.pass(ROUND_MS);
  expect(await read()).toBe(event(1));
  await giving;
  expect(await read()).toBe('id: c1\n\n');
});

it('adds nothing for a client that does not read', async () => {
  source.rest(0);
  for (let round = 0; round < 5; round += 1) {
    await clock.pass(ROUND_MS);
    vi.advanceTimersByTime(ROUND_MS);
  }
  expect([await read(), await read()]).toEqual([':\n\n', 'id: c0\n\n']);
  vi.advanceTimersByTime(12_000);
  expect(await read()).toBe(':\n\n');
});

it.each([
  ['cancels', () => reader.cancel()],
  ['is gone', async () => gone.abort()],
])('a client that %s leaves nothing behind', async (_, leave) => {
  await read();
  expect([clock.isIdle, vi.getTimerCount()]).toEqual([false, 1]);
  await leave();
  expect([source.stopped, clock.isIdle, vi.getTimerCount()]).toEqual([true, true, 0]);
});

it('ends after the last result, and leaves nothing behind', async () => {
  await read();
  void source.give(1);
  source.sink?.finish();
  expect([await read(), await read(), await read()]).toEqual([
    event(1),
    'event: complete\ndata:\n\n',
    'done',
  ]);
  expect([clock.isIdle, vi.getTimerCount()]).toEqual([true, 0]);
  expect(getEventListeners(gone.signal, 'abort')).toEqual([]);
});

it.each([
  ['SLOW_CONSUMER', new SlowConsumerError(CLIENT), [[CLIENT, 1]]],
  ['DRAINING', new DrainingError(), []],
])(
  'a stream that ends with %s is cut off, never completed, and counted where it is too slow',
  async (_code, originalError, counted) => {
    await read();
    const error = toPublicError(new GraphQLError('', { originalError }));
    const errors = error === undefined ? [] : [error];
    const went: string[] = [];
    Promise.resolve(source.sink?.take({ errors })).then(() => went.push('taken'));
    expect(cuts).toBe(1);
    read().then((text) => went.push(text));
    await new Promise((resolve) => setImmediate(resolve));
    expect(went).toEqual([]);
    expect(slow.mock.calls).toEqual(counted);
    gone.abort();
    expect([source.stopped, clock.isIdle, vi.getTimerCount()]).toEqual([true, true, 0]);
  },
);

it('is not begun for a client that has gone before its answer is handed out', async () => {
  source = new Source();
  clock = bell();
  gone = new AbortController();
  gone.abort();
  reader = new ReadableStream(body()).getReader();
  expect(await read()).toBe('done');
  expect([source.stopped, source.sink, clock.isIdle]).toEqual([true, undefined, true]);
});
