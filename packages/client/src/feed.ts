import type { FieldOf } from './documents.ts';
import type { Presence } from './presence.ts';
import type { Problem } from './source.ts';
import type { Gap, Store } from './stores.ts';

export type Status = 'live' | 'catching up' | 'offline' | 'gap';

/** Variables of a feed besides `after`, which the feed sets. */
export type Narrowing<Variables> = Omit<Variables, 'after'>;

export interface FollowOptions<Event, Variables> {
  /** Where the feed keeps its place; in memory if it is absent. */
  readonly store?: Store<Event>;
  readonly variables?: Narrowing<Variables>;
  /**
   * Loads the list again, oldest first, each event with its `cursor`: at the first start, and after a gap. The feed goes on
   * after the list's last event, or after `head`, the end of the log before the list was asked for. If another tab has stored a
   * list before, that one is handed out.
   */
  readonly getState?: (head: string) => Promise<readonly Event[]>;
  /** Tells when the app or the network comes and goes. By default the events of the browser do. */
  readonly presence?: Presence;
  /** Called with the fields that the gateway could not give of an event, which are null, before the event is handed out. */
  readonly onErrors?: (errors: readonly Problem[], event: Event) => void;
}

/**
 * Events as they arrive, each once and in order, and a {@link Gap} wherever events may be missing. Behind a gap events may come
 * again that came before it.
 */
export interface Feed<Event> extends AsyncIterable<Event | Gap<Event>> {
  readonly status: Status;
  /** How many events are known to be still missing while the feed catches up. */
  readonly missing: number;
  /**
   * Why the feed is offline and tries again: a `Refused` that may pass, or the error of the connection. Also the error of the
   * store, which may fail while the feed is live: events wait then. Undefined once that is over. What ends the feed for good is
   * thrown by the iteration, and not told here.
   */
  readonly problem: unknown;
  /** Calls back at every change of the three above. @returns a function that stops that. */
  onChange(listener: () => void): () => void;
  /** Ends the connection, for an app in the background. */
  suspend(): void;
  /** Connects again at once. To be called too when the network has changed. */
  resume(): void;
  /** Ends the iteration. */
  close(): void;
}

/** The type of a subscription's events. */
export type EventOf<Data> = FieldOf<Data>;
