import type { FieldOf } from './documents.ts';
import type { Presence } from './presence.ts';
import type { Problem } from './source.ts';
import type { Gap, Store } from './stores.ts';

export type Status = 'live' | 'catching up' | 'offline' | 'gap';

/** Variables of a feed besides `after`, which the feed sets. */
export type Narrowing<Variables> = Omit<Variables, 'after'>;

export interface FollowOptions<Event, Variables> {
  /** Where the feed keeps its place; a memory without one. */
  readonly store?: Store<Event>;
  readonly variables?: Narrowing<Variables>;
  /**
   * Loads the list afresh, oldest first: at the first start, and after a gap. The feed goes on behind its last event, or
   * behind `head`, the log's end as it was before the list was asked for.
   */
  readonly getState?: (head: string) => Promise<readonly Event[]>;
  /** Tells when the app or the network comes and goes; what a browser tells of that unless given. */
  readonly presence?: Presence;
  /** Told of what the gateway could not give of an event, which has null there; before the event is handed out. */
  readonly onErrors?: (errors: readonly Problem[], event: Event) => void;
}

/** Events as they arrive, each once, in order; and a {@link Gap} wherever that could not be kept. */
export interface Feed<Event> extends AsyncIterable<Event | Gap<Event>> {
  readonly status: Status;
  /** How many events are known to be still on their way while catching up. */
  readonly missing: number;
  /** Why the feed is offline, until it is live again: a `Refused`, what broke the connection, or what the store threw. */
  readonly problem: unknown;
  /** Calls back at every change of the three above. @returns stops that. */
  onChange(listener: () => void): () => void;
  /** Leaves the gateway, for an app in the background. */
  suspend(): void;
  /** Comes back at once; to be called as well when the network has changed. */
  resume(): void;
  /** Ends the iteration. */
  close(): void;
}

/** What a subscription's events look like. */
export type EventOf<Data> = FieldOf<Data>;
