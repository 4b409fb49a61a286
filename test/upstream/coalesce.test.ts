import { beforeEach, describe, expect, it } from 'vitest';
import { type Coalescer, createCoalescer } from '../../src/upstream/coalesce.ts';

/** Reads that have begun, in their order; each ends when the test says so. */
let reads: PromiseWithResolvers<string>[];
let joined: number;
let now: number;
let coalescer: Coalescer;

beforeEach(() => {
  reads = [];
  joined = 0;
  now = 0;
  coalescer = createCoalescer(() => now);
});

const ask = (caller = 'one', path = '/accounts'): Promise<string> =>
  coalescer.read(
    caller,
    path,
    () => {
      const read = Promise.withResolvers<string>();
      reads.push(read);
      return read.promise;
    },
    () => {
      joined += 1;
    },
  );

describe('a read that one caller has begun', () => {
  it('serves whoever of the same caller asks for the same meanwhile', async () => {
    const both = [ask(), ask()];
    reads[0]?.resolve('answer');
    expect(await Promise.all(both)).toEqual(['answer', 'answer']);
    expect([reads.length, joined]).toEqual([1, 1]);
  });

  it.each([
    ['another caller', 'two', '/accounts'],
    ['another path', 'one', '/customers'],
  ])('serves nobody who is %s', (_what, caller, path) => {
    void ask();
    void ask(caller, path);
    expect(reads).toHaveLength(2);
  });

  it('serves nobody once it has its answer', async () => {
    const first = ask();
    reads[0]?.resolve('old');
    await first;
    const second = ask();
    reads[1]?.resolve('new');
    expect(await second).toBe('new');
  });

  it('serves nobody who asks after the caller has changed something', () => {
    void ask();
    coalescer.forget('one');
    void ask();
    expect(reads).toHaveLength(2);
  });

  it('serves nobody when it began more than a second ago', () => {
    void ask();
    now = 1_001;
    void ask();
    expect(reads).toHaveLength(2);
  });

  it('and fails, fails for itself alone: whoever has waited for it reads for itself', async () => {
    const [first, second] = [ask(), ask()];
    reads[0]?.reject(new Error('its caller has left'));
    await expect(first).rejects.toThrow('its caller has left');
    reads[1]?.resolve('answer');
    expect(await second).toBe('answer');
    expect(joined).toBe(0);
  });
});
