import { describe, expect, it } from 'vitest';
import { Turns, URGENCIES, type Urgency } from '../../src/common/turns.ts';

/** Work that takes a millisecond each time it begins, by a clock that nothing else moves. */
function working() {
  let now = 0;
  const turns = new Turns(() => now);
  const begun: string[] = [];
  const work = async (urgency: Urgency, key: string, name = key): Promise<void> => {
    await turns.turn(urgency, key);
    // A few steps later it still is the same work.
    await Promise.resolve().then(() => undefined);
    begun.push(name);
    now += 1;
  };
  return { turns, begun, work };
}

const nextTurn = () => new Promise(setImmediate);

describe('the work of a process', () => {
  it('begins a few milliseconds at a time, and whatever else there is has its turns in between', async () => {
    const { begun, work } = working();
    const all = Array.from({ length: 1_000 }, (_, index) => work('operations', 'greedy', String(index)));
    const perTurn: number[] = [];
    while (begun.length < all.length) {
      const before = begun.length;
      await nextTurn();
      perTurn.push(begun.length - before);
    }
    await Promise.all(all);
    expect(begun).toEqual(Array.from({ length: 1_000 }, (_, index) => String(index)));
    expect(Math.max(...perTurn)).toBeLessThanOrEqual(8);
    expect(perTurn.length).toBeGreaterThan(100);
  });

  it('all begins at once where turns are off', () => {
    const turns = new Turns(() => 0, false);
    for (const urgency of URGENCIES) expect(turns.turn(urgency, 'greedy')).toBeUndefined();
  });

  it('of one who comes later does not wait behind all of another', async () => {
    const { begun, work } = working();
    const greedy = Array.from({ length: 100 }, () => work('operations', 'greedy'));
    await nextTurn();
    const modest = work('operations', 'modest');
    await modest;
    expect(begun.length).toBeLessThan(20);
    await Promise.all(greedy);
    expect(begun.filter((name) => name === 'greedy')).toHaveLength(100);
  });

  it('that is more pressing comes first, and the rest is not stopped by it', async () => {
    const { begun, work } = working();
    const all = (['arrivals', 'streams', 'operations', 'money'] as const).flatMap((urgency) =>
      Array.from({ length: 100 }, () => work(urgency, urgency)),
    );
    await Promise.all(all);
    const first = (name: string) => begun.indexOf(name);
    const last = (name: string) => begun.lastIndexOf(name);
    expect(first('money')).toBeLessThan(first('operations'));
    expect(first('operations')).toBeLessThan(first('streams'));
    expect(first('streams')).toBeLessThan(first('arrivals'));
    expect(first('arrivals')).toBeLessThan(last('money'));
    expect(last('streams')).toBeLessThan(last('arrivals'));
    expect(begun).toHaveLength(400);
  });

  it('that comes alone waits for nothing', async () => {
    const { turns, work } = working();
    await work('operations', 'one');
    await nextTurn();
    expect(turns.turn('operations', 'one')).toBeUndefined();
  });
});
