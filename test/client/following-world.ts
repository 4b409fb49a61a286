import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, vi } from 'vitest';
import {
  type Feed,
  follow,
  type Gap,
  isGap,
  type KeyValues,
  keyValueStore,
  typed,
} from '../../packages/client/src/index.ts';
import { createFakeSource, type FakeCall, type FakeSource } from '../../packages/client/src/testing.ts';
import type { State } from './states.ts';

interface Numbered {
  readonly id: number;
  readonly cursor: string;
}
/** An event of the log. Its cursor is its place there; `id` numbers those that the feed asks for, and the others have none. */
interface Entry {
  readonly id?: number;
  readonly cursor: string;
}
const DOCUMENT = typed<{ readonly events: Numbered }, { readonly after: string | null }>(
  'subscription S($after: Cursor) { events(after: $after) { id cursor } }',
);
const RETAINED = 6;

/** One device that follows, killed and started again at will. */
export class Device {
  source: FakeSource = createFakeSource();
  feed: Feed<Numbered>;
  isSuspended = false;
  /** What has come for a tab that is frozen, which reads it when it wakes; undefined while it is awake. */
  unread: (() => void)[] | undefined;
  refusal: unknown;
  /** Answers the app that loads its list; undefined while it loads none. */
  list: { tell(events: readonly Numbered[]): void; fail(): void } | undefined;
  /** What the app waits for before it reads on; undefined while it reads. */
  #reading: Promise<void> | undefined;
  #readOn = () => {};
  /** What its life of the moment has handed out. */
  shown: (Numbered | Gap<Numbered>)[] = [];
  readonly #storage: KeyValues;
  readonly #values: Map<string, string>;
  readonly #hasList: boolean;
  /** How many writes will fail. */
  failures = 0;

