import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { typed, watch } from '../../packages/client/src/index.ts';
import { createFakeSource, type FakeCall, type FakeSource } from '../../packages/client/src/testing.ts';
import { folder } from '../helpers/packages.ts';
import { ACTIONS, type Device, GOOD, LIFE, refuse, STEPS, World } from './following-world.ts';
import { type Event, NEVER, printed, type State, TABLE } from './states.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

it('nothing is lost, repeated or hidden in whatever order things happen, and two tabs keep one truth', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.oneof(
        fc.array(fc.oneof(...STEPS), { maxLength: 100, size: 'max' }),
        fc.array(fc.oneof(...LIFE), { maxLength: 40, size: 'max' }),
      ),
      async (hasList, steps) => {
        const world = new World(2, hasList);
        for (const step of steps) {
          await step(world);
          await world.settle();
          world.check();
        }
        // At last everything works: each comes to the log's end, and so does the store.
        world.arrive();
        for (const at of world.devices) at.resume();
        await getOn(world, () => Number(world.kept.cursor) === world.head);
        // What then comes is shown by both, and kept.
        world.arrive();
        await getOn(world, () => world.devices.every(({ newest }) => newest === world.newest));
        expect(world.kept.cursor).toBe(String(world.head));
      },
    ),
    { numRuns: 200 },
  );
});

/** Lets feeds get on until they are live, and a condition holds. */
async function getOn(world: World, condition: () => boolean): Promise<void> {
  const isOver = () => condition() && world.devices.every(({ feed }) => feed.status === 'live');
  for (let round = 0; round < 200 && !isOver(); round += 1) {
    for (const name of GOOD) {
      for (const at of world.devices) await ACTIONS[name](at, world);
      await world.settle();
    }
    if (round % 10 === 9) await vi.advanceTimersByTimeAsync(31_000);
    world.check();
  }
  expect(world.devices.map(({ feed }) => feed.status)).toEqual(['live', 'live']);
  expect(condition(), `${world.kept.cursor} of ${world.head}`).toBe(true);
}

/** How many events may wait for an app. */
const UNREAD = 256;
/** What makes each event of the table happen; false where it cannot. */
const EVENTS = {
  'place told': ({ call }) => call?.answer({ data: { eventCursor: '1' } }),
  'place not told': ({ call }) => call?.lose(),
  opened: ({ sink }) => sink?.opened(),
  event: ({ sink, next }) => sink?.next({ data: { events: { id: next, cursor: String(next) } } }),
  '256 unread': ({ at, sink, next }) => {
    at.stopReading();
    for (let id = next; id < next + UNREAD; id += 1)
      sink?.next({ data: { events: { id, cursor: String(id) } } });
  },
  'all read': ({ at }) => at.read(),
  bookmark: ({ sink, next }) => sink?.bookmark(String(next)),
  'nothing missed': ({ missed }) =>
    missed?.answer({ data: { events: { nodes: [], pageInfo: { hasNextPage: false } } } }),
  cut: ({ sink }) => sink?.ended(new Error('cut')),
  gap: ({ sink }) => sink?.next(refuse('EVENTS_GAP')),
  refused: ({ sink }) => sink?.next(refuse('FORBIDDEN')),
  'pause over': () => vi.advanceTimersByTimeAsync(31_000),
  suspend: ({ at }) => at.suspend(),
  resume: ({ at }) => at.resume(),
} as const satisfies Readonly<Record<Event, (seen: Seen) => unknown>>;

interface Seen {
  readonly at: Device;
  readonly next: number;
  readonly sink: FakeSource['subscriptions'][number]['sink'] | undefined;
  readonly call: FakeCall | undefined;
  readonly missed: FakeCall | undefined;
}

function see(at: Device, next: number): Seen {
  const sink = at.source.subscriptions[0]?.sink;
  return { at, next, sink, call: at.call('EventCursor'), missed: at.call('Missed') };
}

const NEEDS: Readonly<Partial<Record<Event, keyof Seen>>> = {
  'place told': 'call',
  'place not told': 'call',
  'nothing missed': 'missed',
  ...Object.fromEntries(
    ['opened', 'event', '256 unread', 'bookmark', 'cut', 'gap', 'refused'].map((event) => [event, 'sink']),
  ),
};

/** What to choose among what is possible: by number, or by name. */
const CHOICES: fc.Arbitrary<readonly (number | Event)[]> = fc.array(fc.nat(), { maxLength: 60, size: 'max' });
/** A way to each state, on which it is asked what was missed. */
const WAYS: Readonly<Record<State, readonly Event[]>> = {
  placing: ['gap'],
  'placing, left': ['gap', 'suspend'],
  waiting: ['cut'],
  connecting: ['suspend', 'resume'],
  'catching up': [],
  live: ['bookmark'],
  suspended: ['suspend'],
  full: ['256 unread'],
  'full, left': ['256 unread', 'suspend'],
  refused: ['refused'],
};
/** Every step of the table. Chance finds others ways to them. */
const STEPS_OF_THE_TABLE = (Object.keys(TABLE) as State[]).flatMap((state) =>
  (Object.keys(TABLE[state]) as Event[])
    .filter((event) => TABLE[state][event] !== NEVER)
    .map((event): [readonly Event[]] => [['place told', 'opened', ...WAYS[state], event]]),
);

