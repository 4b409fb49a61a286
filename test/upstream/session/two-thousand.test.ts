import { expect, it } from 'vitest';
import { CallAlarm } from '../../../src/common/alarms.ts';
import { TransactionStates } from '../../../src/resolvers/events/transaction-states.ts';
import type { Polled } from '../../../src/upstream/session/polls.ts';
import { share } from '../../resolvers/events/watching.ts';

/** docs/events.md, "Two thousand transfers". */
const COUNT = 2_000;
const READING_MS = 100;
const SECOND = 1_000;
const { schedule } = new TransactionStates('');

/**
 * Two thousand transactions, each with one watcher; when each is read, since all of them were added.
 *
 * @param groups of how many groups they are.
 */
function startTransfers(perSecond: number, groups = 1) {
  const { time, polls } = share(perSecond);
  const begun = time.clock.now();
  const since = () => time.clock.now() - begun;
  const after = (ms: number, work: () => void) =>
    polls.alarms.set(new CallAlarm(work), time.clock.now() + ms);
  const all = Array.from({ length: COUNT }, (_, index) => {
    const readAt: number[] = [];
    const polled: Polled = {
      pollKey: `transfer ${index}`,
      pollRequester: `merchant ${index % groups}`,
      schedule,
      read() {
        readAt.push(since());
        return new Promise((resolve) => after(READING_MS, () => resolve(null)));
      },
      takePoll: () => true,
      pollFailed: () => true,
    };
    polls.add(polled);
    return { readAt, polled };
  });
  return {
    all,
    async live(ms: number) {
      for (const end = since() + ms; since() < end; ) await time.ring();
    },
    /** Has a message come for each in turn. @returns how long each waited for its reading, the shortest first. */
    async hint(withinMs: number): Promise<readonly number[]> {
      const hintedAt = new Map<number, number>();
      for (const [index, { polled, readAt }] of all.entries()) {
        after(1 + (index * withinMs) / COUNT, () => {
          readAt.length = 0;
          hintedAt.set(index, since());
          polls.hint(polled, `message ${index}`);
        });
      }
      await this.live(withinMs + 150 * SECOND);
      const waits = all.map(({ readAt }, index) => (readAt[0] ?? Number.NaN) - (hintedAt.get(index) ?? 0));
      return waits.sort((one, other) => one - other);
    },
  };
}

it.each([
  [20, 100, 1],
  [100, 20, 1],
  [20, 100, COUNT],
])(
  'at %i readings a second each transfer is read every %i s without a message, of %i groups',
  async (perSecond, every, groups) => {
    const { all, live } = startTransfers(perSecond, groups);
    await live(310 * SECOND);
    for (const { readAt } of all.slice(COUNT / 2, COUNT / 2 + 20)) {
      const [first = 0, second = 0] = readAt;
      expect(Math.round((second - first) / SECOND)).toBe(every);
    }
  },
);

it('a message for each within 15 s has each read at once', async () => {
  const transfers = startTransfers(20);
  await transfers.live(300 * SECOND);
  expect((await transfers.hint(15 * SECOND)).at(-1)).toBe(0);
});

it('a message for each within a second has some 160 read at once, and the others at the rate: sixteen of a group are under way', async () => {
  const transfers = startTransfers(20);
  await transfers.live(300 * SECOND);
  const waits = await transfers.hint(SECOND);
  const { length } = waits.filter((wait) => wait === 0);
  expect(length).toBeGreaterThan(150);
  expect(length).toBeLessThanOrEqual(160);
  expect(Math.round((waits[COUNT / 2] ?? 0) / SECOND)).toBeLessThan(45);
  expect(Math.round((waits.at(-1) ?? 0) / SECOND)).toBe(93);
});

it.each([
  [20, 50, 100],
  [100, 9, 18],
])(
  'at %i readings a second a message for each within a second has half of them read within %i s, and the last after %i s, where each is of a group of its own',
  async (perSecond, half, last) => {
    const transfers = startTransfers(perSecond, COUNT);
    await transfers.live(300 * SECOND);
    const waits = await transfers.hint(SECOND);
    expect(Math.round((waits[COUNT / 2] ?? 0) / SECOND)).toBe(half);
    expect(Math.round((waits.at(-1) ?? 0) / SECOND)).toBe(last);
  },
);
