import { expect, it } from 'vitest';
import { MappedStream, PushStream, type Sink } from '../../src/common/push-stream.ts';

/** A stream whose items the test hands on. */
class Handed extends PushStream<number> {
  sink: Sink<number> | undefined;
  stopped = 0;

  override connect(sink: Sink<number>): void {
    this.sink = sink;
  }

  override stop(): void {
    this.stopped += 1;
  }

  override caughtUpTo(): string {
    return 'here';
  }

  override bookmark(): string {
    return 'cursor';
  }
}

/** Takes all, each item when the test says so. */
class Taking implements Sink<unknown> {
  readonly got: unknown[] = [];
  readonly pending: PromiseWithResolvers<void>[] = [];
  readonly ends: unknown[] = [];
  rested = 0;

  take(item: unknown): Promise<void> {
    this.got.push(item);
    const taken = Promise.withResolvers<void>();
    this.pending.push(taken);
    return taken.promise;
  }

  finish(error?: unknown): void {
    this.ends.push(error);
  }

  rests(): void {
    this.rested += 1;
  }
}

const turn = () => new Promise(setImmediate);

it('a mapped stream hands on, rests and stands where its source does', async () => {
  const source = new Handed();
  const mapped = new MappedStream(source, (item: number) => (item === 2 ? undefined : item * 10));
  const sink = new Taking();
  mapped.connect(sink);
  for (const item of [1, 2, 3]) void source.sink?.take(item);
  source.sink?.rests?.();
  expect([sink.got, sink.rested, mapped.caughtUpTo(), mapped.bookmark()]).toEqual([
    [10, 30],
    1,
    'here',
    'cursor',
  ]);
  source.sink?.finish();
  expect(sink.ends).toEqual([undefined]);
});

it.each([
  [
    'throws',
    () => {
      throw new Error('no');
    },
  ],
  ['rejects', async () => Promise.reject(new Error('no'))],
] as [string, () => number | Promise<number>][])(
  'a mapping that %s ends both streams, once',
  async (_what, map) => {
    const source = new Handed();
    const sink = new Taking();
    new MappedStream(source, map).connect(sink);
    await source.sink?.take(1);
    expect(source.stopped).toBe(1);
    expect(sink.ends).toEqual([expect.objectContaining({ message: 'no' })]);
    source.sink?.finish();
    expect(sink.ends).toHaveLength(1);
  },
);

it.each(['taken', 'lost'])(
  'what is made of a failure comes last, and the end behind it though it is %s',
  async (what) => {
    const source = new Handed();
    const sink = new Taking();
    new MappedStream<number, unknown>(
      source,
      (item) => item,
      (error) => `failed: ${(error as Error).message}`,
    ).connect(sink);
    source.sink?.finish(new Error('away'));
    await turn();
    expect([sink.got, sink.ends]).toEqual([['failed: away'], []]);
    if (what === 'taken') sink.pending[0]?.resolve();
    else sink.pending[0]?.reject(new Error('nobody takes it'));
    await turn();
    expect(sink.ends).toEqual([undefined]);
  },
);

it('a stream that was stopped hands nothing on, and never ends', async () => {
  const source = new Handed();
  const sink = new Taking();
  const mapped = new MappedStream(source, (item: number) => item);
  mapped.connect(sink);
  mapped.stop();
  await source.sink?.take(1);
  source.sink?.finish(new Error('late'));
  expect([source.stopped, sink.got, sink.ends]).toEqual([1, [], []]);
});

it('one who reads a stream as an iterator gets each item, and its end or its failure', async () => {
  const source = new Handed();
  const first = source.next();
  const taken = source.sink?.take(1);
  expect(await first).toEqual({ done: false, value: 1 });
  expect(taken).toBeUndefined();
  let isTaken = false;
  void Promise.resolve(source.sink?.take(2)).then(() => {
    isTaken = true;
  });
  await turn();
  expect(isTaken).toBe(false);
  source.sink?.finish(new Error('away'));
  expect(await source.next()).toEqual({ done: false, value: 2 });
  await turn();
  expect(isTaken).toBe(true);
  await expect(source.next()).rejects.toThrow('away');
  expect(await source.next()).toEqual({ done: true, value: undefined });
});

it('one who leaves ends the stream, also before anything was asked for, and whoever still waits is told', async () => {
  const unread = new Handed();
  await unread.return();
  expect(unread.stopped).toBe(1);
  expect(await unread.next()).toEqual({ done: true, value: undefined });
  const read = new Handed();
  const waiting = read.next();
  await read.return();
  expect([await waiting, read.stopped]).toEqual([{ done: true, value: undefined }, 1]);
});