it('a feed goes from state to state as the table says', async () => {
  const visited = new Set<string>();
  await fc.assert(
    fc.asyncProperty(CHOICES, async (choices) => {
      const world = new World(1);
      const at = world.device(0);
      await world.settle();
      let state: State = 'placing';
      let next = 1;
      for (const choice of choices) {
        next += UNREAD;
        const seen = see(at, next);
        const possible = (Object.keys(EVENTS) as Event[]).filter(
          (event) =>
            seen[NEEDS[event] ?? 'at'] !== undefined &&
            // A gateway first takes a subscription.
            !(event === 'bookmark' && state === 'connecting'),
        );
        // What has not been seen to happen there comes first.
        const others = possible.filter((event) => !visited.has(`${state}, ${event}`));
        const among = others.length > 0 ? others : possible;
        const event = typeof choice === 'number' ? (among[choice % among.length] ?? 'resume') : choice;
        expect(possible).toContain(event);
        const expected: State | typeof NEVER = TABLE[state][event];
        expect(expected, `${event} happened in ${state}`).not.toBe(NEVER);
        await EVENTS[event](seen);
        await world.settle();
        expect(at.observed, `${state}, ${event}`).toBe(expected);
        visited.add(`${state}, ${event}`);
        state = at.observed;
      }
    }),
    { numRuns: 250, examples: STEPS_OF_THE_TABLE },
  );
  const possible = Object.entries(TABLE).flatMap(([state, events]) =>
    Object.entries(events).flatMap(([event, next]) => (next === NEVER ? [] : [`${state}, ${event}`])),
  );
  expect(possible.filter((step) => !visited.has(step))).toEqual([]);
});

it('the page shows the table', async () => {
  expect(await readFile(folder('packages/client/STATES.md'), 'utf8')).toContain(printed(TABLE));
});

/** A state, and of which subscription it is: each begins anew, with what the service then says. */
interface Step {
  readonly of: number;
  readonly step: number;
}
const STATUS = typed<{ readonly cepStatus: Step }, { readonly transactionId: string }>(
  'subscription ($transactionId: ID!) { cepStatus(transactionId: $transactionId) { of step } }',
);

it('watch shows the states of each subscription in their order, ends once, and comes back until then', async () => {
  const steps = ['open', 'state', 'cut', 'refuse', 'suspend', 'resume', 'pause'] as const;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...steps), { maxLength: 30 }), async (taken) => {
      const source = createFakeSource();
      const watched = watch(source, STATUS, { transactionId: 'x' }, () => () => {});
      const shown: Step[] = [];
      let isOver = false;
      const over = (async () => {
        for await (const step of watched) shown.push(step);
        isOver = true;
      })();
      const begun: unknown[] = [];
      let step = 0;
      const next = (sink: FakeSource['subscriptions'][number]['sink'] | undefined): Step => {
        if (sink !== begun.at(-1)) {
          begun.push(sink);
          step = 0;
        }
        step += 1;
        return { of: begun.length, step };
      };
      for (const name of taken) {
        const sink = source.subscriptions[0]?.sink;
        if (name === 'open') sink?.opened();
        if (name === 'state') sink?.next({ data: { cepStatus: next(sink) } });
        if (name === 'cut') sink?.ended(new Error('cut'));
        if (name === 'refuse') sink?.next(refuse('UNAUTHENTICATED'));
        if (name === 'suspend') watched.suspend();
        if (name === 'resume') watched.resume();
        if (name === 'pause') await vi.advanceTimersByTimeAsync(31_000);
        for (let turns = 0; turns < 5; turns += 1) await turn();
        expect(source.subscriptions.length).toBeLessThanOrEqual(1);
      }
      expect(isOver).toBe(false);
      watched.resume();
      await vi.advanceTimersByTimeAsync(31_000);
      const sink = source.subscriptions[0]?.sink;
      sink?.opened();
      const last = next(sink);
      sink?.next({ data: { cepStatus: last } });
      sink?.ended();
      await over;
      expect(shown.at(-1)).toEqual(last);
      for (const [index, { of, step: own }] of shown.entries()) {
        const before = shown[index - 1];
        expect(before === undefined || of > before.of || (of === before.of && own > before.step)).toBe(true);
      }
    }),
    { numRuns: 200 },
  );
});
