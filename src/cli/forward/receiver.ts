/** An event as the graph gives it. */
export interface ForwardedEvent extends Readonly<Record<string, unknown>> {
  readonly id: string;
  readonly cursor: string;
  readonly type: string;
  /** ISO 8601, in UTC. */
  readonly receivedAt: string;
}

/** Why a receiver has not taken an event. */
export interface Problem {
  /** For a person, without a secret. */
  readonly text: string;
  /** Whether the receiver cannot be had at all, so that it says nothing of this event. */
  readonly isAway: boolean;
  /** How long it asks to be left alone, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Takes events one after the other. */
export interface Receiver {
  /** Stands for it in the names of files, and in what the operator types. */
  readonly id: string;
  /** What a person may read of its address, whose path can hold a secret. */
  readonly shownAs: string;
  /** @returns undefined once it has taken the event for good. */
  take(event: ForwardedEvent): Promise<Problem | undefined>;
  close(): Promise<void>;
}
