import fc from 'fast-check';
import { type ExecutionResult, GraphQLError } from 'graphql';
import { beforeEach, describe, expect, it } from 'vitest';
import { Rounds } from '../../../src/common/rounds.ts';
import { SlowConsumerError } from '../../../src/events/errors.ts';
import { toPublicError } from '../../../src/graphql/public-errors.ts';
import { createFanOut, type FanOut } from '../../../src/transport/sockets/fan-out.ts';
import type { Subscribed } from '../../../src/transport/sockets/shared-stream.ts';
import { bell } from '../../helpers/bell.ts';
import { until } from '../../helpers/until.ts';
import { CLIENT, Client } from './client.ts';
import { Source } from './source.ts';

/** How a stream ends that fell behind. */
const TOO_SLOW = {
  errors: [toPublicError(new GraphQLError('', { originalError: new SlowConsumerError(CLIENT) }))],
} as ExecutionResult;

let sharing: number;
let slowCloses: number;
let delivered: number;
let fanOut: FanOut;
let opened: Source[];
const open = async (): Promise<Subscribed> => {
  const source = new Source();
  opened.push(source);
  return source;
};

beforeEach(() => {
  sharing = 0;
  slowCloses = 0;
  delivered = 0;
  opened = [];
  const metrics = {
    sharing: (change: number) => {
      sharing += change;
    },
    slow: (clientId: string, readers: number) => {
      expect(clientId).toBe(CLIENT);
      slowCloses += readers;
    },
    delivered: (_type: string, readers: number) => {
      delivered += readers;
    },
    gap: () => undefined,
    failed: () => undefined,
    lag: () => undefined,
  };
  fanOut = createFanOut(metrics, new Rounds(bell()));
});

async function clients(count: number, key = 'key'): Promise<Client[]> {
  const all = Array.from({ length: count }, () => new Client(fanOut));
  await Promise.all(all.map((client) => client.subscribe(key, open)));
  return all;
}

