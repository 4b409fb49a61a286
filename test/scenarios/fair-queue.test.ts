import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../src/common/fair-queue.ts';

const LONG = 60_000;

/** Asks for a place for each key; tells the order in which they got one. */
function ask(queue: FairQueue, keys: readonly string[]): { readonly entered: string[] } {
  const entered: string[] = [];
  for (const key of keys) {
    if (queue.tryEnter(key)) entered.push(key);
    else void queue.enter(key, LONG).then((has) => has && entered.push(key));
  }
  return { entered };
}

const turn = () => new Promise(setImmediate);

describe('a fair queue', () => {
  it('gives one caller no more than its share', async () => {
    const queue = new FairQueue({ total: 10, perCaller: 2 });
    const { entered } = ask(queue, ['a', 'a', 'a', 'a', 'b']);
    expect(entered).toEqual(['a', 'a', 'b']);
    expect([queue.waiting, queue.waitingOf('a'), queue.waitingOf('b')]).toEqual([2, 2, 0]);
    queue.leave('b');
    await turn();
    expect(entered).toEqual(['a', 'a', 'b']);
    queue.leave('a');
    await turn();
    expect(entered).toEqual(['a', 'a', 'b', 'a']);
  });

  it('lets a caller that has nothing under way in before one that has, whoever asked first', async () => {
    const queue = new FairQueue({ total: 2, perCaller: 2 });
    const { entered } = ask(queue, ['a', 'a', 'a', 'a', 'a', 'b']);
    queue.leave('a');
    await turn();
    expect(entered).toEqual(['a', 'a', 'b']);
  });

  it('lets callers that wait take turns', async () => {
    const queue = new FairQueue({ total: 3, perCaller: 3 });
    const { entered } = ask(queue, ['a', 'b', 'c', ...'aaabbbccc']);
    for (const key of 'abcabcabc') {
      queue.leave(key);
      await turn();
    }
    const counts = (upTo: number) =>
      ['a', 'b', 'c'].map((key) => entered.slice(0, upTo).filter((one) => one === key).length);
    expect(counts(6)).toEqual([2, 2, 2]);
    expect(counts(9)).toEqual([3, 3, 3]);
  });

  it('ends a wait at its time, and by its signal, without losing a place', async () => {
    const waits: number[] = [];
    const queue = new FairQueue({ total: 1, perCaller: 1, onWaiting: (count) => waits.push(count) });
    expect(queue.tryEnter('a')).toBe(true);
    const gone = new AbortController();
    const [late, left, patient] = [
      queue.enter('b', 1),
      queue.enter('b', LONG, gone.signal),
      queue.enter('b', LONG),
    ];
    gone.abort();
    expect([await late, await left]).toEqual([false, false]);
    queue.leave('a');
    expect(await patient).toBe(true);
    queue.leave('b');
    expect(queue.waiting).toBe(0);
    expect(waits.at(-1)).toBe(0);
    expect(queue.tryEnter('c')).toBe(true);
  });
});
