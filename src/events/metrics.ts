import type { EventType } from './log.ts';

/** Why the gateway could not find out whose receipt an event is. */
export type UnattributedReason =
  /** The message names no transaction. */
  | 'unnamed'
  /** The upstream knows no such transaction. */
  | 'unknown'
  /** The upstream does not show it to the gateway. */
  | 'refused'
  /** The upstream has not answered within the time given. */
  | 'unavailable';

export const UNATTRIBUTED_REASONS: readonly UnattributedReason[] = [
  'unnamed',
  'unknown',
  'refused',
  'unavailable',
];

/** Counts what the log and the ingress do, and notes how much there is now. The calls are synchronous, so an implementation must do no more. */
export interface EventMetrics {
  /** A new event is in the log. */
  appended(type: EventType): void;
  /** A message was delivered again; `conflict` if its contents were not those of the first delivery. */
  duplicate(type: EventType, conflict: boolean): void;
  /** An event went to the spool because the log was away. */
  spooled(type: EventType): void;
  /** An event left the spool for the log. */
  drained(type: EventType): void;
  /** How many events wait in the spools of this process now. */
  waiting(count: number): void;
  /** How many spools in the folder cannot be read now. */
  unreadableSpools(count: number): void;
  /** Whether the spool that this process adds to takes no event now. */
  spoolUnwritable(isUnwritable: boolean): void;
  /** A delivery came whose address or token one of the older secrets has signed. */
  olderSecret(type: EventType): void;
  /** A delivery was put into quarantine. */
  quarantined(reason: string): void;
  /** The gateway could not find out whose receipt an event is. Callers narrowed to a customer are not shown it. */
  unattributed(reason: UnattributedReason): void;
  /** A message on a channel could not be read. */
  channelDecodeError(): void;
  /** How many followers and watches have their place in the log now. */
  subscribers(count: number): void;
  /** Whom to ask how many events wait for followers, in this process' memory. */
  watchFeeds(waiting: () => number): void;
}

/** Counts nothing. */
export const silentMetrics: EventMetrics = {
  appended: () => {},
  duplicate: () => {},
  spooled: () => {},
  drained: () => {},
  waiting: () => {},
  unreadableSpools: () => {},
  spoolUnwritable: () => {},
  olderSecret: () => {},
  quarantined: () => {},
  unattributed: () => {},
  channelDecodeError: () => {},
  subscribers: () => {},
  watchFeeds: () => {},
};
