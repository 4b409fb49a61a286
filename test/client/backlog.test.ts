import { expect, it, onTestFinished } from 'vitest';
import { ambient, type Timer, useAmbient } from '../../packages/client/src/ambient.ts';
import { backlog as backlogOf } from '../../packages/client/src/backlog.ts';
import type { Source } from '../../packages/client/src/index.ts';
import { requestOf } from '../../packages/client/src/request.ts';
import { createFakeSource } from '../../packages/client/src/testing.ts';
import { until } from '../helpers/until.ts';

/** A log whose pages of what was missed come when the test says so, and what is told meanwhile. */
function measure() {
  const pages: PromiseWithResolvers<unknown>[] = [];
  const told: (number | 'caught up')[] = [];
  /** After which cursor each page was asked for. */
  const asked: unknown[] = [];
  /** The cursor of the last event received. */
  let last = 'start';
  const source: Pick<Source, 'query'> = {
    query: (_document, variables) => {
      asked.push((variables as { readonly after: string }).after);
      const page = Promise.withResolvers<unknown>();
      pages.push(page);
      return page.promise as never;
    },
  };
  const backlog = backlogOf(
    {
      // It asks, and subscribes to nothing.
      source: source as Source,
      cursor: () => last,
      onMissing: (missing) => told.push(missing),
      onCaughtUp: () => told.push('caught up'),
    },
    { ownerId: null, clabe: null, types: null },
  );
  const answer = (
    index: number,
    cursors: readonly string[],
    pageInfo: object = { hasNextPage: false, endCursor: cursors.at(-1) ?? null },
  ) =>
    pages[index]?.resolve({
      data: { events: { nodes: cursors.map((cursor) => ({ cursor })), pageInfo } },
    });
  /** As the feed does with each event. */
  const arrive = (cursor: string) => {
    last = cursor;
    backlog.arrive(cursor);
  };
  return { backlog, arrive, pages, asked, told, answer };
}

it('what arrives while it is asked what was missed is not missing', async () => {
  const { backlog, told, answer } = measure();
  backlog.arrive('a');
  answer(0, ['a', 'b']);
  await until(() => told.length > 0);
  expect(told).toEqual([1]);
  backlog.arrive('b');
  expect(told).toEqual([1, 'caught up']);
});

it('asks for the next page once a page is here, and tells nothing once it is over', async () => {
  const { backlog, pages, told, answer } = measure();
  answer(0, ['a'], { hasNextPage: true, endCursor: 'a' });
  await until(() => told.length > 0);
  backlog.arrive('a');
  await until(() => pages.length === 2);
  expect(told).toEqual([1]);
  backlog.close();
  answer(1, ['b']);
  backlog.arrive('b');
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(told).toEqual([1]);
});

it('asks again after a pause where a page could not be had, and not without end', async () => {
  // The pause is over when the test says so: its own time may be over before anybody looks.
  let end = () => {};
  const setTimeout = (callback: () => void) => {
    end = callback;
  };
  onTestFinished(useAmbient({ ...ambient, setTimeout }));
  const { backlog, pages, told, answer } = measure();
  pages[0]?.reject(new Error('The gateway is away.'));
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(pages).toHaveLength(1);
  end();
  await until(() => pages.length === 2);
  answer(1, ['a']);
  await until(() => told.length > 0);
  expect(told).toEqual([1]);
  backlog.close();
});

it('leaves no timer once it is closed while it waits to ask again', async () => {
  const timers = new Set<Timer>();
  const setTimeout = () => {
    const timer = {};
    timers.add(timer);
    return timer;
  };
  const clearTimeout = (timer: Timer) => void timers.delete(timer);
  onTestFinished(useAmbient({ ...ambient, setTimeout, clearTimeout }));
  const { backlog, pages } = measure();
  pages[0]?.reject(new Error('The gateway is away.'));
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(timers.size).toBe(1);
  backlog.close();
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect([timers.size, pages.length]).toEqual([0, 1]);
});

