import { clock } from '../common/clock.ts';
import { Lru } from '../common/lru.ts';
import type { MaybePromise } from '../common/maybe-promise.ts';
import { MappedStream } from '../common/push-stream.ts';
import { CursorInvalidError, EventsGapError, type LogBounds } from './errors.ts';
import type { EventLog, EventPage, EventStream, StoredEvent } from './log.ts';
import { openCursor, type SealHolder, sealCursor } from './seal.ts';

/** What readers do with a log. */
export interface EventReads
  extends Pick<EventLog, 'readAfter' | 'readBefore' | 'wholeSince' | 'head' | 'follow' | 'watch'> {
  /**
   * Begins a scan for a reader who may see few of the events that are read. Absent where cursors are not sealed.
   *
   * @throws {StoreUnavailableError}
   */
  scan?(clientId: string): Promise<LogScan>;
}

/**
 * Reads the log by its own cursors. Sealing a cursor takes longer than reading an event, so a scan seals only those that it
 * shows.
 */
export interface LogScan extends Pick<EventLog, 'readAfter' | 'readBefore'> {
  /**
   * Returns the log's own cursor for one of the caller's. @throws {CursorInvalidError} with the bounds of the log
   * @throws {StoreUnavailableError} if they cannot be read
   */
  open(cursor: string): MaybePromise<string>;
  /** Returns the caller's cursor for an event that it is shown. */
  seal(cursor: string): string;
}

/**
 * Returns the log as a caller narrowed to one customer reads it: it seals every cursor that it gives, and takes only sealed
 * ones. The log's own cursors count the client's events, and anyone can make them.
 */
export function sealedReads(
  log: EventReads & Pick<EventLog, 'sealKey' | 'bounds'>,
  customerId: string,
): EventReads {
  const sealing = new Sealing(log, customerId);
  const read = async (
    clientId: string,
    cursor: string | null,
    page: (cursor: string | null) => Promise<EventPage>,
  ): Promise<EventPage> => {
    const holder = await sealing.holderFor(clientId);
    const plain = cursor === null ? null : await sealing.open(holder, cursor);
    try {
      const { events, hasMore } = await page(plain);
      return { events: events.map((event) => sealedEvent(holder, event)), hasMore };
    } catch (error) {
      throw await sealing.error(clientId, error);
    }
  };

  return {
    readAfter: (clientId, cursor, ...how) =>
      read(clientId, cursor, (plain) => log.readAfter(clientId, plain, ...how)),
    readBefore: (clientId, cursor, ...how) =>
      read(clientId, cursor, (plain) => log.readBefore(clientId, plain, ...how)),
    wholeSince: (clientId) => log.wholeSince(clientId),
    async head(clientId) {
      return sealCursor(await sealing.holderFor(clientId), await log.head(clientId), 'fresh');
    },
    scan: (clientId) => beginScan(log, sealing, clientId),
    async follow(clientId, options = {}) {
      const holder = await sealing.holderFor(clientId);
      const after = options.after === undefined ? undefined : await sealing.open(holder, options.after);
      try {
        const source = await log.follow(clientId, { ...options, after });
        return new SealedStream(source, sealing.current(holder), (error) => sealing.error(clientId, error));
      } catch (error) {
        throw await sealing.error(clientId, error);
      }
    },
    async watch(clientId, topics, watcher) {
      const holder = await sealing.holderFor(clientId);
      const seal = (event: StoredEvent): StoredEvent => sealedEvent(holder, event);
      const end = (error: Error): void => watcher.end(error);
      const watch = await log.watch(clientId, topics, {
        event: (event) => watcher.event(seal(event)),
        // If the cursors of the error cannot be sealed now, the watcher gets the error of sealing instead.
        end: (error) => void sealing.error(clientId, error).then(end, end),
      });
      return {
        add: (more) => watch.add(more)?.map(seal),
        stop: () => watch.stop(),
      };
    },
  };
}

/** How old the answer may be by which an open stream seals, in milliseconds. */
const KEY_MS = 10_000;
/** Clients whose last key is remembered, for their open streams. */
const MOST_CLIENTS = 1000;

/** The key of a client's log as it was last heard, and when it was last asked for. */
interface Heard {
  readonly key: Buffer;
  readonly askedAt: number;
}

/** By log and client. The streams of all customers share it. */
const heard = new WeakMap<object, Lru<Heard>>();

