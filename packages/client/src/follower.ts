import { ambient } from './ambient.ts';
import { type Connection, connect } from './connect.ts';
import { EVENT_CURSOR, fieldOf } from './documents.ts';
import type { EventOf, Feed, FollowOptions, Status } from './feed.ts';
import { tellAll } from './listeners.ts';
import { Pause } from './pause.ts';
import { presence } from './presence.ts';
import {
  ask,
  type Catching,
  isGapCode,
  type Problem,
  placeOf,
  type Refused,
  refusalOf,
  refused,
  retryAfterOf,
  type Source,
  type TypedDocument,
  within,
} from './source.ts';
import { cursorOf, type Gap, isGap, memoryStore, type Saved, type Store } from './stores.ts';
import { unseen } from './unseen.ts';

/** Of bookmarks that come within this time, in milliseconds, only the first is saved: a tab that wakes reads old ones. */
const STEADY_MS = 30_000;
/** How often a place is saved again if nothing comes: by the second time the store knows if the tab that has stored another is gone. */
const REPEATS = 2;
/** How many events may wait for the app. With more, the connection is ended, and made again once they have been read. */
const WAITING = 256;

type Item<Data> = EventOf<Data> | Gap<EventOf<Data>>;
type State = Pick<Feed<unknown>, 'status' | 'missing' | 'problem'>;

/** An event that waits for the app, or a place up to which all events have come. */
type Buffered<Event> = { readonly event?: Event; readonly cursor: string };

/** The feed of `follow`. It keeps the connection up, saves each event before it hands it out, and reports gaps. */
export class Follower<Data, Variables> implements Feed<EventOf<Data>> {
  status: Status = 'offline';
  missing = 0;
  problem: unknown;
  readonly #source: Source;
  readonly #document: TypedDocument<Data, Variables>;
  readonly #options: FollowOptions<EventOf<Data>, Variables>;
  readonly #store: Store<EventOf<Data>>;
  readonly #listeners = new Set<() => void>();
  readonly #pause = new Pause();
  /** The cursor of the last event received. */
  #cursor = '';
  /** The cursor of the last event handed out, or loaded. */
  #shown = '';
  /** The place of the last gap handed out, or loaded; empty once an event has come behind it. */
  #told = '';
  #connection: Connection | undefined;
  #waiting: Buffered<EventOf<Data>>[] = [];
  #refusal: Refused | undefined;
  /** How many bookmarks at `#cursor` are still to be saved. */
  #repeats = 0;
  /** When a bookmark was saved of this connection. A clock that is set back keeps none from being saved. */
  #savedAt = -STEADY_MS;
  #suspended = false;
  /** True if the app itself has suspended the feed: only the app resumes it. */
  #isLeft = false;
  readonly #left = new AbortController();
  #backlog: ReturnType<Catching> | undefined;
  /** Why the store, or what the feed begins with, failed last, and is tried again. */
  #failure: unknown;
  /** True if the connection was ended because too many events wait for the app. */
  #full = false;
  /** How many gaps have come since anything else has. */
  #gaps = 0;

  constructor(
    source: Source,
    document: TypedDocument<Data, Variables>,
    options: FollowOptions<EventOf<Data>, Variables>,
  ) {
    this.#source = source;
    this.#document = document;
    this.#options = options;
    this.#store = options.store ?? memoryStore();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  suspend(): void {
    this.#isLeft = true;
    this.#away();
  }

