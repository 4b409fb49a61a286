import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { follow, typed } from '../../packages/client/src/index.ts';
import { Pause } from '../../packages/client/src/pause.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** How long the next wait takes, in milliseconds. */
async function waits(pause: Pause): Promise<number> {
  const begun = Date.now();
  const over = pause.next();
  await vi.runAllTimersAsync();
  await over;
  return Date.now() - begun;
}

it('waits longer each time, at most half a second in the first minute, and short again once it is woken', async () => {
  const pause = new Pause();
  const begun = Date.now();
  expect(await waits(pause)).toBeLessThanOrEqual(100);
  while (Date.now() - begun < 60_000) expect(await waits(pause)).toBeLessThanOrEqual(500);
  const long = await waits(pause);
  expect(long).toBeGreaterThanOrEqual(15_000);
  expect(long).toBeLessThanOrEqual(30_000);
  // Nobody waits: a try is under way that a network that is back will end.
  pause.wake();
  expect(await waits(pause)).toBeLessThanOrEqual(100);
});

it('waits longer each time also where the clock is set back meanwhile', async () => {
  const pause = new Pause();
  await waits(pause);
  const begun = Date.now() - 7_200_000;
  vi.setSystemTime(begun);
  while (Date.now() - begun < 60_000) await waits(pause);
  expect(await waits(pause)).toBeGreaterThanOrEqual(15_000);
});

it('leaves no timer behind once it is woken', async () => {
  const pause = new Pause();
  const over = pause.wait(30_000);
  expect(vi.getTimerCount()).toBe(1);
  pause.wake();
  await over;
  expect(vi.getTimerCount()).toBe(0);
});

it('waits for the time that the gateway asked for, also if it is woken, and no longer then', async () => {
  const pause = new Pause();
  const first = Date.now();
  while (Date.now() - first < 60_000) await waits(pause);
  const begun = Date.now();
  const over = pause.next(700);
  await vi.advanceTimersByTimeAsync(300);
  pause.wake();
  await vi.runAllTimersAsync();
  await over;
  expect(Date.now() - begun).toBe(700);
});

it('is woken at once where the time that the gateway asked for went by in a sleep', async () => {
  const pause = new Pause();
  const over = pause.next(700);
  vi.setSystemTime(Date.now() + 700);
  pause.wake();
  await over;
  expect(vi.getTimerCount()).toBe(0);
});

it('ends at once where nobody comes back', async () => {
  const pause = new Pause();
  const over = pause.next(700);
  pause.wake(true);
  await over;
  expect(vi.getTimerCount()).toBe(0);
});

it('does not wait the same time for everybody, and not shorter than it is asked to', async () => {
  const times = new Set<number>();
  for (let client = 0; client < 20; client += 1) times.add(await waits(new Pause()));
  expect(times.size).toBeGreaterThan(1);
  const pause = new Pause();
  const over = pause.next(700);
  await vi.advanceTimersByTimeAsync(699);
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  await vi.advanceTimersByTimeAsync(0);
  expect(isOver).toBe(false);
  await vi.runAllTimersAsync();
  await over;
});

it('rests for what is left alone once it is woken, where a clock is set back', async () => {
  const pause = new Pause();
  const first = Date.now();
  while (Date.now() - first < 60_000) await waits(pause);
  for (const backMs of [1, 3_600_000]) {
    const over = pause.next(40_000);
    await vi.advanceTimersByTimeAsync(39_999);
    vi.setSystemTime(Date.now() - backMs);
    const begun = Date.now();
    pause.wake();
    await vi.runAllTimersAsync();
    await over;
    expect(Date.now() - begun).toBe(Math.min(1 + backMs, 40_000));
  }
});

it('comes on top of what the gateway asks for, so that those whom it refused together do not come back together', async () => {
  const times = new Set<number>();
  for (let client = 0; client < 20; client += 1) {
    const begun = Date.now();
    const over = new Pause().next(1_000);
    await vi.runAllTimersAsync();
    await over;
    times.add(Date.now() - begun);
  }
  expect(Math.min(...times)).toBeGreaterThanOrEqual(1_000);
  expect(times.size).toBeGreaterThan(1);
});

it('rests for a time that no timer holds, and sets no timer each millisecond', async () => {
  const daysMs = 30 * 86_400_000;
  const begun = Date.now();
  let isOver = false;
  const over = new Pause().next(daysMs).then(() => {
    isOver = true;
  });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(isOver).toBe(false);
  let timers = 0;
  while (!isOver) {
    timers += 1;
    await vi.advanceTimersToNextTimerAsync();
  }
  await over;
  expect(Date.now() - begun).toBeGreaterThanOrEqual(daysMs);
  expect(timers).toBeLessThan(5);
});

it('is short for a feed that each connection brings an event, also where none stands for long', async () => {
  const fake = createFakeSource();
  const document = typed<{ readonly events: { readonly cursor: string } }, { readonly after: string }>(
    'subscription S($after: Cursor) { events(after: $after) { cursor } }',
  );
  const feed = follow(fake, document, {
    store: { load: () => ({ cursor: 'start' }), save() {} },
    presence: () => () => {},
  });
  const seen: string[] = [];
  const done = (async () => {
    for await (const { cursor } of feed) seen.push(cursor);
  })();
  // For longer than all waits are short ones.
  for (let cuts = 0; cuts < 30; cuts += 1) {
    await vi.advanceTimersByTimeAsync(500);
    expect(fake.subscriptions, `after ${cuts} cuts`).toHaveLength(1);
    const sink = fake.subscriptions[0]?.sink;
    sink?.opened();
    sink?.next({ data: { events: { cursor: String(cuts) } } });
    await vi.advanceTimersByTimeAsync(4_000);
    sink?.ended(new Error('The connection was cut.'));
  }
  expect(seen).toHaveLength(30);
  feed.close();
  await done;
});