/** Seals and opens the cursors of one customer. */
class Sealing {
  readonly #log: Pick<EventLog, 'sealKey' | 'bounds'>;
  readonly #customerId: string;
  readonly #heard: Lru<Heard>;

  constructor(log: Pick<EventLog, 'sealKey' | 'bounds'>, customerId: string) {
    this.#log = log;
    this.#customerId = customerId;
    this.#heard = heard.get(log) ?? new Lru(MOST_CLIENTS);
    heard.set(log, this.#heard);
  }

  /** The key is asked for each time: a log that has begun a new life has a new key, in all processes at once. */
  async holderFor(clientId: string): Promise<SealHolder> {
    const askedAt = clock.monotonic();
    const key = await this.#log.sealKey(clientId);
    this.#heard.set(clientId, { key, askedAt });
    return { key, clientId, customerId: this.#customerId };
  }

  /**
   * Returns a function that gives the holder by which an open stream seals now. It does not wait for the log. It asks for the key
   * once the last answer is old: an eviction may have taken the key alone. The log has made another one then, and ended no stream.
   */
  current(first: SealHolder): () => SealHolder {
    const { clientId } = first;
    return () => {
      const { key, askedAt } = this.#heard.get(clientId) ?? { key: first.key, askedAt: -KEY_MS };
      const now = clock.monotonic();
      if (now - askedAt >= KEY_MS) {
        this.#heard.set(clientId, { key, askedAt: now });
        // While the log is away the key stays what it was.
        this.holderFor(clientId).catch(() => undefined);
      }
      return { ...first, key };
    };
  }

  /** Returns the log's own cursor. @throws {CursorInvalidError} with the bounds of the log */
  async open(holder: SealHolder, cursor: string): Promise<string> {
    try {
      return openCursor(holder, cursor);
    } catch {
      throw new CursorInvalidError(sealedBounds(holder, await this.#log.bounds(holder.clientId)));
    }
  }

  /** Returns the same error with its cursors sealed. The log refuses a sealed cursor that a later version has made. */
  async error<E>(clientId: string, error: E): Promise<E | EventsGapError | CursorInvalidError> {
    if (error instanceof EventsGapError)
      return new EventsGapError(sealedBounds(await this.holderFor(clientId), error), error.gap);
    if (error instanceof CursorInvalidError && error.bounds !== undefined)
      return new CursorInvalidError(sealedBounds(await this.holderFor(clientId), error.bounds));
    return error;
  }
}

async function beginScan(
  log: Pick<EventLog, 'readAfter' | 'readBefore'>,
  sealing: Sealing,
  clientId: string,
): Promise<LogScan> {
  const holder = await sealing.holderFor(clientId);
  const translated = async (page: Promise<EventPage>): Promise<EventPage> => {
    try {
      return await page;
    } catch (error) {
      throw await sealing.error(clientId, error);
    }
  };
  return {
    readAfter: (...how) => translated(log.readAfter(...how)),
    readBefore: (...how) => translated(log.readBefore(...how)),
    open: (cursor) => sealing.open(holder, cursor),
    seal: (cursor) => sealCursor(holder, cursor, 'stable'),
  };
}

const sealedEvent = (holder: SealHolder, event: StoredEvent): StoredEvent => ({
  ...event,
  cursor: sealCursor(holder, event.cursor, 'stable'),
});

const sealedBounds = (holder: SealHolder, { oldest, head }: LogBounds): LogBounds => ({
  oldest: sealCursor(holder, oldest, 'fresh'),
  head: sealCursor(holder, head, 'fresh'),
});

/** A stream that seals its cursors, and those of the error that ends it. */
class SealedStream extends MappedStream<StoredEvent, StoredEvent> {
  readonly #holder: () => SealHolder;
  readonly #translate: (error: unknown) => Promise<unknown>;

  constructor(
    source: EventStream,
    holder: () => SealHolder,
    translate: (error: unknown) => Promise<unknown>,
  ) {
    super(source, (event) => sealedEvent(holder(), event));
    this.#holder = holder;
    this.#translate = translate;
  }

  /** Two bookmarks of one position differ. Equal ones would tell that no event of others has come between. */
  override bookmark(): string | undefined {
    const cursor = super.bookmark();
    return cursor === undefined ? undefined : sealCursor(this.#holder(), cursor, 'fresh');
  }

  override finish(error?: unknown): void {
    const finish = (known: unknown): void => super.finish(known);
    if (error === undefined) finish(undefined);
    else this.#translate(error).then(finish, finish);
  }
}