describe('subscriptions that are the same', () => {
  it('are executed once, and all are sent each result', async () => {
    const all = await clients(3);
    expect(opened).toHaveLength(1);
    opened[0]?.push(1, 2);
    await until(() => all.every(({ seen }) => seen.length === 2));
    for (const { seen } of all) expect(seen).toEqual([1, 2]);
    // Two more read than the log has followers.
    expect(sharing).toBe(2);
    expect(delivered).toBe(6);
    for (const { told } of all) expect(told).toBe(2);
  });

  it('are told alike why there is no stream, and the next one tries anew', async () => {
    const refuse = async () => ({ errors: [{ message: 'no' }] }) as unknown as Subscribed;
    const [one, other, later] = [new Client(fanOut), new Client(fanOut), new Client(fanOut)];
    await Promise.all([one.subscribe('key', refuse), other.subscribe('key', refuse)]);
    expect([one.seen, other.seen]).toEqual([['no'], ['no']]);
    await later.subscribe('key', open);
    expect(opened).toHaveLength(1);
    expect(sharing).toBe(0);
  });

  it('complete when the stream does, after its last result', async () => {
    const all = await clients(2);
    opened[0]?.push(1);
    opened[0]?.end();
    await until(() => all.every(({ completed }) => completed));
    for (const { seen } of all) expect(seen).toEqual([1]);
    expect(sharing).toBe(0);
  });

  it('end the stream with the last that leaves; who comes then begins another', async () => {
    const [one, other] = await clients(2);
    await one?.leave();
    expect(opened[0]?.ended).toBe(false);
    await other?.leave();
    expect(opened[0]?.ended).toBe(true);
    await clients(1);
    expect(opened).toHaveLength(2);
    await until(() => sharing === 0);
  });

  it.each(['read alone', 'could not read'])(
    'end the stream with the last that leaves, also where one of them %s',
    async (how) => {
      const [one] = await clients(1);
      const [group] = opened;
      if (one === undefined || group === undefined) throw new Error('there is one');
      group.working = true;
      const late = new Client(fanOut);
      const alone = async () => {
        if (how === 'could not read') throw new Error('no');
        return new Source();
      };
      const subscribed = late.subscribe('key', open, alone, false);
      if (how === 'could not read') await expect(subscribed).rejects.toThrow('no');
      else await subscribed;
      await late.leave();
      expect(group.ended).toBe(false);
      await one.leave();
      expect([group.ended, opened.length]).toEqual([true, 1]);
    },
  );

  it('are read no further by one that leaves before it has met the others', async () => {
    const [late, own, group] = [new Client(fanOut), new Source(7), new Source(9)];
    await late.subscribe(
      'key',
      async () => group,
      async () => own,
    );
    expect([own.ended, group.ended]).toEqual([false, false]);
    await late.leave();
    expect([own.ended, group.ended]).toEqual([true, true]);
  });

  it('send nothing to a reader whose credential has ended, also before a timer has closed its socket', async () => {
    const [one, other] = await clients(2);
    if (one === undefined || other === undefined) throw new Error('there are two');
    opened[0]?.push(1);
    await until(() => one.seen.length === 1);
    one.expired = true;
    opened[0]?.push(2);
    await until(() => other.seen.length === 2);
    expect([one.seen, delivered]).toEqual([[1], 3]);
  });

  it('are not told complete to a reader whose socket is to be closed, as it was not sent all', async () => {
    const [one, other] = await clients(2);
    if (one === undefined || other === undefined) throw new Error('there are two');
    one.expired = true;
    opened[0]?.push(1);
    opened[0]?.end();
    await until(() => other.completed);
    await new Promise(setImmediate);
    expect([one.seen, one.completed, other.seen]).toEqual([[], false, [1]]);
    await one.leave();
    await until(() => one.completed);
  });

  it('are not sent what the others have still to be sent, where they begin now', async () => {
    const [one] = await clients(1);
    const [group] = opened;
    if (one === undefined || group === undefined) throw new Error('there is one');
    group.working = true;
    const late = new Client(fanOut);
    const own = new Source(1);
    await late.subscribe('key', open, async () => own, false);
    group.working = false;
    group.push(1);
    await until(() => one.seen.length === 1);
    await until(() => own.ended);
    group.push(2);
    await until(() => one.seen.length === 2 && late.seen.length === 1);
    expect([one.seen, late.seen]).toEqual([[1, 2], [2]]);
  });

  it('are told why, where the stream has ended before they could join it', async () => {
    const gap = { errors: [{ message: 'gap' }] } as unknown as ExecutionResult;
    const ended = async () => {
      const source = new Source();
      source.pushResult(gap);
      source.end();
      return source;
    };
    for (const _time of ['first', 'second']) {
      const late = new Client(fanOut);
      await late.subscribe('key', ended, async () => gap, false);
      await until(() => late.seen.length > 0);
      expect(late.seen).toEqual(['gap']);
    }
    expect(sharing).toBe(0);
  });

  it('are apart from those with another key', async () => {
    await clients(1, 'one');
    await clients(1, 'other');
    expect(opened).toHaveLength(2);
  });
});

