/** An event in the form of the graph. */
export interface ForwardedEvent extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly cursor: string;
  readonly type: string;
  /** ISO 8601, in UTC. */
  readonly receivedAt: string;
}

/** Why a receiver has not taken an event. */
export interface Problem {
  /** A text for a person, without a secret. */
  readonly text: string;
  /** True if the receiver takes nothing at all, by its answer or for want of one: it has not refused this event. */
  readonly isAway: boolean;
  /** How long the receiver asks to wait, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Takes events one after the other. */
export interface Receiver {
  /** Its name in the names of files, and in commands of the operator. */
  readonly id: string;
  /** The part of its address that a person may see: the path can hold a secret. */
  readonly shownAs: string;
  /** @returns undefined once it has taken the event for good. */
  take(event: ForwardedEvent): Promise<Problem | undefined>;
  close(): Promise<void>;
}