it('asks again no sooner than the gateway has asked to wait', async () => {
  const { backlog, pages } = measure();
  const extensions = { code: 'RATE_LIMITED', retryAfterMs: 600 };
  const refusedAt = Date.now();
  pages[0]?.resolve({ errors: [{ message: 'Too many calls.', extensions }] });
  await until(() => pages.length === 2);
  expect(Date.now() - refusedAt).toBeGreaterThanOrEqual(600);
  backlog.close();
});

it('asks on from where a page ended that showed nothing, not from its own place again', async () => {
  const { pages, asked, told, answer } = measure();
  answer(0, [], { hasNextPage: true, endCursor: 'far' });
  await until(() => pages.length === 2);
  answer(1, [], { hasNextPage: true, endCursor: 'further' });
  await until(() => pages.length === 3);
  answer(2, []);
  await until(() => told.length > 0);
  expect(asked).toEqual(['start', 'far', 'further']);
  expect(told).toEqual(['caught up']);
});

it('asks on from the last event once one has come behind a page that showed nothing', async () => {
  const { arrive, pages, asked, told, answer } = measure();
  answer(0, [], { hasNextPage: true, endCursor: 'far' });
  await until(() => pages.length === 2);
  arrive('a');
  answer(1, ['a', 'b'], { hasNextPage: true, endCursor: 'b' });
  await until(() => told.length > 0);
  arrive('b');
  await until(() => pages.length === 3);
  answer(2, []);
  await until(() => told.length > 1);
  expect(asked).toEqual(['start', 'far', 'b']);
  expect(told).toEqual([1, 'caught up']);
});

it('asks on from an event that has come while a page was asked for which showed nothing', async () => {
  const { arrive, pages, asked, told, answer } = measure();
  arrive('a');
  answer(0, [], { hasNextPage: true, endCursor: 'far' });
  await until(() => pages.length === 2);
  answer(1, []);
  await until(() => told.length > 0);
  expect(asked).toEqual(['start', 'a']);
  expect(told).toEqual(['caught up']);
});

it.each([
  [
    'subscription ($owner: ID, $to: Clabe = "127180000000000015") { moneyIn(ownerId: $owner, clabe: $to) { cursor } }',
    { owner: 'a customer' },
    { types: ['MONEY_IN'], ownerId: 'a customer', clabe: '127180000000000015' },
  ],
  [
    'subscription ($kinds: [EventType!]) { events(types: $kinds) { cursor } }',
    { kinds: 'CEP' },
    { types: ['CEP'], ownerId: null, clabe: null },
  ],
  // A variable that is not given has its own default, and no other's; one that is given as null is null.
  [
    'subscription ($owner: ID, $to: Clabe = "127180000000000015") { moneyIn(ownerId: $owner, clabe: $to) { cursor } }',
    {},
    { types: ['MONEY_IN'], ownerId: null, clabe: '127180000000000015' },
  ],
  [
    'subscription ($owner: ID = "a customer", $to: Clabe = "1") { moneyIn(ownerId: $owner, clabe: $to) { cursor } }',
    { to: null },
    { types: ['MONEY_IN'], ownerId: 'a customer', clabe: null },
  ],
  [
    'subscription ($one: [EventType!]! = [CEP, STATUS_UPDATE], $other: EventType = CEP) { events(types: $one) { cursor } }',
    {},
    { types: ['CEP', 'STATUS_UPDATE'], ownerId: null, clabe: null },
  ],
  [
    'subscription ($last: EventType = MONEY_IN) { events(types: [CEP, $last]) { cursor } }',
    {},
    { types: ['CEP', 'MONEY_IN'], ownerId: null, clabe: null },
  ],
])(
  'what was missed is asked for by the filters of the document, whatever their variables are called: %s',
  async (text, variables, asked) => {
    const source = createFakeSource();
    const counted = requestOf(text, variables).catching?.({
      source,
      cursor: () => 'the last event',
      onMissing() {},
      onCaughtUp() {},
    });
    expect(source.calls[0]?.variables).toEqual({ after: 'the last event', ...asked });
    counted?.close();
  },
);
