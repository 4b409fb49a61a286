import { beforeEach, describe, expect, it } from 'vitest';
import { ROUND_MS, Rounds } from '../../../src/common/rounds.ts';
import { createFanOut, type FanOut } from '../../../src/transport/sockets/fan-out.ts';
import { type Bell, bell } from '../../helpers/bell.ts';
import { until } from '../../helpers/until.ts';
import { Client } from './client.ts';
import { Source } from './source.ts';

let clock: Bell;
let delivered: number;
let fanOut: FanOut;
beforeEach(() => {
  clock = bell();
  delivered = 0;
  const metrics = {
    sharing: () => undefined,
    slow: () => undefined,
    delivered: (_type: string, readers: number) => {
      delivered += readers;
    },
    gap: () => undefined,
    failed: () => undefined,
    lag: () => undefined,
  };
  fanOut = createFanOut(metrics, new Rounds(clock));
});

describe('a mark of where a reader stands', () => {
  const one = async (): Promise<readonly [Client, Source]> => {
    const [client, group] = [new Client(fanOut), new Source()];
    await client.subscribe('key', async () => group);
    return [client, group];
  };

  it('comes at once, and in each round, of the group as of one alone', async () => {
    const [client] = await one();
    const [alone, own] = [new Client(fanOut), new Source(7)];
    const openFurther = async () => new Source(9);
    await alone.subscribe('further', openFurther, async () => own);
    await until(() => alone.marks.length === 1);
    await clock.pass(ROUND_MS);
    expect([client.marks, alone.marks]).toEqual([
      [
        ['c0', 0],
        ['c0', 0],
      ],
      [
        ['c7', 0],
        ['c7', 0],
      ],
    ]);
  });

  it('is not sent to one whose credential has ended', async () => {
    const [client] = await one();
    client.expired = true;
    await clock.pass(ROUND_MS);
    expect(client.marks).toHaveLength(1);
  });

  it('waits until a group that is at work rests', async () => {
    const [client, group] = await one();
    group.working = true;
    await clock.pass(ROUND_MS);
    expect(client.marks).toHaveLength(1);
    group.working = false;
    group.push(1);
    await until(() => client.marks.length === 2);
    expect(client.marks[1]).toEqual(['c1', 1]);
  });

  it('is sent to one that reads slowly after what waits for it', async () => {
    const [client, group] = await one();
    client.stalled = true;
    for (let number = 1; number <= 5; number += 1) group.push(number);
    await until(() => delivered === 5);
    await clock.pass(ROUND_MS);
    expect(client.marks).toHaveLength(1);
    client.resume();
    await until(() => client.marks.length === 2);
    expect(client.marks[1]).toEqual(['c5', 5]);
  });

  it('names the place where a reader that resumed and the others have met, whoever came there last', async () => {
    for (const [ownAt, groupAt] of [
      [1, 0],
      [0, 1],
    ] as const) {
      const [reader, own, group] = [new Client(fanOut), new Source(ownAt), new Source(groupAt)];
      const key = `${ownAt} ${groupAt}`;
      await reader.subscribe(
        key,
        async () => group,
        async () => own,
      );
      await until(() => reader.marks.length === 1);
      expect(own.ended).toBe(false);
      (ownAt < groupAt ? own : group).push(1);
      await until(() => own.ended);
      group.push(2);
      await until(() => reader.seen.at(-1) === 2);
      expect(reader.seen).toEqual(ownAt < groupAt ? [1, 2] : [2]);
    }
  });
});

it('no mark is due any more once the last reader has left', async () => {
  const clients = [new Client(fanOut), new Client(fanOut)];
  await clients[0]?.subscribe('key', async () => new Source());
  await clients[1]?.subscribe(
    'further',
    async () => new Source(9),
    async () => new Source(7),
  );
  expect(clock.isIdle).toBe(false);
  for (const client of clients) await client.leave();
  expect(clock.isIdle).toBe(true);
});
