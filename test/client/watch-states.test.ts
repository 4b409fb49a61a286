import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Refused, typed, watch } from '../../packages/client/src/index.ts';
import { createFakeSource, type FakeSource } from '../../packages/client/src/testing.ts';
import { folder } from '../helpers/packages.ts';
import { refuse } from './following-world.ts';
import { NEVER, printed } from './states.ts';
import { WATCH_TABLE, type WatchEvent, type WatchState } from './watch-states.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const STATUS = typed<{ readonly cepStatus: number }, { readonly transactionId: string }>(
  'subscription ($transactionId: ID!) { cepStatus(transactionId: $transactionId) { step } }',
);

/** One receipt that an app watches. What the gateway says, the test decides. */
class App {
  readonly #source = createFakeSource();
  readonly #watched = watch(this.#source, STATUS, { transactionId: 'x' }, () => () => {});
  /** The states that the gateway has told, and those that the app was given. */
  readonly told: number[] = [];
  readonly shown: number[] = [];
  #over: 'final' | 'refused' | 'closed' | undefined;
  #isClosed = false;

  constructor() {
    void (async () => {
      try {
        for await (const state of this.#watched) this.shown.push(state);
        this.#over = this.#isClosed ? 'closed' : 'final';
      } catch (cause) {
        expect(cause).toBeInstanceOf(Refused);
        this.#over = 'refused';
      }
    })();
  }

  get sink(): FakeSource['subscriptions'][number]['sink'] | undefined {
    expect(this.#source.subscriptions.length).toBeLessThanOrEqual(1);
    return this.#source.subscriptions[0]?.sink;
  }

  /** What the app sees, and whether it has a connection. */
  get state(): WatchState | 'offline' {
    if (this.#over !== undefined) return this.#over;
    if (this.sink === undefined) return 'offline';
    return this.#watched.status === 'live' ? 'live' : 'connecting';
  }

  get status(): string {
    return this.#watched.status;
  }

  tell(errors?: readonly { readonly message: string }[]): void {
    this.told.push(this.told.length);
    this.sink?.next({ data: { cepStatus: this.told.length - 1 }, ...(errors && { errors }) });
  }

  suspend(): void {
    this.#watched.suspend();
  }

  resume(): void {
    this.#watched.resume();
  }

  close(): void {
    this.#isClosed = true;
    this.#watched.close();
  }

  /** Lets everything happen that waits for nobody. */
  async settle(): Promise<void> {
    for (let turns = 0; turns < 5; turns += 1) await turn();
  }
}

/** What makes each event of the table happen. */
const EVENTS = {
  opened: (app) => app.sink?.opened(),
  state: (app) => app.tell(),
  'state, with an error': (app) => app.tell([{ message: 'No name.' }]),
  completed: (app) => app.sink?.ended(),
  cut: (app) => app.sink?.ended(new Error('cut')),
  gap: (app) => app.sink?.next(refuse(app.told.length % 2 ? 'CURSOR_INVALID' : 'EVENTS_GAP')),
  'refused for a while': (app) => app.sink?.next(refuse('STORE_UNAVAILABLE')),
  'refused for good': (app) => app.sink?.next(refuse('FORBIDDEN')),
  'pause over': () => vi.advanceTimersByTimeAsync(31_000),
  suspend: (app) => app.suspend(),
  resume: (app) => app.resume(),
  close: (app) => app.close(),
} as const satisfies Readonly<Record<WatchEvent, (app: App) => unknown>>;

const ALL = Object.keys(EVENTS) as WatchEvent[];
/** A way to each state. */
const WAYS: Readonly<Record<WatchState, readonly WatchEvent[]>> = {
  connecting: [],
  live: ['opened', 'state'],
  waiting: ['opened', 'cut'],
  suspended: ['suspend'],
  final: ['state', 'completed'],
  refused: ['refused for good'],
  closed: ['opened', 'close'],
};
/** Every step of the table. Chance finds other ways to them. */
const STEPS_OF_THE_TABLE = (Object.keys(WATCH_TABLE) as WatchState[]).flatMap((state) =>
  ALL.filter((event) => WATCH_TABLE[state][event] !== NEVER).map((event): [readonly WatchEvent[]] => [
    [...WAYS[state], event],
  ]),
);

it('what is watched goes from state to state as the table says, and each state that was told is shown', async () => {
  const visited = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...ALL), { maxLength: 30 }), async (events) => {
      const app = new App();
      await app.settle();
      let state: WatchState = 'connecting';
      for (const event of events) {
        const expected: WatchState | typeof NEVER = WATCH_TABLE[state][event];
        if (expected === NEVER) {
          expect(app.sink, `${event} can happen in ${state}`).toBeUndefined();
          continue;
        }
        await EVENTS[event](app);
        await app.settle();
        const isAway = expected === 'waiting' || expected === 'suspended';
        expect(app.state, `${state}, ${event}`).toBe(isAway ? 'offline' : expected);
        expect(app.status, `${state}, ${event}`).toBe(expected === 'live' ? 'live' : 'offline');
        expect(app.shown, `${state}, ${event}`).toEqual(app.told);
        visited.add(`${state}, ${event}`);
        state = expected;
      }
      app.close();
    }),
    { numRuns: 300, examples: STEPS_OF_THE_TABLE },
  );
  const possible = Object.entries(WATCH_TABLE).flatMap(([state, events]) =>
    Object.entries(events).flatMap(([event, next]) => (next === NEVER ? [] : [`${state}, ${event}`])),
  );
  expect(possible.filter((step) => !visited.has(step))).toEqual([]);
});

it('the page shows the table of what is watched', async () => {
  expect(await readFile(folder('packages/client/STATES.md'), 'utf8')).toContain(printed(WATCH_TABLE));
});