  /** @param hasList true if the app loads a list of its own, at the first start and after a gap */
  constructor(values: Map<string, string>, hasList: boolean) {
    this.#values = values;
    this.#hasList = hasList;
    this.#storage = {
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => {
        this.failures -= 1;
        if (this.failures >= 0) throw new Error('The disk is full.');
        this.failures = 0;
        values.set(key, value);
      },
    };
    this.feed = this.start();
  }

  start(): Feed<Numbered> {
    this.feed?.close();
    this.source = createFakeSource();
    this.isSuspended = false;
    this.unread = undefined;
    this.shown = [];
    this.list = undefined;
    const { shown } = this;
    const store = keyValueStore<Numbered>(this.#storage, 'feed', 1_000);
    const getState = () =>
      new Promise<readonly Numbered[]>((tell, reject) => {
        this.list = { tell, fail: () => reject(new Error('No list came.')) };
      });
    const feed = follow(this.source, DOCUMENT, {
      store,
      presence: () => () => {},
      ...(this.#hasList && { getState }),
    });
    this.feed = feed;
    void (async () => {
      try {
        for await (const item of feed) {
          shown.push(item);
          await this.#reading;
        }
      } catch (cause) {
        if (this.feed === feed) this.refusal = cause;
      }
    })();
    return feed;
  }

  suspend(): void {
    this.isSuspended = true;
    this.feed.suspend();
  }

  resume(): void {
    this.isSuspended = false;
    this.feed.resume();
  }

  /** Reads nothing more until `read`. */
  stopReading(): void {
    this.#reading = new Promise((resolve) => {
      this.#readOn = resolve;
    });
  }

  read(): void {
    this.#readOn();
    this.#reading = undefined;
  }

  /** The state, as far as it can be seen from outside. */
  get observed(): State {
    if (this.refusal !== undefined) return 'refused';
    const { status } = this.feed;
    if (status === 'live' || status === 'catching up') return status;
    if (this.source.subscriptions.length > 0) return 'connecting';
    if (this.#reading !== undefined) return this.isSuspended ? 'full, left' : 'full';
    if (status === 'gap' || !this.#values.has('feed')) return this.isSuspended ? 'placing, left' : 'placing';
    return this.isSuspended ? 'suspended' : 'waiting';
  }

  /** The number of the last event that its life of the moment has handed out. */
  get newest(): number | undefined {
    const events = this.shown.flatMap((item) => (isGap(item) ? (item.events ?? []) : [item]));
    return events.at(-1)?.id;
  }

  /** Something comes from the gateway. */
  hear(what: () => void): void {
    if (this.unread === undefined) what();
    else this.unread.push(what);
  }

  wake(): void {
    const { unread = [] } = this;
    this.unread = undefined;
    for (const what of unread) what();
  }

  call(query: string): FakeCall | undefined {
    return this.source.calls.findLast((call) => call.query.includes(query));
  }
}

export class World {
  /** The newest events; `forgotten` are gone. */
  readonly log: Entry[] = [];
  forgotten = 0;
  /** How many the feeds ask for have come. */
  newest = 0;
  readonly #values = new Map<string, string>();
  readonly devices: readonly Device[];
  #kept = 0;
  #place = 0;

  constructor(devices = 2, hasList = false) {
    this.devices = Array.from({ length: devices }, () => new Device(this.#values, hasList));
  }

  device(which: number): Device {
    const device = this.devices[which];
    if (device === undefined) throw new Error('there are two');
    return device;
  }

  /** @param isAsked false for an event of a type that the feeds do not ask for */
  arrive(isAsked = true): void {
    const cursor = String(this.head + 1);
    if (isAsked) this.newest += 1;
    this.log.push(isAsked ? { id: this.newest, cursor } : { cursor });
    while (this.log.length > RETAINED) {
      this.log.shift();
      this.forgotten += 1;
    }
  }

  get head(): number {
    return this.forgotten + this.log.length;
  }

  /** The retained events after a place that the feeds ask for. */
  after(place: number): readonly Numbered[] {
    return this.log
      .slice(Math.max(0, place - this.forgotten))
      .flatMap(({ id, cursor }) => (id === undefined ? [] : [{ id, cursor }]));
  }

  async settle(): Promise<void> {
    for (let turns = 0; turns < 25; turns += 1) await turn();
  }

  check(): void {
    for (const { source, refusal, shown } of this.devices) {
      expect(source.subscriptions.length).toBeLessThanOrEqual(1);
      expect(refusal).toBeUndefined();
      checkWhole(shown, true);
    }
    const kept = this.kept;
    checkWhole(kept.events, false);
    // The place never moves back behind what is kept, nor that behind what was.
    const last = Number(kept.events.at(-1)?.cursor ?? kept.cursor);
    expect(last).toBeGreaterThanOrEqual(this.#kept);
    expect(Number(kept.cursor)).toBeGreaterThanOrEqual(last);
    this.#kept = last;
    expect(Number(kept.cursor)).toBeGreaterThanOrEqual(this.#place);
    this.#place = Number(kept.cursor);
  }

  get kept(): { readonly cursor: string; readonly events: readonly (Numbered | Gap<Numbered>)[] } {
    return JSON.parse(this.#values.get('feed') ?? '{"cursor":"0","events":[]}');
  }
}

/**
 * Each event once and in order, or a gap where some are missing.
 *
 * @param isTold true for what was handed out, where a gap may follow another further on; a list has one row for both
 */
function checkWhole(items: readonly (Numbered | Gap<Numbered>)[], isTold: boolean): void {
  let last: number | undefined;
  let before: Gap<Numbered> | undefined;
  for (const item of items) {
    if (isGap(item)) {
      const isOther = before === undefined || (isTold && Number(item.cursor) > Number(before.cursor));
      expect(isOther || item.events, `one gap is told once: ${JSON.stringify(items)}`).toBeTruthy();
      before = item;
      if (item.events !== undefined) {
        // The list takes the place of the one before, and is followed by what comes behind it.
        checkWhole(item.events, isTold);
        last = item.events.at(-1)?.id;
        if (last !== undefined) before = undefined;
      }
      continue;
    }
    if (last !== undefined && before === undefined) expect(item.id).toBe(last + 1);
    if (last !== undefined) expect(item.id).toBeGreaterThan(last);
    last = item.id;
    before = undefined;
  }
}

/** How far the gateway has sent a subscription what it asks for. */
const sent = new WeakMap<object, number>();

export const refuse = (code: string, more: object = {}) => ({
  errors: [{ message: code, extensions: { code, ...more } }],
});

type Action = (device: Device, world: World) => void | Promise<void>;

/** What can happen to one device at any time. */
export const ACTIONS = {
  opened: ({ source }) => source.subscriptions[0]?.sink.opened(),
  'the next event is sent': (at, world) => {
    const [subscription] = at.source.subscriptions;
    if (subscription === undefined) return;
    const { sink } = subscription;
    const place = sent.get(subscription) ?? Number(subscription.variables['after']);
    if (place < world.forgotten) {
      // As the gateway's, `oldest` is no cursor of an event.
      const bounds = { oldest: world.forgotten.toFixed(1), head: String(world.head) };
      at.hear(() => sink.next(refuse('EVENTS_GAP', bounds)));
      return;
    }
    const [event] = world.after(place);
    const { head } = world;
    sent.set(subscription, Number(event?.cursor ?? head));
    if (event === undefined) return at.hear(() => sink.bookmark(String(head)));
    return at.hear(() => sink.next({ data: { events: event } }));
  },
  'the tab is frozen': (at) => {
    at.unread ??= [];
  },
  'the tab wakes': (at) => at.wake(),
  'the connection is cut': ({ source }) => source.subscriptions[0]?.sink.ended(new Error('cut')),
  'the gateway completes the stream': ({ source }) => source.subscriptions[0]?.sink.ended(),
  'the token has expired': ({ source }) => source.subscriptions[0]?.sink.next(refuse('UNAUTHENTICATED')),
  'the store is away': ({ source }) => source.subscriptions[0]?.sink.next(refuse('STORE_UNAVAILABLE')),
  'too many ask': ({ source }) =>
    source.subscriptions[0]?.sink.next(refuse('RATE_LIMITED', { retryAfterMs: 700 })),
  'the place is told': (at, world) =>
    at.call('EventCursor')?.answer({ data: { eventCursor: String(world.head) } }),
  'the place is not told': (at) => at.call('EventCursor')?.lose(),
  'what was missed is told': (at, world) => {
    const call = at.call('Missed');
    const nodes = world.after(Number(call?.variables['after']));
    call?.answer({ data: { events: { nodes, pageInfo: { hasNextPage: false } } } });
  },
  'the list is told': (at, world) => at.list?.tell(world.after(0)),
  'the list is not told': (at) => at.list?.fail(),
  'what was missed is not told': (at) => at.call('Missed')?.lose(),
  suspend: (at) => at.suspend(),
  resume: (at) => at.resume(),
  'the app is killed and started': (at) => void at.start(),
  'a write fails': (at) => {
    at.failures += 1;
  },
} as const satisfies Readonly<Record<string, Action>>;

/** What can happen to all. */
const OCCURRENCES: Readonly<Record<string, (world: World) => unknown>> = {
  'an event arrives': (world) => world.arrive(),
  'an event arrives that no feed asks for': (world) => world.arrive(false),
  'more arrive than the log keeps': (world) => {
    for (let count = 0; count < RETAINED + 2; count += 1) world.arrive();
  },
  'a moment passes': () => vi.advanceTimersByTimeAsync(100),
  'a minute passes': () => vi.advanceTimersByTimeAsync(60_000),
};

/** What makes a feed get on, in a world where everything works. */
export const GOOD = [
  'the tab wakes',
  'opened',
  'the place is told',
  'the list is told',
  'what was missed is told',
  'the next event is sent',
] as const;

/** Lets one device get on for a while, as it does most of its life. */
async function getOn(at: Device, world: World): Promise<void> {
  at.resume();
  for (let round = 0; round < 6; round += 1) {
    for (const name of GOOD) await ACTIONS[name](at, world);
    await world.settle();
    world.check();
  }
}

type Step = (world: World) => unknown;
const named = (name: string, step: Step): Step => Object.assign(step, { toString: () => name });
const ofOne = (name: string, act: Action) =>
  fc.nat(1).map((which) => named(`${name} (${which})`, (world) => act(world.device(which), world)));
const ofAll = Object.entries(OCCURRENCES).map(([name, step]) =>
  fc.constant(named(name, (world) => step(world))),
);
const getsOn = ofOne('the device gets on', getOn);
/** What happens in any order: much of it once, or a few things again and again, as in the life of a page. */
export const STEPS: readonly fc.Arbitrary<Step>[] = [
  ...Object.entries<Action>(ACTIONS).map(([name, act]) => ofOne(name, act)),
  getsOn,
  ...ofAll,
];
export const LIFE: readonly fc.Arbitrary<Step>[] = [
  getsOn,
  getsOn,
  getsOn,
  ofOne('the connection is cut', ACTIONS['the connection is cut']),
  ofOne('the app is killed and started', ACTIONS['the app is killed and started']),
  ofOne('the tab is frozen', ACTIONS['the tab is frozen']),
  ...ofAll,
];