describe('a reader that stops reading', () => {
  it('is closed once 256 results wait for it, and the others go on', async () => {
    const [slow, quick] = await clients(2);
    if (slow === undefined || quick === undefined) throw new Error('there are two');
    slow.stalled = true;
    // Its socket was given two more: one that it did not take, and one that it was to say of when it had.
    for (let number = 0; number < 258; number += 1) {
      opened[0]?.push(number);
      await until(() => quick.seen.length === number + 1);
    }
    expect(slow.closed).toBe(false);
    opened[0]?.push(258);
    await until(() => slow.closed);
    await until(() => quick.seen.length === 259);
    expect([quick.closed, slow.seen.length, slowCloses]).toEqual([false, 2, 1]);
  });

  it('is closed once a mebibyte waits for it', async () => {
    const [slow] = await clients(1);
    if (slow === undefined) throw new Error('there is one');
    slow.stalled = true;
    const large = { data: { number: 'x'.repeat(600_000) } };
    for (let number = 0; number < 4; number += 1) opened[0]?.pushResult(large);
    await until(() => slow.closed);
    expect(slowCloses).toBe(1);
  });

  it('is sent what waited for it, in order, once it reads again', async () => {
    const [slow] = await clients(1);
    if (slow === undefined) throw new Error('there is one');
    slow.stalled = true;
    for (let number = 0; number < 20; number += 1) opened[0]?.push(number);
    await until(() => delivered === 20);
    slow.resume();
    opened[0]?.push(20);
    opened[0]?.end();
    await until(() => slow.completed);
    expect(slow.seen).toEqual(Array.from({ length: 21 }, (_, number) => number));
  });

  it('is not closed for what it has been sent meanwhile, though that is more than may wait', async () => {
    const [slow] = await clients(1);
    if (slow === undefined) throw new Error('there is one');
    const large = { data: { number: 'x'.repeat(200_000) } };
    for (let round = 1; round <= 3; round += 1) {
      slow.stalled = true;
      for (let number = 0; number < 6; number += 1) opened[0]?.pushResult(large);
      await until(() => slow.closed || opened[0]?.caughtUpTo() !== undefined);
      slow.resume();
      await until(() => slow.closed || slow.seen.length === 6 * round);
      // The socket has taken the last of them, too.
      await new Promise(setImmediate);
      expect([slow.closed, slowCloses]).toEqual([false, 0]);
    }
  });

  it('closes all when it is the shared stream that fell behind, and counts each', async () => {
    const all = await clients(2);
    opened[0]?.pushResult(TOO_SLOW);
    await until(() => all.every(({ closed }) => closed));
    expect(slowCloses).toBe(2);
    expect(all.flatMap(({ seen }) => seen)).toEqual([]);
    // Their sockets may stay open for a while.
    await new Promise(setImmediate);
    expect(all.map(({ completed }) => completed)).toEqual([false, false]);
    await Promise.all(all.map((client) => client.leave()));
    await until(() => all.every(({ completed }) => completed));
  });

  it('closes a reader whose own stream fell behind, and counts it alone', async () => {
    const [other] = await clients(1);
    const [own, reader] = [new Source(5), new Client(fanOut)];
    await reader.subscribe('key', open, async () => own);
    own.pushResult(TOO_SLOW);
    await until(() => reader.closed);
    expect([slowCloses, other?.closed]).toEqual([1, false]);
  });
});

describe('a reader that resumes', () => {
  it('reads on its own, then with the others, without gap or repeat, however both come along', async () => {
    let run = 0;
    const step = fc.constantFrom<'own' | 'group' | 'turn'>('own', 'group', 'turn');
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 0, max: 5 }),
        async (steps, behind) => {
          opened = [];
          run += 1;
          const key = `run ${run}`;
          const [own, reader] = [new Source(), new Client(fanOut)];
          const other = new Client(fanOut);
          await other.subscribe(key, async () => {
            const source = new Source(behind);
            opened.push(source);
            return source;
          });
          await reader.subscribe(key, open, async () => own);
          // The log holds 1, 2, 3, …; the reader begins `behind` events before the group does.
          let [ownNext, groupNext] = [1, 1 + behind];
          for (const next of steps) {
            if (next === 'own') own.push(ownNext++);
            else if (next === 'group') opened[0]?.push(groupNext++);
            else await new Promise((resolve) => setImmediate(resolve));
          }
          // Nothing happens after: both come to the end of the log.
          const last = Math.max(ownNext, groupNext) + 1;
          while (ownNext <= last) own.push(ownNext++);
          while (groupNext <= last) opened[0]?.push(groupNext++);
          await until(() => reader.seen.length >= last);
          expect(reader.seen).toEqual(Array.from({ length: last }, (_, index) => index + 1));
          // Before each, what its caller had asked before counts for nothing.
          expect(reader.told).toBe(last);
          // The one that is not needed any more is given up.
          await until(() => own.ended);
          opened[0]?.push(groupNext);
          await until(() => reader.seen.at(-1) === groupNext);
          await reader.leave();
        },
      ),
      { numRuns: 200 },
    );
  });

  it('stays on its own until it has come as far as the others', async () => {
    const [own, reader] = [new Source(), new Client(fanOut)];
    const openFurther = async () => {
      const source = new Source(3);
      opened.push(source);
      return source;
    };
    await reader.subscribe('key', openFurther, async () => own);
    own.push(1, 2);
    await until(() => reader.seen.length === 2);
    own.end();
    await until(() => reader.completed);
    expect(opened[0]?.ended).toBe(true);
    expect(sharing).toBe(0);
  });

  it('is told why it cannot, and opens nothing for others', async () => {
    const reader = new Client(fanOut);
    await reader.subscribe(
      'key',
      open,
      async () => ({ errors: [{ message: 'gap' }] }) as unknown as Subscribed,
    );
    expect([reader.seen, opened]).toEqual([['gap'], []]);
  });
});
