import { EventsGapError } from './errors.ts';
import type { EventLog, EventPage, FollowOptions, StoredEvent } from './log.ts';
import { openCursor, type SealHolder, sealCursor } from './seal.ts';

/** What readers do with a log. */
export interface EventReads extends Pick<EventLog, 'readAfter' | 'readBefore' | 'head' | 'follow'> {
  /**
   * Another cursor for the place of an event, to give to a reader who does not see that event: no two are alike. Absent where
   * cursors are given out as they are.
   *
   * @throws {StoreUnavailableError}
   */
  hidePlace?(clientId: string, cursor: string): Promise<string>;
}

/**
 * A log as a caller reads it who is narrowed to one customer: every cursor that comes out is sealed, and none goes in that
 * was not. A log's own cursors number the client's events, and can be made by anyone.
 */
export function sealedReads(log: EventReads & Pick<EventLog, 'sealKey'>, customerId: string): EventReads {
  // Asked for each time: a log that has begun a new life has a new key, in all processes at once.
  const holderFor = async (clientId: string): Promise<SealHolder> => ({
    key: await log.sealKey(clientId),
    clientId,
    customerId,
  });
  const sealedEvent = (holder: SealHolder, event: StoredEvent): StoredEvent => ({
    ...event,
    cursor: sealCursor(holder, event.cursor, 'stable'),
  });
  const sealedError = async (clientId: string, error: unknown): Promise<unknown> => {
    if (!(error instanceof EventsGapError)) return error;
    const holder = await holderFor(clientId);
    return new EventsGapError({
      oldest: sealCursor(holder, error.oldest, 'fresh'),
      head: sealCursor(holder, error.head, 'fresh'),
    });
  };
  const read = async (
    clientId: string,
    cursor: string | null,
    page: (cursor: string | null) => Promise<EventPage>,
  ): Promise<EventPage> => {
    const holder = await holderFor(clientId);
    const opened = cursor === null ? null : openCursor(holder, cursor);
    try {
      const { events, hasMore } = await page(opened);
      return { events: events.map((event) => sealedEvent(holder, event)), hasMore };
    } catch (error) {
      throw await sealedError(clientId, error);
    }
  };

  return {
    readAfter: (clientId, cursor, limit) =>
      read(clientId, cursor, (opened) => log.readAfter(clientId, opened, limit)),
    readBefore: (clientId, cursor, limit) =>
      read(clientId, cursor, (opened) => log.readBefore(clientId, opened, limit)),
    async head(clientId) {
      return sealCursor(await holderFor(clientId), await log.head(clientId), 'fresh');
    },
    async hidePlace(clientId, cursor) {
      const holder = await holderFor(clientId);
      return sealCursor(holder, openCursor(holder, cursor), 'fresh');
    },
    async follow(clientId, options: FollowOptions) {
      const holder = await holderFor(clientId);
      const after = options.after === undefined ? undefined : openCursor(holder, options.after);
      try {
        const source = await log.follow(clientId, { ...options, after });
        return sealedStream(
          source,
          (event) => sealedEvent(holder, event),
          (error) => sealedError(clientId, error),
        );
      } catch (error) {
        throw await sealedError(clientId, error);
      }
    },
  };
}

/** Not a generator, whose `return()` would wait for a pending `next()`: the log ends its own at once. */
function sealedStream(
  source: AsyncIterableIterator<StoredEvent, undefined>,
  seal: (event: StoredEvent) => StoredEvent,
  translate: (error: unknown) => Promise<unknown>,
): AsyncIterableIterator<StoredEvent, undefined> {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      try {
        const step = await source.next();
        return step.done === true ? step : { done: false, value: seal(step.value) };
      } catch (error) {
        throw await translate(error);
      }
    },
    async return() {
      await source.return?.();
      return { done: true, value: undefined };
    },
  };
}