  resume(): void {
    this.#isLeft = false;
    this.#suspended = false;
    this.#pause.wake();
    if (!this.#full) this.#connection?.resume();
  }

  close(): void {
    this.#left.abort();
    this.#backlog?.close();
    this.#connection?.close();
    this.#pause.wake(true);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item<Data>, void> {
    const stopPresence = (this.#options.presence ?? presence)({
      suspend: () => this.#away(),
      resume: () => this.#isLeft || this.resume(),
    });
    try {
      const saved = await this.#store.load();
      if (saved) {
        this.#cursor = saved.cursor;
        for (const item of saved.events ?? []) this.#show(item);
      } else yield* this.#begin('FIRST_START');
      while (!this.#left.signal.aborted) {
        this.#connection ??= this.#connect();
        const next = this.#waiting.shift();
        if (next) {
          if (!(await this.#untilDone(true, () => this.#store.save(next.event, next.cursor)))) return;
          if (!next.event) continue;
          this.#show(next.event);
          yield next.event;
        } else if (this.#refusal === undefined) {
          if (this.#full && !this.#suspended) this.#connection.resume();
          this.#full = false;
          await this.#pause.wait();
        } else {
          const refusal = this.#refusal;
          if (!isGapCode(refusal.code)) throw refusal;
          this.#refusal = undefined;
          this.#connection = undefined;
          yield* this.#begin(refusal.code, refusal.extensions);
        }
      }
    } finally {
      stopPresence();
      this.close();
      this.#change({ status: 'offline' });
    }
  }

  #away(): void {
    this.#suspended = true;
    this.#connection?.suspend();
  }

  /** Gives the feed a place in the log, and reports what may be missing before it. */
  async *#begin(reason: Gap['reason'], bounds: Problem['extensions'] = {}): AsyncGenerator<Item<Data>, void> {
    if (reason !== 'FIRST_START') {
      this.#gaps += 1;
      this.#change({ status: 'gap' });
    }
    // A text, or nothing where the gap names no place.
    let cursor = placeOf(bounds, this.#gaps) as string;
    // The type is told because the compiler does not see that a function sets it.
    let events = undefined as readonly EventOf<Data>[] | undefined;
    if (this.#options.getState || typeof cursor !== 'string') {
      const place = async (left: AbortSignal) => {
        const { eventCursor } = await ask(this.#source, EVENT_CURSOR, {}, undefined, left);
        events = await this.#options.getState?.(eventCursor);
        const last = events?.at(-1);
        const own = last ? cursorOf(last) : eventCursor;
        // The place that has just been refused would be refused again.
        cursor = own === this.#cursor ? cursor || eventCursor : own;
      };
      const isPlaced = await this.#untilDone(false, () => within(undefined, place, this.#left.signal));
      if (!isPlaced) return;
    }
    const gap: Gap<EventOf<Data>> | undefined =
      events || reason !== 'FIRST_START'
        ? { gap: true, reason, cursor, ...(events && { events }) }
        : undefined;
    let saved: Saved<EventOf<Data>> = { cursor };
    const isKept = await this.#untilDone(true, async () => {
      await this.#store.save(gap, cursor);
      // Another tab may have been quicker. The feed then goes on from the place in the store, and shows the store's events.
      saved = (await this.#store.load()) || saved;
    });
    if (!isKept) return;
    const isOwn = saved.cursor === cursor || saved.cursor === this.#cursor || (events && !saved.events);
    this.#cursor = isOwn ? cursor : saved.cursor;
    for (const item of isOwn ? [gap] : unseen(saved.events, gap, this.#shown || this.#told)) {
      // Where another tab has moved the place back, the same gap comes again.
      if (!item || (isGap(item) && item.cursor === this.#told && !item.events)) continue;
      this.#show(item);
      yield item;
    }
  }

  #show(item: Item<Data>): void {
    this.#told = isGap(item) ? item.cursor : '';
    for (const event of isGap(item) ? (item.events ?? []) : [item]) this.#shown = cursorOf(event);
  }

  /** Tries until it succeeds. @returns false once the feed is closed. @param isHere true if it needs no gateway */
  async #untilDone(isHere: boolean, work: () => void | Promise<void>): Promise<boolean> {
    while (!this.#left.signal.aborted) {
      if (this.#suspended && !isHere) {
        await this.#pause.wait();
        continue;
      }
      try {
        await work();
        // The connection may have another problem by now.
        if (this.#failure && this.problem === this.#failure) this.#change({ problem: undefined });
        this.#failure = undefined;
        return true;
      } catch (cause) {
        if (this.#left.signal.aborted) return false;
        const refusal = refusalOf(cause);
        // What `getState` was reading is gone from the log: it begins anew.
        if (refusal && !isGapCode(refusal.code)) throw refusal;
        this.#failure = cause;
        this.#change({ problem: cause });
        await this.#pause.next(retryAfterOf(cause));
      }
    }
    return false;
  }

  #connect(): Connection {
    const connection = connect(
      this.#source,
      this.#document,
      // The document declares the variables of the narrowing, and `after`.
      () => ({ ...this.#options.variables, after: this.#cursor }) as Variables,
      false,
      {
        opened: (catching) => this.#catchUp(catching),
        next: (data, errors) => this.#receive(fieldOf(data), errors),
        bookmark: (cursor) => this.#reach(cursor),
        lost: (problem) => {
          this.#backlog?.close();
          this.#change({ status: 'offline', problem: problem ?? this.#failure });
        },
        ended: (refusal) => {
          this.#backlog?.close();
          this.#refusal = refusal;
          this.#pause.wake();
        },
      },
    );
    if (this.#suspended) connection.suspend();
    return connection;
  }

  #receive(event: EventOf<Data>, errors: readonly Problem[] | undefined): void {
    const cursor = cursorOf(event);
    if (typeof cursor !== 'string') throw refused('Select the `cursor` of events.');
    if (errors) tellAll([() => this.#options.onErrors?.(errors, event)]);
    this.#gaps = 0;
    this.#pass({ event, cursor }, REPEATS);
    this.#backlog?.arrive(cursor);
    if (this.#waiting.length >= WAITING && !this.#full) {
      this.#full = true;
      this.#connection?.suspend();
    }
  }

  /** All events up to a place in the log have come: the feed is live. */
  #reach(cursor: string): void {
    this.#backlog?.close();
    this.#gaps = 0;
    const repeats = cursor === this.#cursor ? this.#repeats : REPEATS;
    if (repeats && Math.abs(ambient.now() - this.#savedAt) >= STEADY_MS) {
      this.#savedAt = ambient.now();
      this.#pass({ cursor }, repeats - 1);
    }
    this.#change({ missing: 0, status: 'live' });
  }

  #pass(next: Buffered<EventOf<Data>>, repeats: number): void {
    this.#cursor = next.cursor;
    this.#repeats = repeats;
    this.#waiting.push(next);
    this.#pause.wake();
  }

  /** Finds out, after a connection is made, how many events the feed is behind, and shows that until it has caught up. */
  #catchUp(catching: Catching | undefined): void {
    this.#savedAt = -STEADY_MS;
    this.#change({ status: 'catching up', missing: 0, problem: this.#failure });
    this.#backlog = catching?.({
      source: this.#source,
      cursor: () => this.#cursor,
      onMissing: (missing) => this.#change({ missing }),
      onCaughtUp: () => this.#change({ missing: 0, status: 'live' }),
    });
  }

  #change(change: Partial<State>): void {
    Object.assign(this, change);
    tellAll(this.#listeners);
  }
}
