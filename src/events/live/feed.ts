import { setImmediate as nextTurn } from 'node:timers/promises';
import { isUnbroken } from '../chain.ts';
import { encodeCursor, type Place } from '../cursor.ts';
import type { Entry, Slice } from '../entry.ts';
import { EventsGapError, StoreUnavailableError } from '../errors.ts';
import type { Listener, Source } from '../source.ts';
import type { Follower } from './follower.ts';
import { type Missed, QUEUE_LIMIT, Ring } from './ring.ts';

const PAGE = 64;
/** Between attempts to settle a resync, in milliseconds. */
const RETRY_MS = 200;

/** Told how the number of followers changes, and when the last one has left. */
interface FeedOwner {
  sized(change: 1 | -1): void;
  idle(): void;
}

/**
 * One client's live events in this process, shared by all its followers. Its tail moves only along the `prev` chain:
 * whatever does not follow from it is settled by reading the log, and what the log cannot supply is a gap.
 */
export class Feed implements Listener {
  readonly clientId: string;
  readonly #source: Source;
  readonly #owner: FeedOwner;
  readonly #live = new Set<Follower>();
  readonly #members = new Set<Follower>();
  readonly #recent = new Ring();
  readonly #reads = new Map<string, Promise<Slice>>();
  #tail: Place | undefined;
  #attached: Promise<void> | undefined;
  #settling: Promise<void> | undefined;
  /** Entries that arrived while the log was being read. */
  #pending: Entry[] = [];
  #readAgain = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(clientId: string, source: Source, owner: FeedOwner) {
    this.clientId = clientId;
    this.#source = source;
    this.#owner = owner;
  }

  get members(): ReadonlySet<Follower> {
    return this.#members;
  }

  enter(follower: Follower): void {
    this.#members.add(follower);
    this.#owner.sized(1);
  }

  leave(follower: Follower): void {
    this.#live.delete(follower);
    if (!this.#members.delete(follower)) return;
    this.#owner.sized(-1);
    if (this.#members.size > 0) return;
    clearTimeout(this.#retry);
    this.#owner.idle();
  }

  /** Resolves with the tail once entries are received. Throws `StoreUnavailableError`. */
  async attach(): Promise<Place> {
    this.#attached ??= this.#source.attach(this.clientId, this);
    try {
      await this.#attached;
    } catch (error) {
      this.#attached = undefined;
      throw error;
    }
    if (this.#tail === undefined) await this.settle();
    return this.#knownTail();
  }

  /** Resolves with the tail as the log has it now. Throws `StoreUnavailableError`. */
  async lookAgain(): Promise<Place> {
    this.#readAgain = true;
    await this.settle();
    return this.#knownTail();
  }

  #knownTail(): Place {
    if (this.#tail === undefined) throw new StoreUnavailableError('The event log could not be read.');
    return this.#tail;
  }

  /**
   * What comes after a position; where that is all there is, each new entry is pushed from now on, and nothing can come
   * between, because nothing here waits. Undefined when the recent past does not reach back that far.
   */
  join(follower: Follower, position: string): Missed | undefined {
    if (this.#tail === undefined) return undefined;
    const upToDate = this.#tail.position === position;
    const missed = upToDate ? { entries: [], all: true } : this.#recent.since(position);
    if (missed?.all === true) this.#live.add(follower);
    return missed;
  }

  /** A checked page of history. Followers that resume from the same place share one read. */
  async history(position: string): Promise<Slice> {
    const running = this.#reads.get(position);
    const read = running ?? this.#source.read(this.clientId, position, PAGE);
    if (running === undefined) {
      this.#reads.set(position, read);
      const forget = (): boolean => this.#reads.delete(position);
      read.then(forget, forget);
    }
    const slice = await read;
    if (!isUnbroken(position, slice)) throw await this.gap();
    return slice;
  }

  receive(entry: Entry): void {
    if (this.#tail !== undefined && this.#settling === undefined) {
      if (!this.#step(entry)) this.resync();
    } else if (this.#pending.length < QUEUE_LIMIT.entries) {
      this.#pending.push(entry);
    } else {
      this.#readAgain = true;
    }
  }

  resync(): void {
    this.#readAgain = true;
    this.settle().catch(() => {
      // The log cannot be read now, and nothing tells when it can be again: the connection that reads is not the one that
      // is subscribed. A doubt lasts until it is settled.
      clearTimeout(this.#retry);
      if (this.#members.size > 0) this.#retry = setTimeout(() => this.resync(), RETRY_MS).unref();
    });
  }

  /** Reads the log until the tail is its head. Throws `StoreUnavailableError`. */
  settle(): Promise<void> {
    this.#settling ??= this.#settle();
    return this.#settling;
  }

  async #settle(): Promise<void> {
    try {
      do {
        this.#readAgain = false;
        if (this.#tail === undefined) this.#tail = await this.#source.head(this.clientId);
        else await this.#catchUp(this.#tail);
        for (const entry of this.#pending.splice(0)) {
          if (!this.#step(entry)) this.#readAgain = true;
        }
      } while (this.#readAgain);
    } finally {
      // In the same breath in which nothing was pending: what is received after that is stepped on to, not left lying.
      this.#settling = undefined;
    }
  }

  async #catchUp(tail: Place): Promise<void> {
    const slice = await this.#source.read(this.clientId, tail.position, PAGE);
    if (!isUnbroken(tail.position, slice)) return this.#startOver();
    for (const follower of this.#live) {
      // What piled up during an outage is no fault of the reader: it goes on from the log, at its own pace.
      if (!follower.hasRoomFor(slice.entries)) {
        this.#live.delete(follower);
        follower.fallBack();
      }
    }
    for (const entry of slice.entries) this.#accept(entry);
    if (slice.hasMore) {
      this.#readAgain = true;
      await nextTurn();
    }
  }

  /** Moves on to an entry that follows from the tail. True also for one that has been here before. */
  #step(entry: Entry): boolean {
    if (entry.prev !== this.#tail?.position) return this.#recent.holds(entry);
    this.#accept(entry);
    return true;
  }

  #accept(entry: Entry): void {
    if (this.#tail === undefined) return;
    this.#tail = { epoch: this.#tail.epoch, position: entry.position };
    this.#recent.push(entry);
    for (const follower of this.#live) follower.push(entry);
  }

  async #startOver(): Promise<void> {
    const bounds = await this.#source.bounds(this.clientId);
    const error = gapError(this.clientId, bounds);
    for (const follower of this.#live) follower.fail(error);
    this.#live.clear();
    this.#recent.clear();
    this.#tail = bounds.head;
  }

  async gap(): Promise<EventsGapError> {
    return gapError(this.clientId, await this.#source.bounds(this.clientId));
  }
}

/** What a reader is told when the log cannot go on from where it stands. */
export function gapError(clientId: string, bounds: { oldest: Place; head: Place }): EventsGapError {
  return new EventsGapError({
    oldest: encodeCursor(clientId, bounds.oldest),
    head: encodeCursor(clientId, bounds.head),
  });
}
